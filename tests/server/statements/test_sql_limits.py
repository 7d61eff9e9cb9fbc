"""Statements that would exhaust the interpreter are answered like any other that is too much."""

import asyncio
import threading

import pytest

from ibb.protocol.command import Query, SetOption
from ibb.protocol.errors import SqlError
from ibb.protocol.packet import frame
from ibb.protocol.reply import is_eof, is_err, is_ok, parse_err
from ibb.protocol.result_set import ReplyReader
from ibb.server.sql import cursor as sql_cursor
from ibb.server.sql.cursor import NESTING_MAX, OPERATIONS_MAX
from ibb.server.sql.lexer import TOKENS_MAX, tokens
from ibb.server.sql.parser import parse_statement
from ibb.server.statements.runner import CUT_CHARS_MAX
from ibb.server.statements.statements import Statements

from ..raw_client import SECONDS_MAX, RawClient, until_sessions
from ..waiting import until


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
        (session,) = server.sessions
        runner = session.runner
        await until(lambda: runner.running == sql)
    await until_sessions(server, 0)
    assert runner.running is None


async def test_what_is_sent_ahead_of_an_answer_is_answered_behind_it(serve, store):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        client.writer.write(frame(Query("SELECT SLEEP(0.05)").encode(), 0) + frame(b"\x0e", 0))
        replies = ReplyReader()
        while (reply := replies.add(await client.packet())) is None:
            pass
        assert list(reply.rows) == [(b"0",)]
        assert is_ok(await client.packet())


NINES = "9" * 100


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT {NINES} * {NINES}",
        f"SELECT {NINES} / 7, 7/2*2",
        f"SELECT {NINES} % 7",
        f"SELECT CAST('{NINES}' AS DECIMAL(65,30))",
        "SELECT CAST(1e300 AS SIGNED)",
        "SELECT CAST('1e300' AS SIGNED)",
        "SELECT ROUND(1e300, 5), FLOOR(1e300), FLOOR(1e0), CEIL('x')",
        "SELECT FROM_UNIXTIME(1e300)",
        "SELECT REPLACE(@long, 'a', @long)",
        "SELECT CONCAT(@long, @long), CONCAT_WS(@long, @long, @long)",
        "SELECT @long + 1, -@long",
        "SELECT @long LIKE @pattern",
        "SELECT NOW() + INTERVAL 1e300 DAY",
        "SELECT SUBSTRING('abc', 1e300), LEFT('abc', -1e300)",
        f"SELECT 1 LIMIT {NINES}",
        "KILL NULL",
    ],
)
async def test_no_value_is_too_much_for_the_session(serve, store, sql):
    """An error of MariaDB's at most, soon, and the session goes on."""
    async with await RawClient.logged_in(await serve(store)) as client:
        await client.query(f"SET @long = '{'a' * 100_000}', @pattern = '{'%a' * 2000}b'")
        async with asyncio.timeout(SECONDS_MAX):
            await client.send(Query(sql).encode())
            answer = await client.packet()
        assert not is_err(answer) or parse_err(answer).code != 1105
        while not (is_err(answer) or is_ok(answer) or is_eof(answer)):
            answer = await client.packet()
        if is_eof(answer):
            while not is_eof(await client.packet()):
                pass
        assert await client.value("SELECT 1") == "1"


async def test_a_statement_that_takes_long_keeps_nobody_else_waiting(serve, store):
    server = await serve(store)
    may_end = threading.Event()
    long = server.pools.statements.submit(may_end.wait)
    async with await RawClient.logged_in(server) as client:
        assert await client.value("SELECT @@gtid_binlog_pos") == "0-1-10"
    assert not long.done()
    may_end.set()


async def several_allowed(client):
    await client.send(SetOption(0).encode())
    assert is_eof(await client.packet())


async def answer(client):
    replies = ReplyReader()
    while (reply := replies.add(await client.packet())) is None:
        pass
    return reply


async def test_a_text_of_many_statements_is_cut_once_and_lets_others_have_their_turns(
    serve, store, monkeypatch
):
    count, cuts, turn, turns = (TOKENS_MAX - 1) // 3, [], 0, set()
    monkeypatch.setattr(sql_cursor, "tokens", lambda sql: cuts.append(sql) or tokens(sql))
    one = Statements.answer
    monkeypatch.setattr(
        Statements, "answer", lambda self, statement: turns.add(turn) or one(self, statement)
    )

    async def count_turns():
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        await several_allowed(client)
        counting = asyncio.create_task(count_turns())
        await client.send(Query("SELECT 1;" * count).encode())
        for _ in range(count):
            assert list((await answer(client)).rows) == [(b"1",)]
        counting.cancel()
        assert len(turns) == count
        assert len(cuts) == 1


async def test_each_statement_of_a_text_is_answered_at_once(serve, store):
    async with await RawClient.logged_in(await serve(store)) as client:
        await several_allowed(client)
        await client.send(Query("SELECT 1; SELECT SLEEP(1000); SELECT 2").encode())
        assert list((await answer(client)).rows) == [(b"1",)]


async def test_nobody_sees_the_statements_behind_the_one_that_runs(serve, store):
    """They may have passwords in them."""
    server = await serve(store)
    waits = "SELECT SLEEP(1000)"
    async with (
        await RawClient.logged_in(server) as client,
        await RawClient.logged_in(server) as dba,
    ):
        await several_allowed(client)
        text = f"DO 1; /* now */ {waits} ; CHANGE MASTER TO MASTER_PASSWORD='topsecret'"
        await client.send(Query(text).encode())
        assert is_ok(await client.packet())
        await until(lambda: any(one.runner.running == waits for one in server.sessions))
        shown = await dba.rows("SHOW FULL PROCESSLIST")
        assert [row[7] for row in shown if row[7] and waits in row[7]] == [waits]


async def test_a_long_text_is_cut_by_a_thread(serve, store, monkeypatch):
    cutters = []
    monkeypatch.setattr(
        sql_cursor, "tokens", lambda sql: cutters.append(threading.current_thread()) or tokens(sql)
    )
    async with await RawClient.logged_in(await serve(store)) as client:
        assert await client.value("SELECT 1") == "1"
        assert cutters == [threading.current_thread()]
        long = "a" * CUT_CHARS_MAX
        assert await client.value(f"SELECT '{long}'") == long
        await several_allowed(client)
        await client.send(Query(f"DO 1; SELECT '{long}'").encode())
        assert is_ok(await client.packet())
        assert list((await answer(client)).rows) == [(long.encode(),)]
        with pytest.raises(SqlError) as refused:
            await client.query(f"SELECT '{long}")
        assert refused.value.code == 1064
        assert len(cutters) == 4
        assert threading.current_thread() not in cutters[1:]


async def test_a_text_that_calls_inside_each_other_double_is_bounded(serve, store):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        assert await client.value(f"SELECT LENGTH({'HEX(' * 20}'a'{')' * 20})") == str(1 << 20)
        with pytest.raises(SqlError) as refused:
            await client.query(f"SELECT LENGTH({'HEX(' * 21}'a'{')' * 21})")
        assert refused.value.code == 1235
