"""Readers beside one that does not read: they and the writer lose nothing by it."""

import asyncio

from ibb.protocol.gtid import Gtid

from ..conftest import publish
from ..raw_client import RawClient, dumping
from ..waiting import until

READERS = 4
GROUPS = 40
GROUP_BYTES = 300_000


async def stalled_beside(server):
    """Return a client that has asked for a dump and reads nothing more."""
    client = await RawClient.logged_in(server)
    await client.prepare("0-1-10")
    await client.dump(server_id=5)
    client.writer.transport.pause_reading()
    return client


async def test_the_others_and_the_writer_go_on_beside_a_client_that_does_not_read(serve, store):
    server = await serve(store)
    stalled = await stalled_beside(server)
    readers = [await dumping(server, "0-1-10", non_block=False) for _ in range(READERS)]
    reading = [asyncio.create_task(reader.groups(GROUPS)) for reader in readers]
    for seq in range(11, 11 + GROUPS):
        await asyncio.to_thread(publish, store, Gtid(0, 1, seq), GROUP_BYTES, wait=True)
    found = await asyncio.gather(*reading)
    assert [group.gtid.seq for group in found[0]] == list(range(11, 11 + GROUPS))
    assert all(groups == found[0] for groups in found)
    assert len(server.sessions) == READERS + 1  # it has time yet
    stalled.writer.transport.resume_reading()
    await stalled.close()
    for reader in readers:
        await reader.client.close()


async def test_it_is_dropped_at_its_limit_and_the_log_says_why(serve, store, capfd):
    for seq in range(11, 11 + GROUPS):
        publish(store, Gtid(0, 1, seq), GROUP_BYTES)
    store.sync()
    server = await serve(store, net_write_timeout=2.0)
    stalled = await stalled_beside(server)
    (session,) = server.sessions
    readers = [await dumping(server, "0-1-10", non_block=False) for _ in range(READERS)]
    reading = [asyncio.create_task(reader.groups(GROUPS)) for reader in readers]
    await until(lambda: session not in server.sessions)
    found = await asyncio.gather(*reading)
    assert all(groups == found[0] and len(groups) == GROUPS for groups in found)
    publish(store, Gtid(0, 1, 11 + GROUPS), wait=True)
    assert {(await reader.next_group()).gtid.seq for reader in readers} == {11 + GROUPS}
    output = capfd.readouterr()
    (line,) = [line for line in (output.out + output.err).splitlines() if "dump_dropped" in line]
    assert "the client did not read for 2 s" in line
    await stalled.close()
    for reader in readers:
        await reader.client.close()
