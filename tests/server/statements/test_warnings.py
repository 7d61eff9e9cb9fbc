"""Warnings are kept until others, or a table, take their place."""

import pytest

from ibb.protocol.errors import SqlError

from ..raw_client import RawClient

TRUNCATED = [("Warning", "1292", "Truncated incorrect DOUBLE value: 'a'")]


@pytest.fixture
async def client(serve, store):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        yield client


@pytest.mark.parametrize("sql", ["SELECT 1", "SET @a = 1", "SHOW WARNINGS", "COMMIT", "DO 1"])
async def test_a_statement_without_a_table_leaves_them(client, sql):
    await client.query("SELECT 'a' + 1")
    result = await client.query(sql)
    assert result.warnings == 0
    assert await client.rows("SHOW WARNINGS") == TRUNCATED
    assert await client.value("SELECT @@warning_count") == "1"


@pytest.mark.parametrize(
    "sql",
    [
        "SHOW VARIABLES LIKE 'x'",
        "DESC information_schema.schemata",
        "SELECT 1 FROM information_schema.schemata",
    ],
)
async def test_a_table_forgets_them(client, sql):
    await client.query("SELECT 'a' + 1")
    await client.query(sql)
    assert await client.rows("SHOW WARNINGS") == []


async def test_an_error_takes_their_place(client):
    for sql, code in (("SELECT nocol", "1054"), ("garbage", "1064")):
        await client.query("SELECT 'a' + 1")
        with pytest.raises(SqlError):
            await client.query(sql)
        ((level, shown, _),) = await client.rows("SHOW WARNINGS")
        assert (level, shown) == ("Error", code)
