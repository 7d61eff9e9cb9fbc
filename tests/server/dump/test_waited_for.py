"""Clients that read slowly, each waited for by a thread that lets others work meanwhile."""

import pytest

from ibb.protocol.gtid import Gtid
from ibb.server.dump.readers import HeldUpBy

from ..conftest import publish
from ..raw_client import dumping, until_sessions
from ..waiting import until

SIZES = [100_000, 400_000]  # of groups: what a kernel makes, and what not
BYTES = 24_000_000  # more than the system keeps for a client
SLOW = 3


@pytest.fixture(params=SIZES)
def groups(request, store):
    """Return how many there are."""
    count = BYTES // request.param
    for seq in range(11, 11 + count):
        publish(store, Gtid(0, 1, seq), request.param)
    store.sync()
    return count


@pytest.fixture
async def server(serve, store, groups):
    return await serve(store, dump_threads=1)


async def slow_dump(server, number):
    dump = await dumping(server, "0-1-10", non_block=False, server_id=number)
    dump.client.writer.transport.pause_reading()
    return dump


@pytest.mark.kernel
async def test_one_thread_that_works_is_enough_beside_those_that_wait(server, groups):
    slow = [await slow_dump(server, number) for number in range(5, 5 + SLOW)]
    permits = server.pools.turns.permits
    await until(lambda: permits.resting == SLOW)
    quick = await dumping(server, "0-1-10", server_id=99)
    assert len(await quick.groups()) == groups
    for dump in slow:
        dump.client.writer.transport.resume_reading()
        assert len(await dump.groups(groups)) == groups
    await until(lambda: (permits.resting, permits.free) == (0, 1))
    for dump in (*slow, quick):
        await dump.client.close()
    await until_sessions(server, 0)


@pytest.mark.kernel
async def test_who_is_waited_for_holds_itself_up_and_what_it_took_counts_already(server, groups):
    dump = await slow_dump(server, 5)
    (session,) = server.sessions
    permits = server.pools.turns.permits
    await until(lambda: permits.resting and session.held_up_by() is HeldUpBy.CLIENT)
    sent = session.traffic[1]
    assert BYTES // 100 < sent < BYTES
    dump.client.writer.transport.resume_reading()
    assert len(await dump.groups(groups)) == groups
    await until(lambda: session.is_idle_dump)
    assert abs(session.traffic[1] - dump.client.received) < 1 << 12  # since the greeting
    assert session.held_up_by() is HeldUpBy.NOTHING
    await dump.client.close()
