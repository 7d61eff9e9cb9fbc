"""KILL: who may end what, and how that looks to who is ended."""

import pytest

from ibb.protocol.command import Query
from ibb.protocol.reply import is_err, is_ok, parse_err
from ibb.server.accounts import AccountBook, make_account

from .raw_client import RawClient, until_sessions
from .waiting import until


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
    runner = server.session(number).runner
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
        assert await killer.value("SELECT 1") == "1"


async def test_kill_user_ends_all_of_it_but_the_own_connection(serve, store):
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
