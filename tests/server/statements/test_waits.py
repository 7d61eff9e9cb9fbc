"""Statements that wait: SLEEP, MASTER_GTID_WAIT, and what ends them."""

import threading
from time import monotonic

import pytest

from ibb.protocol.command import Query
from ibb.protocol.gtid import Gtid
from ibb.protocol.reply import parse_err
from ibb.server.sql import wait as sql_wait

from ..conftest import publish
from ..raw_client import SECONDS_MAX, RawClient
from ..waiting import until


class _Thread:
    """Holds the thread that looks whether a statement has to wait."""

    def __init__(self):
        self.inside, self.go = threading.Event(), threading.Event()

    def has_come(self, *_):
        self.inside.set()
        assert self.go.wait(SECONDS_MAX)
        return False


@pytest.fixture
def looking(monkeypatch):
    thread = _Thread()
    monkeypatch.setattr(sql_wait, "has_come", thread.has_come)
    yield thread
    thread.go.set()


async def test_kill_query_before_a_wait_has_begun_ends_it(serve, store, looking):
    server = await serve(store)
    async with (
        await RawClient.logged_in(server) as victim,
        await RawClient.logged_in(server) as killer,
    ):
        number = await victim.value("SELECT CONNECTION_ID()")
        await victim.send(Query("DO MASTER_GTID_WAIT('0-1-99')").encode())
        await until(looking.inside.is_set)
        await killer.query(f"KILL QUERY {number}")
        looking.go.set()
        assert parse_err(await victim.packet()).code == 1317
        assert await victim.value("SELECT 1") == "1"


async def test_the_time_of_a_statement_may_be_over_before_its_wait(serve, store, looking):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        await client.query("SET max_statement_time = 0.01")
        await client.send(Query("DO MASTER_GTID_WAIT('0-1-99')").encode())
        await until(looking.inside.is_set)
        (session,) = server.sessions
        await until(lambda: session.runner._statements.context.interrupted)
        looking.go.set()
        assert parse_err(await client.packet()).code == 1969


@pytest.mark.parametrize("end", ["KILL QUERY", "max_statement_time"])
async def test_what_ends_a_wait_leaves_nothing_to_the_next_statement(serve, store, end):
    server = await serve(store)
    async with (
        await RawClient.logged_in(server) as client,
        await RawClient.logged_in(server) as killer,
    ):
        number = int(await client.value("SELECT CONNECTION_ID()"))
        runner = server.sessions.get(number).runner
        if end == "max_statement_time":
            await client.query("SET max_statement_time = 0.5")
        await client.send(Query("DO MASTER_GTID_WAIT('0-1-11', 0.1), SLEEP(3600)").encode())
        await until(lambda: runner._waiting is not None)
        first = runner._waiting
        await until(lambda: runner._waiting not in (None, first))
        if end == "KILL QUERY":
            await killer.query(f"KILL QUERY {number}")
        assert parse_err(await client.packet()).code in (1317, 1969)
        publish(store, Gtid(0, 1, 11))
        store.sync()
        assert await client.value("SELECT MASTER_GTID_WAIT('0-1-11', 20)") == "0"


@pytest.mark.parametrize(
    ("sql", "seconds"),
    [
        ("DO SLEEP(0.1), SLEEP(0.3)", 0.4),
        ("DO SLEEP(0.2), SLEEP(0.2)", 0.4),
        ("DO MASTER_GTID_WAIT('0-1-99', 0.1), MASTER_GTID_WAIT('0-1-99', 0.2)", 0.3),
        ("SELECT SLEEP(0.1) FROM information_schema.processlist", 0.1),
    ],
)
async def test_each_wait_of_a_statement_takes_its_time(serve, store, sql, seconds):
    async with await RawClient.logged_in(await serve(store)) as client:
        began = monotonic()
        await client.query(sql)
        assert monotonic() - began > seconds - 0.05  # timers may be a little early
