"""Option table up to a GTID, each key's last row taken, is the primary's table as it was then."""

import random
from typing import NamedTuple

import pytest

from ibb.pipeline.options import SourceOptions
from ibb.pipeline.read_plan import plan_read
from ibb.pipeline.rows import columns_of, rows_of

from ..integration.conftest import mariadb_10, new_rig
from ..integration.mariadb_server import PASSWORD, USER
from ..integration.waiting import wait_until
from .conftest import SPARK

__all__ = ["mariadb_10"]
pytestmark = [*SPARK, pytest.mark.live]

MOMENTS = 30
BY_SPARK = (7, 22)  # of these
KEYS = 25
SEED = 7
TABLE = (
    "CREATE TABLE d.t (id INT PRIMARY KEY, big BIGINT UNSIGNED, exact DECIMAL(12,3), ratio DOUBLE,"
    " word VARCHAR(40), note TEXT CHARACTER SET latin1, bytes VARBINARY(20), kind ENUM('a','b'),"
    " day DATE, moment DATETIME(6), stamp TIMESTAMP(3) NULL, year YEAR)"
)


class Recorded(NamedTuple):
    """A table at a moment: the position, and the rows as SELECT has them."""

    position: str
    names: list
    rows: list


def values(rng):
    return (
        f"{rng.getrandbits(64)}, {rng.randint(-(10**8), 10**8)}.{rng.randint(0, 999):03},"
        f" {rng.random() * 10 ** rng.randint(-5, 9)!r}, 'wört {rng.randint(0, 999)}',"
        f" {rng.choice(('NULL', chr(39) + 'é' + chr(39)))}, X'{rng.randbytes(4).hex()}',"
        f" '{rng.choice('ab')}', '20{rng.randint(10, 37)}-0{rng.randint(1, 9)}-11',"
        f" '1999-12-31 23:59:59.{rng.randint(0, 999999):06}',"
        f" '20{rng.randint(10, 37)}-03-04 05:06:07.{rng.randint(0, 999):03}',"
        f" {rng.randint(1901, 2155)}"
    )


COLUMNS = "id, big, exact, ratio, word, note, bytes, kind, day, moment, stamp, year"


def statements(rng):
    """Return a transaction's."""
    made = []
    for _ in range(rng.randint(1, 6)):
        key, other = rng.randrange(KEYS), rng.randrange(KEYS)
        made.append(
            rng.choice(
                (
                    f"REPLACE INTO d.t ({COLUMNS}) VALUES ({key}, {values(rng)})",
                    f"UPDATE d.t SET word = CONCAT('u', {key}), big = NULL WHERE id >= {key}",
                    f"UPDATE IGNORE d.t SET id = {other} WHERE id = {key}",
                    f"DELETE FROM d.t WHERE id = {key} OR id = {other}",
                )
            )
        )
    return ["BEGIN", *made, rng.choice(("COMMIT", "COMMIT", "COMMIT", "ROLLBACK"))]


def record(primary):
    with primary.connection() as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute("SELECT * FROM d.t ORDER BY id")
        names = [column[0] for column in cursor.description]
        return Recorded(primary.binlog_position(), names, list(cursor.fetchall()))


@pytest.fixture(scope="module")
def history(mariadb_10):
    """A primary and a relay of it, with the table as it was at thirty moments."""
    with new_rig() as rig:
        options = ("--binlog-format=ROW", "--binlog-row-metadata=FULL")
        primary = rig.primary(mariadb_10, *options)
        relay = rig.ibb("--max-binlog-size=262144").relay_from(primary.port).start()
        rng = random.Random(SEED)
        primary.run("CREATE DATABASE d", TABLE)
        primary.run(f"INSERT INTO d.t ({COLUMNS}) VALUES (1, {values(rng)})")
        moments = []
        for number in range(MOMENTS):
            if number == MOMENTS // 3:  # known to a read by the row behind it
                primary.run(
                    "FLUSH BINARY LOGS",
                    "ALTER TABLE d.t ADD COLUMN more INT AFTER id",
                    f"REPLACE INTO d.t ({COLUMNS}) VALUES (1, {values(rng)})",
                )
            for _ in range(rng.randint(1, 8)):
                primary.run("SET NAMES utf8mb4", "SET time_zone = '+00:00'", *statements(rng))
            moments.append(record(primary))
        url = f"mariadb://{USER}@127.0.0.1:{relay.port}"
        there = {"url": url, "password": PASSWORD, "startingGtid": moments[-1].position}
        wait_until(lambda: is_there(there), 60)
        yield primary, relay, moments


def is_there(options):
    from ibb.pipeline.errors import OptionError

    try:
        plan_read(SourceOptions.parse(options))
    except OptionError:
        return False
    return True


def read(options):
    parsed = SourceOptions.parse(options)
    columns = columns_of(parsed)
    for task in plan_read(parsed):
        for batch in rows_of(task, parsed, columns):
            yield from batch.to_pylist()


def folded(rows):
    """Return each key's last row."""
    found = {}
    order = sorted(rows, key=lambda row: (row["_seq_no"], row["_position"], row["_row"]))
    for row in order:
        if row["_image"] == "before":
            found.pop(row["id"], None)
        else:
            found[row["id"]] = row
    return [found[key] for key in sorted(found)]


def plain(row, names):
    """Return a row as SELECT shows it."""
    shown = {name.lower(): value for name, value in row.items()}
    cells = []
    for name in names:
        cell = shown[name.lower()]
        cells.append(cell.replace(tzinfo=None) if getattr(cell, "tzinfo", None) else cell)
    return tuple(cells)


@pytest.mark.parametrize("kind", ["url", "path"])
def test_the_table_is_as_it_was_at_each_moment(history, kind):
    primary, relay, moments = history
    url = f"mariadb://{USER}@127.0.0.1:{primary.port}"
    source = {"path": str(relay.directory)}
    if kind == "url":
        source = {"url": url, "password": PASSWORD}
    sizes = set()
    for position, names, rows in moments:
        options = {**source, "table": "d.t", "images": "both", "endingGtid": position}
        found = folded(read({**options, "minPartitions": "3"}))
        assert [plain(row, names) for row in found] == rows, position
        sizes.add(len(rows))
    assert len(sizes) > 5


def test_spark_reads_the_same(history, spark):
    primary, relay, moments = history
    sources = ({"path": str(relay.directory)}, {"password": PASSWORD})
    sources[1]["url"] = f"mariadb://{USER}@127.0.0.1:{primary.port}"
    for source, number in zip(sources, BY_SPARK, strict=True):
        position, names, rows = moments[number]
        options = {**source, "table": "d.t", "images": "both", "endingGtid": position}
        table = spark.read.format("ibb").options(**options).load()
        found = folded([row.asDict() for row in table.collect()])
        for row in found:
            row["bytes"] = None if row["bytes"] is None else bytes(row["bytes"])
        assert [plain(row, names) for row in found] == rows
