"""KILL: who may end what, and how that looks to who is ended."""

import asyncio
import itertools
import threading

import pytest

from ibb.protocol.command import Query, SetOption
from ibb.protocol.reply import is_eof, is_err, is_ok, parse_err
from ibb.protocol.statement_command import StmtPrepare
from ibb.server.login.accounts import AccountBook, make_account
from ibb.server.pools import LONG_STATEMENT_THREADS
from ibb.server.statements import events as statements_events
from ibb.storage.group_reader import GroupReader

from ..raw_client import SECONDS_MAX, RawClient, dumping, until_sessions
from ..waiting import until


@pytest.fixture
def accounts():
    return AccountBook(
        [
            make_account("repl", "%", "secret", ["ALL PRIVILEGES"]),
            make_account("poor", "%", "secret"),
        ]
    )


async def answer(client, sql):
    """Return the error's code, or 0."""
    await client.send(Query(sql).encode())
    payload = await client.packet()
    return parse_err(payload).code if is_err(payload) else 0


async def sleeping(client, server, sql):
    """Begin a statement that waits, and return its connection's id once it does."""
    number = int(await client.value("SELECT CONNECTION_ID()"))
    await client.send(Query(sql).encode())
    runner = server.sessions.get(number).runner
    await until(lambda: runner.running == sql and runner._waiting is not None)
    return number


@pytest.mark.parametrize("sql", ["DO SLEEP(3600)", "DO MASTER_GTID_WAIT('0-1-99')"])
async def test_kill_query_ends_what_waits_and_leaves_the_connection(serve, store, sql):
    server = await serve(store)
    async with (
        await RawClient.logged_in(server) as victim,
        await RawClient.logged_in(server) as killer,
    ):
        number = await sleeping(victim, server, sql)
        assert await answer(killer, f"KILL QUERY {number}") == 0
        assert parse_err(await victim.packet()).code == 1317
        assert await victim.value("SELECT 1") == "1"


async def test_kill_query_of_who_does_nothing_changes_nothing(serve, store):
    server = await serve(store)
    async with (
        await RawClient.logged_in(server) as victim,
        await RawClient.logged_in(server) as killer,
    ):
        number = await victim.value("SELECT CONNECTION_ID()")
        assert await answer(killer, f"KILL QUERY {number}") == 0
        assert await victim.value("SELECT 1") == "1"
        assert await answer(killer, f"KILL {number}") == 0
        assert await victim.packet() is None


async def test_nobody_kills_others_without_the_privilege(serve, store):
    server = await serve(store)
    async with (
        await RawClient.logged_in(server) as victim,
        await RawClient.logged_in(server, "poor") as killer,
        await RawClient.logged_in(server, "poor") as other,
    ):
        number = await victim.value("SELECT CONNECTION_ID()")
        for sql in (f"KILL {number}", f"KILL QUERY {number}", "KILL USER repl"):
            assert await answer(killer, sql) == 1095
        assert await victim.value("SELECT 1") == "1"
        assert await answer(killer, "KILL USER nobody") == 0
        assert await answer(killer, "KILL USER poor") == 0
        assert await other.packet() is None
        assert await killer.packet() is None


async def test_kill_user_ends_all_connections_of_that_user(serve, store):
    server = await serve(store)
    async with (
        await RawClient.logged_in(server, "poor") as first,
        await RawClient.logged_in(server, "poor") as second,
        await RawClient.logged_in(server) as killer,
    ):
        assert await answer(killer, "KILL USER poor") == 0
        assert await first.packet() is None
        assert await second.packet() is None
        await until_sessions(server, 1)
        await killer.send(Query("DO 1").encode())
        assert is_ok(await killer.packet())


class _Endless:
    """A reader of groups that begins anew at the end."""

    def __init__(self, pages, start):
        self._reader, self._again = GroupReader(pages, start), lambda: GroupReader(pages, start)

    def next(self):
        if (group := self._reader.next()) is None:
            self._reader = self._again()
            group = self._reader.next()
        return group


EVENTS = "SHOW BINLOG EVENTS LIMIT 999999999,1"


@pytest.fixture
def busy(monkeypatch):
    """Return a function that has the threads for long statements and twice as many wait."""
    monkeypatch.setattr(statements_events, "GroupReader", _Endless)

    async def begin(server):
        clients = [await RawClient.logged_in(server) for _ in range(3 * LONG_STATEMENT_THREADS)]
        for client in clients:
            await client.send(Query(EVENTS).encode())
        await until(lambda: len(running(server)) == len(clients))
        return clients

    return begin


def running(server):
    return [one.id for one in server.sessions if one.runner.running == EVENTS]


async def none_is_left(server):
    """Wait for the threads: nothing else can run in them."""
    await until(lambda: not running(server))
    pool = server.pools.long_statements
    every = threading.Barrier(LONG_STATEMENT_THREADS)
    await asyncio.gather(
        *(
            asyncio.wrap_future(pool.submit(every.wait, SECONDS_MAX))
            for _ in range(LONG_STATEMENT_THREADS)
        )
    )


async def test_long_statements_keep_no_replica_from_beginning(serve, store, busy):
    server = await serve(store)
    clients = await busy(server)
    dump = await dumping(server, "0-1-9", server_id=5)
    assert [str(group.gtid) for group in await dump.groups()] == ["0-1-10"]
    async with await RawClient.logged_in(server) as replica:
        assert await replica.rows("SHOW VARIABLES LIKE 'SERVER_ID'") == [("server_id", "99")]
        assert await replica.value("SELECT @@gtid_binlog_pos") == "0-1-10"
    assert len(running(server)) == len(clients)
    await dump.client.close()
    for client in clients:
        await client.close()


@pytest.mark.parametrize("word", ["KILL QUERY", "KILL"])
async def test_kill_ends_a_long_statement_and_one_that_waits_for_its_turn(serve, store, busy, word):
    server = await serve(store)
    clients = await busy(server)
    async with await RawClient.logged_in(server) as killer:
        for number in running(server):
            assert await answer(killer, f"{word} {number}") == 0
        await none_is_left(server)
        for client in clients:
            if word == "KILL":
                assert await client.packet() is None
            else:
                assert parse_err(await client.packet()).code == 1317
                assert await client.value("SELECT 1") == "1"
            await client.close()


async def test_a_long_statement_ends_with_its_client(serve, store, busy):
    server = await serve(store)
    for client in await busy(server):
        await client.close()
    await none_is_left(server)
    await until_sessions(server, 0)
    assert running(server) == []


async def test_a_server_stops_while_statements_take_long(serve, store, busy):
    server = await serve(store)
    clients = await busy(server)
    async with asyncio.timeout(SECONDS_MAX):
        await server.stop()
    assert running(server) == [] == list(server.sessions)
    for client in clients:
        await client.close()


async def test_to_prepare_a_long_statement_takes_no_time(serve, store, busy):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        await client.send(StmtPrepare(EVENTS).encode())
        reply = await client.packet()
        assert reply[0] == 0


async def test_kill_query_ends_a_text_between_its_statements(serve, store):
    server = await serve(store)
    async with (
        await RawClient.logged_in(server) as victim,
        await RawClient.logged_in(server) as killer,
    ):
        number = int(await victim.value("SELECT CONNECTION_ID()"))
        await victim.send(SetOption(0).encode())
        assert is_eof(await victim.packet())
        await victim.send(Query("DO 1;" * 800).encode())
        assert is_ok(await victim.packet())
        assert await answer(killer, f"KILL QUERY {number}") == 0
        answered = 1
        while is_ok(payload := await victim.packet()):
            answered += 1
        assert parse_err(payload).code == 1317
        assert answered < 800
        assert await victim.value("SELECT 1") == "1"


@pytest.mark.parametrize("sql", ["KILL CONNECTION_ID()", "DO 1; KILL SOFT CONNECTION_ID(); DO 2"])
async def test_to_kill_oneself_is_an_error_and_the_end(serve, store, sql):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        await client.send(SetOption(0).encode())
        assert is_eof(await client.packet())
        await client.send(Query(sql).encode())
        while is_ok(payload := await client.packet()):
            pass
        assert parse_err(payload).code == 1927
        assert await client.packet() is None
    async with await RawClient.logged_in(server) as client:
        number = int(await client.value("SELECT CONNECTION_ID()"))
        await client.send(b"\x0c" + number.to_bytes(4, "little"))  # COM_PROCESS_KILL
        assert parse_err(await client.packet()).code == 1927
        assert await client.packet() is None


async def test_kill_query_of_oneself_is_an_error_only(serve, store):
    async with await RawClient.logged_in(await serve(store)) as client:
        assert await answer(client, "KILL QUERY CONNECTION_ID()") == 1317
        assert await answer(client, "KILL QUERY USER repl") == 0
        assert await client.value("SELECT 1") == "1"


async def test_kill_query_user_ends_statements_and_no_connection(serve, store):
    server = await serve(store)
    async with (
        await RawClient.logged_in(server, "poor") as victim,
        await RawClient.logged_in(server) as killer,
    ):
        await sleeping(victim, server, "DO SLEEP(3600)")
        assert await answer(killer, "KILL QUERY USER poor") == 0
        assert parse_err(await victim.packet()).code == 1317
        assert await victim.value("SELECT 1") == "1"


async def test_an_administrator_ends_connections_that_have_not_logged_in(serve, store):
    server = await serve(store)
    async with (
        await RawClient.logged_in(server) as killer,
        await RawClient.logged_in(server, "poor") as poor,
        await RawClient.connect(server.address) as stranger,
    ):
        await stranger.read_greeting()
        ((number, *_),) = [
            row for row in await killer.rows("SHOW PROCESSLIST") if row[1] == "unauthenticated user"
        ]
        assert await answer(poor, f"KILL {number}") == 1095
        assert await answer(killer, f"KILL QUERY {number}") == 0
        assert server.sessions.get(int(number)) is not None
        assert await answer(killer, f"KILL {number}") == 0
        assert await stranger.packet() is None
        await until_sessions(server, 2)
        assert await answer(killer, f"KILL {number}") == 1094


async def test_kill_query_of_a_dump_ends_it_with_eof(serve, store):
    server = await serve(store)
    dump = await dumping(server, "0-1-5", server_id=5, non_block=False)
    (number,) = [one.id for one in server.sessions]
    assert len(await dump.groups(5)) == 5
    async with await RawClient.logged_in(server) as killer:
        assert await answer(killer, f"KILL QUERY {number}") == 0
    assert await dump.next_group() is None
    assert await dump.client.packet() is None
    await dump.client.close()


async def test_what_only_the_session_can_do_can_be_prepared_by_name(serve, store):
    async with await RawClient.logged_in(await serve(store)) as client:
        assert await answer(client, "PREPARE s FROM 'KILL QUERY ?'") == 0
        assert await answer(client, "EXECUTE s USING 99") == 1094
        assert await client.value("SELECT 1") == "1"


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("leases", ("a", "", None, 0, 0, "No")),
        ("readers", (1, "u", "h", 5, "", "f", 4, 0, 0, None, "f", "")),
    ],
)
async def test_what_looks_into_the_files_for_each_row_looks_whether_it_is_wanted(
    serve, store, monkeypatch, what, line
):
    """There may be thousands of them."""
    server = await serve(store)
    monkeypatch.setattr(server, what, lambda: itertools.repeat(line))
    sql = f"SHOW BINLOG {what.upper()}"
    async with (
        await RawClient.logged_in(server) as victim,
        await RawClient.logged_in(server) as killer,
    ):
        number = await victim.value("SELECT CONNECTION_ID()")
        await victim.send(Query(sql).encode())
        await until(lambda: any(one.runner.running == sql for one in server.sessions))
        assert await answer(killer, f"KILL QUERY {number}") == 0
        assert parse_err(await victim.packet()).code == 1317
        await victim.send(StmtPrepare(sql).encode())
        assert (await victim.packet())[0] == 0


async def test_kill_query_behind_the_last_answer_is_no_second_answer(serve, store):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        (session,) = server.sessions
        answers = []
        async for payloads in session.runner.query("DO 1"):
            answers.append(payloads)
            session.runner.interrupt()  # while the client is slow to take it
        assert len(answers) == 1
        assert await client.value("SELECT 1") == "1"


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("SLEEP(0.01)", 1094),
        ("MASTER_GTID_WAIT('0-1-99', 0.01)", 1094),
        ("1e308 * 10", 1690),
        ("-'x' / 1e-400", 1094),
    ],
)
async def test_whom_kill_names_is_computed_like_any_value(serve, store, target, code):
    async with await RawClient.logged_in(await serve(store)) as client:
        assert await answer(client, f"KILL {target}") == code
        assert await client.value("SELECT 1") == "1"
