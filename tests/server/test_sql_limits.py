"""Statements that would exhaust the interpreter are answered like any other that is too much."""

import asyncio

import pytest

from ibb.protocol.command import Query
from ibb.protocol.errors import SqlError
from ibb.protocol.packet import frame
from ibb.protocol.reply import is_ok
from ibb.protocol.result_set import ReplyReader
from ibb.server.sql_cursor import NESTING_MAX, OPERATIONS_MAX
from ibb.server.sql_parser import parse_statement

from .raw_client import SECONDS_MAX, RawClient, until_sessions


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


@pytest.mark.parametrize("sql", ["SELECT SLEEP(1000)", "SELECT MASTER_GTID_WAIT('9-9-9')"])
async def test_a_statement_that_waits_ends_with_its_client(serve, store, sql):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        await client.send(Query(sql).encode())
        await client.send(b"\x0e")  # a ping that is sent ahead is no reason to go on waiting
        (session,) = server.sessions()
        async with asyncio.timeout(SECONDS_MAX):
            while session.runner.running != sql:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0)
    await until_sessions(server, 0)


async def test_what_is_sent_ahead_of_an_answer_is_answered_behind_it(serve, store):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        client.writer.write(frame(Query("SELECT SLEEP(0.05)").encode(), 0) + frame(b"\x0e", 0))
        replies = ReplyReader()
        while (reply := replies.add(await client.packet())) is None:
            pass
        assert list(reply.rows) == [(b"0",)]
        assert is_ok(await client.packet())
