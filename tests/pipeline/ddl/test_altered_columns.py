"""What ALTER TABLE makes of columns, by a real MariaDB: names, types, order and key."""

import random

import pymysql
import pytest

from ibb.pipeline.schema_history import SchemaHistory
from ibb.protocol.gtid import GtidPosition

from ...integration.conftest import mariadb_10, new_rig

__all__ = ["mariadb_10"]
pytestmark = [pytest.mark.live, pytest.mark.xdist_group("altered_columns")]

NAMES = ("a", "b", "C", "d", "e", "f")
TYPES = ("int(11)", "bigint(20)", "bigint(20) unsigned", "varchar(30)")
BEFORE = "CREATE TABLE t (a int(11) NOT NULL, b bigint(20) NOT NULL, C varchar(30), d int(11)"
ROUNDS = 200
ACCEPTED_MIN = 50
UNCLEAR_MAX = 5  # MariaDB takes some that name what is not there, beside an IF EXISTS

# What a random statement meets seldom.
CHOSEN = (
    "CHANGE a b int(11) NOT NULL, CHANGE b a bigint(20) NOT NULL",
    "RENAME COLUMN a TO b, RENAME COLUMN b TO a, RENAME COLUMN C TO x",
    "CHANGE a b int(11), CHANGE b c varchar(30), CHANGE c a bigint(20) unsigned",
    "RENAME COLUMN a TO z, ADD e int(11) AFTER z",
    "RENAME COLUMN a TO z, ADD a int(11) FIRST",
    "MODIFY a int(11) AFTER d, ADD e int(11) AFTER a, ADD f int(11) AFTER a",
    "ADD e int(11) FIRST, ADD f int(11) FIRST, MODIFY d int(11) FIRST",
    "DROP b, ADD b varchar(30) AFTER a",
    "ADD COLUMN IF NOT EXISTS e int(11), ADD COLUMN IF NOT EXISTS E bigint(20)",
    "DROP COLUMN IF EXISTS z, CHANGE IF EXISTS z y int(11), MODIFY COLUMN IF EXISTS y int(11)",
    "CHANGE d D bigint(20) AFTER a, DROP PRIMARY KEY, ADD PRIMARY KEY (D, b)",
    "DROP PRIMARY KEY, CHANGE a z int(11) NOT NULL PRIMARY KEY AFTER b",
    "CHANGE a z int(11) NOT NULL, CHANGE b y bigint(20) NOT NULL",
)


@pytest.fixture(scope="module")
def primary(mariadb_10):
    """A connection to a server."""
    with new_rig() as rig:
        server = rig.primary(mariadb_10)
        server.run("CREATE DATABASE d")
        with server.connection(database="d") as connection, connection.cursor() as cursor:
            yield cursor


def clause(rng):
    old, new, place = rng.choice(NAMES), rng.choice(NAMES), rng.choice(NAMES)
    where = rng.choice(("", "", " FIRST", f" AFTER {place}"))
    kind = rng.choice(TYPES)
    return rng.choice(
        (
            f"ADD COLUMN {new} {kind}{where}",
            f"ADD COLUMN IF NOT EXISTS {new} {kind}{where}",
            f"DROP COLUMN {old}",
            f"DROP COLUMN IF EXISTS {old}",
            f"MODIFY {old} {kind}{where}",
            f"CHANGE {old} {new} {kind}{where}",
            f"CHANGE COLUMN IF EXISTS {old} {new} {kind}{where}",
            f"RENAME COLUMN {old} TO {new}",
        )
    )


def found_by(primary, create, alter):
    """Return columns and key as MariaDB has them; None: it refuses the statement."""
    primary.execute("DROP TABLE IF EXISTS t")
    primary.execute(create)
    try:
        primary.execute(alter)
    except pymysql.MySQLError:
        return None
    where = "WHERE table_schema = 'd' AND table_name = 't'"
    primary.execute(
        "SELECT column_name, column_type FROM information_schema.columns "
        f"{where} ORDER BY ordinal_position"
    )
    columns = list(primary.fetchall())
    primary.execute(
        "SELECT column_name FROM information_schema.statistics "
        f"{where} AND index_name = 'PRIMARY' ORDER BY seq_in_index"
    )
    return columns, [name for (name,) in primary.fetchall()]


def made_of(create, alter):
    """Return columns and key as the statements say them; None: these are unclear."""
    history = SchemaHistory()
    for number, sql in enumerate((create, alter), 1):
        history.follow(sql, "d", GtidPosition.parse(f"0-1-{number}"))
    schemas = [schema for _, _, schema, _ in history.schemas.newest()]
    if not schemas:
        return None
    (schema,) = schemas
    return [(column.name, column.type_text) for column in schema.columns], list(schema.key)


@pytest.mark.parametrize("alter", CHOSEN)
def test_a_statement_does_what_it_does_at_the_server(primary, alter):
    create, alter = f"{BEFORE}, PRIMARY KEY (a, b))", f"ALTER TABLE t {alter}"
    wanted = found_by(primary, create, alter)
    assert wanted is not None
    assert made_of(create, alter) == wanted


def test_so_do_random_ones(primary):
    rng, accepted, unclear = random.Random(12), 0, 0
    for _ in range(ROUNDS):
        create = f"{BEFORE})"
        clauses = [clause(rng) for _ in range(rng.choice((1, 2, 2, 3, 3, 4)))]
        alter = f"ALTER TABLE t {', '.join(clauses)}"
        wanted = found_by(primary, create, alter)
        if wanted is not None:
            made = made_of(create, alter)
            accepted += 1
            unclear += made is None
            assert made in (None, wanted), alter
    assert accepted >= ACCEPTED_MIN
    assert unclear <= UNCLEAR_MAX
