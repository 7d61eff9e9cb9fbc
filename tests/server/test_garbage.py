"""What a session had goes when it ends, and does not wait for the garbage collector with pages."""

import asyncio
import gc

import pytest

from ibb.demo.dump_client import DumpClient
from ibb.protocol.errors import SqlError
from ibb.protocol.gtid import Gtid

from .conftest import publish
from .raw_client import until_sessions

SESSIONS = 5
HUGE = 20_000_000  # no client is sent that much before it is heard to be gone


def whole_dump(client, server_id):
    assert len(list(client.groups("0-1-1", server_id=server_id, wait=False))) == 9


def left_at_the_end(client, server_id):
    next(client.groups("0-1-9", server_id=server_id, wait=True))


def left_in_the_middle(client, server_id):
    next(client.groups("0-1-9", server_id=server_id, wait=False))


def refused(client, server_id):
    with pytest.raises(SqlError, match="not in the master's binlog"):
        next(client.groups("0-1-99", server_id=server_id, wait=True))


def statement(client, server_id):
    client.query(f"SELECT {server_id}")


def sessions(server, work):
    for number in range(SESSIONS):
        with DumpClient(server.address[1], "repl", "secret") as client:
            work(client, 100 + number)


@pytest.mark.parametrize(
    "work", [whole_dump, left_at_the_end, left_in_the_middle, refused, statement]
)
async def test_no_session_waits_for_the_garbage_collector(serve, store, work):
    if work is left_in_the_middle:
        publish(store, Gtid(0, 1, 11), HUGE, wait=True)
    server = await serve(store)
    await asyncio.to_thread(sessions, server, work)  # what is made once is made
    await until_sessions(server, 0)
    gc.collect()
    gc.disable()
    try:
        await asyncio.to_thread(sessions, server, work)
        await until_sessions(server, 0)
        await asyncio.sleep(0)  # callbacks of what has just ended
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        ours = [one for one in gc.garbage if type(one).__module__.startswith("ibb.server")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert ours == []
