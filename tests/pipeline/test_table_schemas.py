"""Schemas of tables from a file, and by time."""

import json

import pytest

from ibb.pipeline.table_schemas import TableSchemas
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.protocol.rows.table_schema import ColumnSchema, SchemaError, TableSchema

ONE = {"name": "id", "type": "int(10) unsigned"}
TWO = {"name": "note", "type": "text", "charset": "latin1", "visible": False}


def test_schemas_of_a_file():
    tables = [
        {"database": "shop", "table": "orders", "key": ["id"], "columns": [ONE]},
        {"database": "shop", "table": "orders", "since": "0-1-100,3-1-5", "columns": [ONE, TWO]},
    ]
    schemas = TableSchemas.from_json(json.dumps({"tables": tables}))
    first = TableSchema((ColumnSchema("id", "int(10) unsigned"),), ("id",))
    later = TableSchema((*first.columns, ColumnSchema("note", "text", "latin1", visible=False)))
    places = {
        Gtid(0, 1, 99): first,
        Gtid(0, 2, 100): later,
        Gtid(0, 1, 500): later,
        Gtid(3, 1, 4): first,
        Gtid(3, 1, 5): later,
        Gtid(7, 1, 500): first,
    }
    assert {gtid: schemas.find("shop", "orders", gtid) for gtid in places} == places
    assert schemas.find("shop", "other", Gtid(0, 1, 1)) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no json", "schemas are a JSON object"),
        ("[]", "schemas are a JSON object"),
        ('{"tables": 5}', "is no list"),
        ('{"tables": [7]}', "table 0 of the file"),
        ('{"tables": [{"database": "d", "table": "t"}]}', "KeyError\\('columns'\\)"),
        ('{"tables": [{"database": "d", "table": "t", "columns": [{"name": "a"}]}]}', "'type'"),
        ('{"tables": [{"database": "d", "table": "t", "columns": [], "since": "x"}]}', "table 0"),
        (
            '{"tables": [{"database": "d", "table": "t", "columns": [{"name": "a", "type": ""}]}]}',
            "column `a` has no type",
        ),
    ],
)
def test_what_no_schemas_are(text, message):
    with pytest.raises(SchemaError, match=message):
        TableSchemas.from_json(text)


def answers(*positions):
    """Return a server whose position moves; its statements in their order."""
    left = list(positions)

    def query(statement):
        if "gtid_binlog_pos" in statement:
            return [(left.pop(0) if len(left) > 1 else left[0],)]
        if "STATISTICS" in statement:
            return [("d", "t", "b"), ("d", "t", "a")]
        return [("d", "t", "a", "int(11)", None, 0), ("d", "t", "b", b"char(3)", "utf8mb4", 1)]

    return query


def test_schemas_of_a_server_hold_from_where_it_is():
    wanted = TableSchema(
        (ColumnSchema("a", "int(11)"), ColumnSchema("b", "char(3)", "utf8mb4", visible=False)),
        ("b", "a"),
    )
    schemas = TableSchemas.from_server(answers("0-1-4", "0-1-5", "0-1-6"))
    assert schemas.find("d", "t", Gtid(0, 1, 6)) is None
    assert schemas.find("d", "t", Gtid(0, 1, 7)) == wanted
    schemas = TableSchemas.from_server(answers("0-1-6"), assume_unchanged=True)
    assert schemas.find("d", "t", Gtid(9, 1, 1)) == wanted
    with pytest.raises(SchemaError, match="the server's position moved in each of 10 reads"):
        TableSchemas.from_server(answers(*(f"0-1-{number}" for number in range(40))))


def test_positions_may_be_those_of_a_reader():
    schemas = TableSchemas()
    schema = TableSchema((ColumnSchema("a", "int"),))
    schemas.add("d", "t", schema, GtidPosition.parse("0-1-3"))
    assert schemas.find("d", "t", Gtid(0, 1, 3)) is schema
