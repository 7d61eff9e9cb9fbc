"""Tables are read as they were when their view began, whatever is done to them: a real server."""

import threading
from contextlib import contextmanager

import pymysql
import pytest

from ibb.pipeline.tables import mariadb_source, snapshot, snapshot_view, view_lock
from ibb.pipeline.tables.config import ServerConfig
from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.mariadb_source import View
from ibb.pipeline.tables.snapshot import take_snapshot
from ibb.pipeline.tables.snapshot_view import view_of_tables
from ibb.pipeline.tables.source_tables import TableRedefined, source_tables

from ...integration.conftest import mariadb_10, new_rig
from ...integration.waiting import wait_until
from ...integration.workload import execute
from .topology import ROW_OPTIONS

__all__ = ["mariadb_10"]
pytestmark = [pytest.mark.live, pytest.mark.xdist_group("mariadb_source")]

WAITING = "information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for table%'"


@pytest.fixture(scope="module")
def primary(mariadb_10):
    with new_rig() as rig:
        server = rig.primary(mariadb_10, *ROW_OPTIONS)
        server.run("CREATE DATABASE shop")
        yield server


class Meddled:
    """Does something at the server when a snapshot has let its lock go."""

    def __init__(self, monkeypatch, primary, *statements):
        self.left = list(statements)
        self._primary = primary
        self._rows_of = view_lock.rows_of
        monkeypatch.setattr(view_lock, "rows_of", self)

    def __call__(self, connection, sql, *values):
        found = self._rows_of(connection, sql, *values)
        if sql == "BACKUP STAGE END" and self.left:
            self._primary.run("USE shop", self.left.pop(0))
        return found


def is_of_shop(name):
    return name.database == "shop"


@pytest.mark.parametrize(
    "change",
    [
        ("ALTER TABLE t ADD c INT DEFAULT 7",),
        ("ALTER TABLE t MODIFY b VARCHAR(30)", "ALTER TABLE t DROP COLUMN b"),
        ("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (a, b)",),
        ("DROP TABLE t",),
        ("CREATE TABLE u LIKE t",),
    ],
)
def test_tables_are_as_they_were_defined_in_the_view(primary, monkeypatch, change):
    primary.run(
        "USE shop",
        "DROP TABLE IF EXISTS t, u, v, _t_new, _t_old",
        "CREATE TABLE t (a INT, b VARCHAR(20) NOT NULL, PRIMARY KEY (a))",
        "INSERT INTO t VALUES (1, 'x')",
    )
    meddled = Meddled(monkeypatch, primary, *change)
    config = ServerConfig(socket=str(primary.socket), workers=1)
    with view_of_tables(config, is_of_shop, goes_on=True) as (view, tables):
        assert meddled.left == []
        assert str(view.place.position) == primary.binlog_position()  # behind all that was done
        now = source_tables(view.connections[0], is_of_shop)
        assert [(one.schema, one.key) for one in tables] == [(one.schema, one.key) for one in now]
        pieces = [piece for table in tables for piece in view.read(table, 0)]
    rows = [row for piece in pieces for row in piece.to_pylist()]
    filled = [table.schema.names for table in tables if table.name.table == "t"]
    assert [list(row) for row in rows] == filled


def test_a_table_that_is_never_the_same_is_named(primary, monkeypatch):
    primary.run(
        "USE shop",
        "DROP TABLE IF EXISTS t, u, v, _t_new, _t_old",
        "CREATE TABLE t (a INT PRIMARY KEY)",
    )
    monkeypatch.setattr(snapshot_view, "VIEWS_MAX", 3)
    changes = [f"ALTER TABLE t ADD c{number} INT" for number in range(5)]
    meddled = Meddled(monkeypatch, primary, *changes)
    config = ServerConfig(socket=str(primary.socket), workers=1)
    with (
        pytest.raises(PipelineError, match=r"^shop\.t: its definition changes while the server"),
        view_of_tables(config, is_of_shop, goes_on=True),
    ):
        pass
    assert len(meddled.left) == 2


@pytest.fixture
def two_alike(primary):
    """Two tables of one kind, with a row that says which it is, and what exchanges their names."""
    primary.run(
        "USE shop",
        "DROP TABLE IF EXISTS t, u, v, _t_new, _t_old",
        "CREATE TABLE t (a INT PRIMARY KEY)",
        "CREATE TABLE u LIKE t",
        "INSERT INTO t VALUES (1)",
        "INSERT INTO u VALUES (2)",
    )
    return "RENAME TABLE shop.t TO shop.x, shop.u TO shop.t, shop.x TO shop.u"


def test_a_name_that_means_another_table_than_in_the_view_is_seen(primary, two_alike):
    config = ServerConfig(socket=str(primary.socket), workers=1)
    with view_of_tables(config, is_of_shop, goes_on=True) as (view, (first, other)):
        view.keep_name(first)
        with primary.connection() as other_client:
            with pytest.raises(pymysql.OperationalError, match="Lock wait timeout"):
                execute(other_client, "SET lock_wait_timeout = 0", two_alike)
            view.connections[0].rollback()  # nothing keeps the names any more
            execute(other_client, two_alike)
        for table in (first, other):
            with pytest.raises(TableRedefined, match=rf"^shop\.{table.name.table}: it was renamed"):
                view.keep_name(table)


@pytest.mark.parametrize(
    "change",
    [
        ("DROP TABLE shop.u",),
        ("RENAME TABLE shop.u TO shop.v", "DROP TABLE shop.v"),
        ("TRUNCATE TABLE shop.u",),
        ("OPTIMIZE TABLE shop.u",),
        ("CREATE OR REPLACE TABLE shop.u (a INT PRIMARY KEY)",),
    ],
)
def test_a_table_that_is_not_what_it_was_in_the_view_is_seen(primary, two_alike, change):
    config = ServerConfig(socket=str(primary.socket), workers=1)
    with view_of_tables(config, is_of_shop, goes_on=True) as (view, (first, other)):
        primary.run(*change)
        view.keep_name(first, [other])  # it is not time to look at others
        with pytest.raises(TableRedefined, match=r"^shop\.u: "):
            view.keep_name(other)


def test_tables_whose_turn_comes_late_are_looked_at_before(primary, two_alike, monkeypatch):
    monkeypatch.setattr(mariadb_source, "LOOK_SECONDS", 0.0)
    config = ServerConfig(socket=str(primary.socket), workers=1)
    with view_of_tables(config, is_of_shop, goes_on=True) as (view, (first, other)):
        view.keep_name(first, [other])
        primary.run("RENAME TABLE shop.u TO shop.v", "CREATE TABLE shop.u LIKE shop.v")
        with pytest.raises(TableRedefined, match=r"^shop\.u: it was renamed"):
            view.keep_name(first, [other])


@contextmanager
def renaming(primary, pairs):
    """
    Lend what begins a RENAME and returns when it waits for others.

    To be entered before the view that it waits for, so that it has gone on when it is left.
    """
    threads = []

    def begin():
        threads.append(threading.Thread(target=primary.run, args=[f"RENAME TABLE {pairs}"]))
        threads[0].start()
        wait_until(lambda: primary.rows(f"SELECT COUNT(*) FROM {WAITING}") == [(1,)], 60)

    try:
        yield begin
    finally:
        for thread in threads:
            thread.join()


def test_an_online_schema_change_that_waits_for_a_table_goes_first(primary, two_alike):
    """It waits for the table that was read, and holds the one that comes next."""
    primary.run("DROP TABLE shop.u", "CREATE TABLE shop._t_new LIKE shop.t")
    config = ServerConfig(socket=str(primary.socket), workers=1)
    with (
        renaming(primary, "shop.t TO shop._t_old, shop._t_new TO shop.t") as begin,
        view_of_tables(config, is_of_shop, goes_on=True) as (view, (old, new)),
    ):
        assert [old.name.table, new.name.table] == ["t", "_t_new"]
        view.keep_name(old)
        begin()
        with pytest.raises(TableRedefined, match=r"^shop\._t_new: the server refused: Deadlock"):
            view.keep_name(new)
    assert primary.rows("SHOW TABLES IN shop") == [("_t_old",), ("t",)]


def test_who_waits_for_a_table_keeps_no_connection_from_it(primary, two_alike):
    config = ServerConfig(socket=str(primary.socket), workers=3)
    with (
        renaming(primary, "shop.t TO shop.v") as begin,
        view_of_tables(config, is_of_shop, goes_on=True) as (view, (first, _)),
    ):
        view.keep_name(first)
        begin()
        for worker in range(3):
            pieces = list(view.read(first, worker))
            assert [row["a"] for piece in pieces for row in piece.to_pylist()] == [1]


def test_who_comes_between_two_connections_is_not_waited_for(primary, two_alike, monkeypatch):
    class Overtaken:
        def cursor(self):
            begin()
            return real.cursor()

    monkeypatch.setattr(mariadb_source, "LOCK_WAIT_SECONDS", 1)
    config = ServerConfig(socket=str(primary.socket), workers=2)
    with (
        renaming(primary, "shop.t TO shop.v") as begin,
        view_of_tables(config, is_of_shop, goes_on=True) as (view, (first, _)),
    ):
        real, view.connections[1] = view.connections[1], Overtaken()
        with pytest.raises(TableRedefined, match=r"^shop\.t: the server refused: Lock wait"):
            view.keep_name(first)


def test_a_clock_that_stands_still_is_told_of(primary, two_alike, monkeypatch):
    real = snapshot_view.rows_of

    def stopped(connection, sql, *values):
        if "SYSDATE" in sql:
            ((named,),) = real(
                connection,
                "SELECT UNIX_TIMESTAMP(CREATE_TIME) FROM information_schema.TABLES"
                " WHERE TABLE_SCHEMA = 'shop' AND TABLE_NAME = 'u'",
            )
            return [(float(named) + 1.01,)]
        return real(connection, sql, *values)

    monkeypatch.setattr(snapshot_view, "rows_of", stopped)
    monkeypatch.setattr(snapshot_view, "YOUNG_SECONDS", 0.0)
    config = ServerConfig(socket=str(primary.socket), workers=1)
    with (
        pytest.raises(PipelineError, match=r"the server's clock does not go on: 1\.010 s ago"),
        view_of_tables(config, is_of_shop, goes_on=True),
    ):
        pass


def test_names_are_those_of_the_view_although_tables_were_just_made(
    primary, two_alike, monkeypatch
):
    meddled = Meddled(monkeypatch, primary, two_alike)
    config = ServerConfig(socket=str(primary.socket), workers=1)
    with view_of_tables(config, is_of_shop, goes_on=True) as (view, tables):
        assert meddled.left == []
        assert str(view.place.position) == primary.binlog_position()
        rows = [
            row["a"] for one in tables for piece in view.read(one, 0) for row in piece.to_pylist()
        ]
    assert rows == [2, 1]


class Kept:
    """A change table that remembers its rows."""

    def __init__(self):
        self.values, self.rows = [], 0

    def fill(self, _schema, _key, pieces, _place):
        self.values = [row["a"] for piece in pieces for row in piece.to_pylist()]


@pytest.mark.parametrize("attempts", [2, 4])
def test_a_snapshot_begins_once_more_where_tables_get_each_others_names(
    primary, two_alike, monkeypatch, attempts
):
    keep_name, left, kept = View.keep_name, [two_alike] * 3, {}

    def keep_behind(view, table, others):
        if left and table.name.table == "t":
            primary.run(left.pop())
        keep_name(view, table, others)

    monkeypatch.setattr(View, "keep_name", keep_behind)
    monkeypatch.setattr(snapshot, "SNAPSHOTS_MAX", attempts)
    config = ServerConfig(socket=str(primary.socket), workers=1)

    def take():
        return take_snapshot(
            config, is_of_shop, lambda name: kept.setdefault(name.table, Kept()), {}, print
        )

    if attempts == 2:
        with pytest.raises(PipelineError, match=r"^shop\.t: it was renamed.* again and again"):
            take()
        return
    taken = take()
    assert str(taken.place.position) == primary.binlog_position()
    assert ([name.table for name in taken.tables], taken.gone) == (["t", "u"], {})
    assert [kept[name].values for name in "tu"] == [[2], [1]]  # exchanged three times


def test_a_table_that_is_gone_when_the_snapshot_begins_once_more_stays_where_it_was(
    primary, two_alike, monkeypatch
):
    keep_name, ends = View.keep_name, []

    def keep_behind(view, table, others):
        if table.name.table == "u" and not ends:
            ends.append(str(view.place.position))
            view.connections[0].rollback()  # nothing keeps the names any more
            primary.run("DROP TABLE shop.t", "CREATE OR REPLACE TABLE shop.u (a INT PRIMARY KEY)")
        keep_name(view, table, others)

    monkeypatch.setattr(View, "keep_name", keep_behind)
    config = ServerConfig(socket=str(primary.socket), workers=1)
    place, (found,), gone = take_snapshot(config, is_of_shop, lambda _: Kept(), {}, print)
    assert str(place.position) == primary.binlog_position()
    assert found.table == "u"
    assert [(name.table, str(at.position)) for name, at in gone.items()] == [("t", ends[0])]
    assert ends[0] != str(place.position)
