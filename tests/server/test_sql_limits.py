"""Statements that would exhaust the interpreter are answered like any other that is too much."""

import pytest

from ibb.protocol.errors import SqlError
from ibb.server.sql_cursor import NESTING_MAX, OPERATIONS_MAX
from ibb.server.sql_parser import parse_statement

from .raw_client import RawClient


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT " + "(" * NESTING_MAX + "1" + ")" * NESTING_MAX,
        "SELECT " + "(" * 5000,
        "SELECT " + "- " * 5000 + "1",
        "SELECT " + "NOT " * 5000 + "1",
        "SELECT " + "+".join("1" * 5000),
        "SELECT " + "INTERVAL " * 5000 + "1",
        "SELECT " + "CASE WHEN " * 5000,
        "SELECT " + "CAST(" * 5000,
        "SELECT " + "@a:=" * 5000 + "1",
        "SHOW STATUS WHERE " + " OR ".join(["a=1"] * 5000),
    ],
    ids=lambda sql: sql[:20],
)
def test_a_statement_too_deep_is_a_syntax_error(sql):
    with pytest.raises(SqlError) as refused:
        parse_statement(sql)
    assert refused.value.code == 1064


async def test_the_deepest_expression_that_is_read_can_be_computed(serve, store):
    deep = "+".join("1" * OPERATIONS_MAX)
    sql = f"SELECT {'ABS(' * (NESTING_MAX - 1)}{deep}{')' * (NESTING_MAX - 1)}"
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        assert await client.value(sql) == str(OPERATIONS_MAX)
        with pytest.raises(SqlError) as refused:
            await client.query(f"SELECT {deep}+{deep}")
        assert refused.value.code == 1064
