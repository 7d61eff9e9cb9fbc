"""Schemas by the statements of a history; real ones: `tests/integration/test_schema_history.py`."""

from dataclasses import replace

import pytest

from ibb.pipeline.options import SourceOptions
from ibb.pipeline.schema_history import SchemaHistory
from ibb.pipeline.schema_sources import from_the_beginning
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.protocol.rows.table_layout import layout_of
from ibb.protocol.rows.table_map import TableMap

from ..protocol.rows import row_encoder as enc


def at(number):
    return GtidPosition([Gtid(0, 1, number)])


def test_each_version_holds_from_its_statement_on():
    history = SchemaHistory()
    history.follow("CREATE DATABASE s CHARSET utf8mb4", "", at(1))
    history.follow("CREATE TABLE s.t (a INT, b TEXT)", "", at(2))
    history.follow("ALTER TABLE t ADD c NATIONAL CHAR(3)", "s", at(5))
    history.follow("CREATE OR REPLACE TABLE t (a INT UNSIGNED)", "s", at(7))
    history.follow("DROP TABLE t", "s", at(9))
    found = [history.schemas.find("s", "t", Gtid(0, 2, number)) for number in range(1, 11)]
    known = [None if schema is None else len(schema.columns) for schema in found]
    assert known == [None, 2, 2, 2, None, None, 1, 1, None, None]
    assert found[2].columns[1].charset == "utf8mb4"


@pytest.mark.parametrize("lower_case", [False, True])
def test_a_database_that_is_replaced_has_no_table_any_more(lower_case):
    history = SchemaHistory(lower_case=lower_case)
    name = "S" if lower_case else "s"
    history.follow("CREATE TABLE s.t (a INT, b TEXT)", "", at(1))
    history.follow("CREATE TABLE r.t (a INT)", "", at(2))
    history.follow(f"CREATE OR REPLACE DATABASE {name} CHARSET koi8r", "", at(3))
    assert history.schemas.find("s", "t", Gtid(0, 1, 4)) is None
    history.follow("CREATE TABLE IF NOT EXISTS s.t (b INT, a TEXT)", "", at(5))
    found = history.schemas.find("s", "t", Gtid(0, 1, 6))
    assert [column.name for column in found.columns] == ["b", "a"]
    assert lower_case or found.columns[1].charset == "koi8r"
    assert len(history.schemas.find("r", "t", Gtid(0, 1, 6)).columns) == 1


@pytest.mark.parametrize(
    ("sql", "said", "knows"),
    [
        ("CREATE OR REPLACE TABLE t (b INT)", {"error": 1005}, False),
        ("ALTER TABLE t ADD zz INT", {"uses_temporary": True}, False),
        ("TRUNCATE TABLE t", {"uses_temporary": True}, True),
        ("DROP USER t", {"error": 1396}, True),
        ("CREATE OR REPLACE TABLE t (a INT) SELECT 1 AS b", {}, False),
        ("CREATE TABLE IF NOT EXISTS t SELECT 1 AS b", {}, True),
    ],
)
def test_what_a_doubtful_statement_names_is_not_known_any_more(sql, said, knows):
    history = SchemaHistory()
    history.follow("CREATE TABLE t (a INT)", "s", at(1))
    history.follow(sql, "s", at(2), **said)
    assert (history.schemas.find("s", "t", Gtid(0, 1, 3)) is not None) == knows


def test_a_database_that_may_have_been_there_keeps_an_unknown_character_set():
    def charset_behind(*statements):
        history = SchemaHistory()
        for sql in (*statements, "CREATE TABLE s.t (a TEXT)"):
            history.follow(sql, "", GtidPosition(), server_charset="utf8mb4")
        return history.schemas.find("s", "t", Gtid(0, 1, 1)).columns[0].charset

    made = "CREATE DATABASE IF NOT EXISTS s CHARACTER SET latin1"
    assert charset_behind(made) is None
    assert charset_behind("CREATE DATABASE s CHARACTER SET latin2", made) == "latin2"
    assert charset_behind("DROP DATABASE IF EXISTS s", made) == "latin1"
    assert charset_behind("DROP DATABASE s", "CREATE DATABASE s", made) == "utf8mb4"


def test_types_that_are_stored_as_another_fit_their_rows():
    history = SchemaHistory()
    sql = """CREATE TABLE t (id SERIAL, v VECTOR(3), b BLOB(9), m TEXT(70000) CHARSET utf8mb4,
        d FLOAT(53), f FLOAT(24), n FLOAT(30,2))"""
    history.follow(sql, "d", GtidPosition())
    specs = {
        "id": enc.integer(8),
        "v": enc.varchar(12, 63),
        "b": enc.blob(1),
        "m": enc.blob(3),
        "d": enc.real(8),
        "f": enc.real(4),
        "n": enc.real(4),
    }
    rows = TableMap.parse(enc.table_map(list(specs.items()), metadata=False))
    layout = layout_of(rows, history.schemas.find("d", "t", Gtid(0, 1, 1)))
    assert layout.unknown == ()
    assert [column.charset for column in layout.columns[1:4]] == ["binary", "binary", "utf8mb4"]
    assert layout.columns[0].unsigned


def test_a_filter_on_the_time_leaves_the_statements_to_be_found(tmp_path):
    options = SourceOptions.parse({"path": str(tmp_path), "mode": "changes"})
    since, before = replace(options, filtered_since=7.0), replace(options, filtered_before=9.0)
    assert from_the_beginning(since) == from_the_beginning(before) == from_the_beginning(options)
