"""Schemas from the history, a file and a server, where the binlog leaves names and signs out."""

import json
from typing import NamedTuple

import pytest

from ibb.pipeline.change_rows import CHANGE_COLUMNS
from ibb.pipeline.errors import OptionError
from ibb.pipeline.options import SourceOptions
from ibb.pipeline.read_plan import plan_read
from ibb.pipeline.rows import columns_of, rows_of
from ibb.pipeline.schema_sources import FollowedSchemas, from_the_beginning, schemas_of
from ibb.pipeline.stream_reader import StreamReader
from ibb.pipeline.table_schemas import TableSchemas
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.protocol.rows.value_policy import SchemaMissing, ValueRefused

from ..integration.conftest import mariadb_10, new_rig
from ..integration.mariadb_server import PASSWORD, USER

__all__ = ["mariadb_10"]
pytestmark = [pytest.mark.live, pytest.mark.xdist_group("schema_options")]

BIG = 4_000_000_000
# Each step: statements, and the columns of the row that the insert behind them makes.
STEPS = (
    ("CREATE TABLE t (id INT, word VARCHAR(20), n INT)", {"id": "1", "word": "a", "n": "-1"}),
    ("ALTER TABLE t RENAME COLUMN word TO name", {"id": "1", "name": "a", "n": "-1"}),
    (
        "SET sql_mode = ''; ALTER TABLE t MODIFY n INT UNSIGNED",
        {"id": "1", "name": "a", "n": str(BIG)},
    ),
    ("ALTER TABLE t ADD kind ENUM('x','y') FIRST", {"kind": "y", "id": "1", "name": "a", "n": "2"}),
    (
        "SET binlog_alter_two_phase = 1; ALTER TABLE t CHANGE id number INT, ALGORITHM=COPY",
        {"kind": "x", "number": "1", "name": "b", "n": "3"},
    ),
    ("RENAME TABLE t TO other; RENAME TABLE other TO t", {"kind": "x", "number": "2"}),
)


class Written(NamedTuple):
    """A primary, what its rows are, where its versions begin, and the GTIDs of the rows."""

    primary: object
    rows: list
    positions: list
    inserted: list

    def options(self, **options):
        url = f"mariadb://{USER}@127.0.0.1:{self.primary.port}"
        given = {"url": url, "password": PASSWORD, "mode": "changes", "tables": "d.t", **options}
        if given.get("table"):
            del given["mode"], given["tables"]
        return SourceOptions.parse(given)


def insert(row):
    names = ", ".join(row)
    values = ", ".join(f"'{value}'" for value in row.values())
    return f"INSERT INTO t ({names}) VALUES ({values})"


def whole(row, columns):
    """Return a row with all of its columns, as mode changes has it."""
    return {column: row.get(column) for column in columns}


@pytest.fixture(scope="module", params=["NO_LOG", "MINIMAL"])
def written(request, mariadb_10):
    with new_rig() as rig:
        options = ("--binlog-format=ROW", f"--binlog-row-metadata={request.param}")
        primary = rig.primary(mariadb_10, *options)
        primary.run("CREATE DATABASE d CHARACTER SET utf8mb4")
        rows, positions, inserted = [], [], []
        for number, (statements, row) in enumerate(STEPS):
            primary.run("USE d", f"SET gtid_domain_id = {number % 2}", *statements.split(";"))
            positions.append(primary.binlog_position())
            primary.run("USE d", "SET gtid_domain_id = 0", insert(row))
            inserted.append(str(GtidPosition.parse(primary.binlog_position()).get(0)))
            names = [
                name
                for (name,) in primary.rows(
                    "SELECT column_name FROM "
                    "information_schema.columns WHERE table_schema = 'd' ORDER BY ordinal_position"
                )
            ]
            rows.append(whole(row, names))
        primary.run(
            "USE d",
            "CREATE TABLE made AS SELECT number, name FROM t LIMIT 1",
            "ALTER TABLE made ADD z INT UNSIGNED, ADD PRIMARY KEY (number)",
            f"INSERT INTO made VALUES (7, 'm', {BIG})",
        )
        yield Written(primary, rows, positions, inserted)


def changes(options):
    schemas = schemas_of(options)
    found = [
        batch
        for task in plan_read(options)
        for batch in rows_of(task, options, CHANGE_COLUMNS, schemas)
    ]
    rows = [row for batch in found for row in batch.to_pylist()]
    rows.sort(key=lambda row: row["seq_no"])
    return [dict(row["after"]) for row in rows]


def test_the_statements_of_the_history_say_what_columns_were(written):
    assert changes(written.options(schemaHistory="true")) == written.rows
    made = changes(written.options(schemaHistory="true", tables="d.made"))
    assert made[-1] == {"number": "7", "name": "m", "z": str(BIG)}


def test_without_a_schema_the_read_stops(written):
    with pytest.raises(SchemaMissing, match=r"d\.t: the binlog does not say enough of @1"):
        changes(written.options())
    found = changes(written.options(unknownColumns="bytes"))
    assert [len(row) for row in found] == [len(row) for row in written.rows]
    assert all(name.startswith("@") for row in found for name in row)


def test_a_file_has_versions(written, tmp_path):
    text = {"type": "varchar(20)", "charset": "utf8mb4"}
    kind = {"name": "kind", "type": "enum('x','y')", "charset": "utf8mb4"}
    number = {"name": "n", "type": "int(10) unsigned"}
    versions = [
        [{"name": "id", "type": "int"}, {"name": "word", **text}, {"name": "n", "type": "int"}],
        [{"name": "id", "type": "int"}, {"name": "name", **text}, {"name": "n", "type": "int"}],
        [{"name": "id", "type": "int"}, {"name": "name", **text}, number],
        [kind, {"name": "id", "type": "int"}, {"name": "name", **text}, number],
        [kind, {"name": "number", "type": "int"}, {"name": "name", **text}, number],
    ]
    tables = [
        {"database": "d", "table": "t", "columns": columns} | ({"since": first} if place else {})
        for place, (columns, first) in enumerate(zip(versions, written.inserted, strict=False))
    ]
    path = tmp_path / "schemas.json"
    path.write_text(json.dumps({"tables": tables}))
    assert changes(written.options(schemaFile=str(path))) == written.rows


def server_options(written):
    return {
        "schemaUrl": f"mariadb://{USER}@127.0.0.1:{written.primary.port}",
        "schemaPasswordEnv": "IBB_TEST_SCHEMA",
    }


def test_a_server_says_what_columns_are(written, monkeypatch):
    monkeypatch.setenv("IBB_TEST_SCHEMA", PASSWORD)
    written.primary.run(f"GRANT SELECT ON *.* TO {USER}@'127.0.0.1'")
    options = server_options(written) | {"startingGtid": written.positions[-1]}
    found = changes(written.options(**options, schemaUnchanged="true"))
    assert found == written.rows[-1:]
    typed = written.options(**options, schemaUnchanged="true", table="d.t", columns="n,name")
    assert [column.ddl for column in columns_of(typed)] == ["`n` bigint", "`name` string"]
    with pytest.raises(SchemaMissing):  # rows of before it was asked
        columns_of(written.options(**options, table="d.t"))


def test_a_stream_follows_what_changes_behind_the_servers_definitions(written, monkeypatch):
    monkeypatch.setenv("IBB_TEST_SCHEMA", PASSWORD)
    primary = written.primary
    primary.run(
        f"GRANT SELECT ON *.* TO {USER}@'127.0.0.1'",
        "CREATE DATABASE IF NOT EXISTS s",
        "CREATE OR REPLACE TABLE s.t (a INT UNSIGNED, b INT)",
    )
    options = server_options(written) | {"startingGtid": "latest", "tables": "s.t"}
    reader = StreamReader(written.options(**options), CHANGE_COLUMNS)
    offset = reader.initialOffset()
    found = []
    statements = (
        f"INSERT INTO s.t VALUES ({BIG}, 1)",
        "ALTER TABLE s.t RENAME COLUMN b TO c, ADD d INT UNSIGNED",
        f"INSERT INTO s.t VALUES (1, 2, {BIG})",
    )
    primary.run("INSERT INTO s.t VALUES (0, 0)")
    for statement in ("SET @x = 1", *statements):
        primary.run(statement)
        end = reader.latestOffset(offset)
        for part in reader.partitions(offset, end):
            try:
                batches = list(reader.read(part))
            except SchemaMissing:
                continue
            found += [dict(row["after"]) for batch in batches for row in batch.to_pylist()]
        offset = end
    reader.stop()
    assert found[-2:] == [{"a": str(BIG), "b": "1"}, {"a": "1", "c": "2", "d": str(BIG)}]


def test_values_without_a_counterpart_follow_their_options(written):
    primary = written.primary
    primary.run(
        "CREATE DATABASE IF NOT EXISTS v",
        "SET sql_mode = ''",
        "CREATE OR REPLACE TABLE v.t (id INT, day DATE, long_time TIME)",
        "INSERT INTO v.t VALUES (1, '0000-00-00', '-100:00:01')",
    )
    options = {"table": "v.t", "schemaHistory": "true", "columns": "day,long_time"}

    def read(**more):
        parsed = written.options(**options, **more)
        columns, schemas = columns_of(parsed), schemas_of(parsed)
        rows = [
            row
            for task in plan_read(parsed)
            for batch in rows_of(task, parsed, columns, schemas)
            for row in batch.to_pylist()
        ]
        return [column.ddl.split(" ", 1)[1] for column in columns], rows[-1]

    types, row = read(times="microseconds")
    assert types == ["date", "bigint"]
    assert row == {"day": None, "long_time": -360_001_000_000}
    types, row = read(noDates="text", times="text")
    assert types == ["string", "string"]
    assert row == {"day": "0000-00-00", "long_time": "-100:00:01"}
    with pytest.raises(ValueRefused):
        read(noDates="error")
    with pytest.raises(OptionError, match="option badText: 'maybe' is none of error, replace"):
        written.options(badText="maybe")


# Statements of sessions that are no ordinary ones, each with what it does first.
OF_MODES = (
    "SET sql_mode = 'REAL_AS_FLOAT'; CREATE TABLE m.floats (a REAL, b DOUBLE)",
    "SET sql_mode = 'REAL_AS_FLOAT'; ALTER TABLE m.floats ADD c REAL FIRST, MODIFY b REAL",
    "SET sql_mode = 'ORACLE'; CREATE TABLE m.oracle (d DATE, n NUMBER, p NUMBER(8,2), b BLOB)",
    "SET sql_mode = 'ORACLE'; ALTER TABLE m.oracle ADD (w VARCHAR2(20), r RAW(9), c CLOB)",
    "SET sql_mode = 'MAXDB'; CREATE TABLE m.maxdb (t TIMESTAMP)",
    "SET sql_mode = ''; ALTER TABLE m.maxdb ADD u TIMESTAMP",
    'SET sql_mode = \'ANSI_QUOTES\'; CREATE TABLE m."quoted" ("a b" INT UNSIGNED)',
    "SET sql_mode = 'NO_BACKSLASH_ESCAPES'; CREATE TABLE m.plain (e ENUM('a\\', 'b''c\\d'))",
    "SET explicit_defaults_for_timestamp = 0; CREATE TABLE m.times (t TIMESTAMP, u TIMESTAMP NULL)",
    "SET collation_server = 'koi8r_bin'; CREATE DATABASE m2; CREATE TABLE m2.koi (a TEXT)",
)


def test_statements_mean_in_the_history_what_they_did_in_their_sessions(written):
    primary = written.primary
    primary.run("CREATE OR REPLACE DATABASE m CHARACTER SET utf8mb4", "DROP DATABASE IF EXISTS m2")
    for statements in OF_MODES:
        primary.run(*statements.split("; "))
    followed = FollowedSchemas()
    followed.follow(plan_read(from_the_beginning(written.options(tables="m.floats"))))
    told = TableSchemas.from_server(primary.rows, assume_unchanged=True)
    now = Gtid(0, 1, followed.reached.get(0).seq + 1)
    places = [place for place in told.names() if place[0] in ("m", "m2")]
    assert len(places) == 7
    for place in places:
        found, wanted = followed.history.schemas.find(*place, now), told.find(*place, now)
        assert found is not None, place
        for column, other in zip(found.columns, wanted.columns, strict=True):
            for what in ("name", "type_name", "unsigned", "labels", "charset"):
                assert getattr(column, what) == getattr(other, what), (place, column, other)
