"""Replicas that were refused are remembered until they are served, for a day, so many at most."""

import time

import pytest

from ibb.protocol.errors import SqlError
from ibb.server.dump.refused_dumps import KEPT_MAX, KEPT_SECONDS, RefusedDump, RefusedDumps

from ..raw_client import RawClient, dumping


def refused(server_id, at=0.0, text="purged"):
    return RefusedDump(server_id, f"10.0.0.{server_id}:4711", text, at)


def test_the_newest_of_each_replica_counts_for_a_day():
    dumps = RefusedDumps()
    for one in (refused(5), refused(6, 1.0), refused(5, 2.0, "damaged"), refused(0, 3.0)):
        dumps.note(one)
    assert dumps.count == 4
    assert dumps.lately(10.0) == [refused(5, 2.0, "damaged"), refused(6, 1.0)]
    assert dumps.lately(KEPT_SECONDS + 1.5) == [refused(5, 2.0, "damaged")]
    dumps.forget(5)
    dumps.forget(7)
    assert dumps.lately(10.0) == [refused(6, 1.0)]


def test_so_many_are_kept():
    dumps = RefusedDumps()
    for server_id in range(1, KEPT_MAX + 3):
        dumps.note(refused(server_id))
    assert [one.server_id for one in dumps.lately(0.0)] == list(range(KEPT_MAX + 2, 2, -1))
    assert dumps.count == KEPT_MAX + 2


async def test_a_replica_that_is_served_again_is_forgotten(serve, store):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        await client.prepare("0-1-99")
        with pytest.raises(SqlError):
            await (await client.dump(server_id=5)).event()
        (found,) = server.refused_dumps.lately(time.time())
        assert (found.server_id, found.peer.rpartition(":")[0]) == (5, "127.0.0.1")
        assert "not in the master's binlog" in found.text
    dump = await dumping(server, "0-1-10", non_block=False, server_id=5)
    assert server.refused_dumps.lately(time.time()) == []
    await dump.client.close()
