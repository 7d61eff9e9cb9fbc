"""MASTER_GTID_WAIT: how its arguments are read, and how long it waits."""

import asyncio

import pytest

from ibb.protocol.command import Query
from ibb.protocol.errors import SqlError
from ibb.protocol.gtid import Gtid
from ibb.protocol.result_set import ReplyReader

from ..conftest import publish
from ..raw_client import RawClient
from ..waiting import until


@pytest.fixture
async def client(serve, store):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        yield client


@pytest.mark.parametrize("seconds", ["-1", "NULL"])
async def test_less_than_nothing_is_for_ever(serve, store, seconds):
    server = await serve(store)
    sql = f"SELECT MASTER_GTID_WAIT('0-1-11', {seconds})"
    async with await RawClient.logged_in(server) as client:
        await client.send(Query(sql).encode())
        (session,) = server.sessions
        await until(lambda: session.runner._waiting is not None)
        await asyncio.sleep(0)
        publish(store, Gtid(0, 1, 11), wait=True)
        replies = ReplyReader()
        while (reply := replies.add(await client.packet())) is None:
            pass
    assert list(reply.rows) == [(b"0",)]


@pytest.mark.parametrize(
    ("gtids", "found"),
    [("0-1-1", "0"), (" 0-1-1", "0"), ("0-1-1,0-1-12", "-1"), ("0-1-1, 1-1-1", "-1"), ("", "0")],
)
async def test_every_gtid_of_the_list_counts(client, gtids, found):
    assert await client.value(f"SELECT MASTER_GTID_WAIT('{gtids}', 0)") == found


@pytest.mark.parametrize(
    ("argument", "code"),
    [("'0-1-1 '", 1941), ("'0-1-1 ,1-1-1'", 1941), ("' '", 1941), ("'0-1-1,'", 1941), ("5", 4079)],
)
async def test_what_is_no_list_is_refused(client, argument, code):
    with pytest.raises(SqlError) as refused:
        await client.query(f"SELECT MASTER_GTID_WAIT({argument}, 0)")
    assert refused.value.code == code
