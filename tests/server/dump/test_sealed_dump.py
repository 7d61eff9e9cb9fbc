"""Dumps through TLS, encrypted by the threads that make them: the same groups as without."""

import asyncio

import pytest

from ibb.protocol.gtid import Gtid
from ibb.server.config import BATCH_BYTES
from ibb.server.connections.connection import Connection
from ibb.server.connections.tls_channel import TlsFailed
from ibb.server.dump import dump_session, socket_pump
from ibb.server.dump.packet_buffers import LONG_BYTES
from ibb.server.dump.socket_pump import SEALED_BYTES_MAX, PumpTurns

from ..conftest import publish
from ..raw_client import dumping
from ..waiting import until

GROUPS = 120
GROUP_BYTES = 90_000


@pytest.fixture
async def server(serve, store):
    for seq in range(11, 11 + GROUPS):
        publish(store, Gtid(0, 1, seq), GROUP_BYTES if seq % 3 else 100)
    store.sync()
    return await serve(store)


async def encrypted(server, **options):
    return await dumping(server, "0-1-10", tls=True, **options)


async def plain(server):
    dump = await dumping(server, "0-1-10")
    groups = await dump.groups()
    await dump.client.close()
    assert len(groups) == GROUPS
    return groups


@pytest.mark.parametrize("sealed", [SEALED_BYTES_MAX, 4 * BATCH_BYTES, 0])
async def test_readers_get_what_others_get_without_tls(server, monkeypatch, sealed):
    """For one there is enough, or for none; one reads slowly."""
    monkeypatch.setattr(socket_pump, "SEALED_BYTES_MAX", sealed)
    expected = await plain(server)
    dumps = [await encrypted(server) for _ in range(3)]
    dumps[0].client.writer.transport.pause_reading()
    reading = [asyncio.create_task(dump.groups()) for dump in dumps]
    assert await reading[1] == await reading[2] == expected
    dumps[0].client.writer.transport.resume_reading()
    assert await reading[0] == expected
    for dump in dumps:
        await dump.client.close()


async def test_nothing_is_encrypted_by_the_event_loop(server, monkeypatch):
    """But what it makes itself."""
    sizes, write = [], Connection.write

    async def noted(self, data):
        sizes.append(len(data) if self.encrypted else 0)
        await write(self, data)

    monkeypatch.setattr(Connection, "write", noted)
    dump = await encrypted(server)
    before = sum(sizes)
    assert len(await dump.groups()) == GROUPS
    assert sum(sizes) - before < 100  # EOF
    await dump.client.close()


@pytest.mark.parametrize(("slow_seconds", "ahead"), [(-1.0, BATCH_BYTES), (60.0, LONG_BYTES)])
async def test_one_that_takes_its_time_has_little_ahead(server, monkeypatch, slow_seconds, ahead):
    wanted, seal = [], Connection.seal

    def noted(self, data):
        (session,) = server.sessions
        wanted.append(session._dump._stream.apart_bytes)
        seal(self, data)

    monkeypatch.setattr(Connection, "seal", noted)
    monkeypatch.setattr(dump_session, "SLOW_SECONDS", slow_seconds)
    dump = await encrypted(server)
    assert len(await dump.groups()) == GROUPS
    await dump.client.close()
    assert wanted[0] == LONG_BYTES  # nobody knows yet
    assert set(wanted[2:]) == {ahead}


async def test_who_has_everything_is_not_counted(server):
    turns = server.pools.turns
    one = await encrypted(server, non_block=False, server_id=5)
    other = await encrypted(server, non_block=False, server_id=6)
    assert len(await one.groups(GROUPS)) == GROUPS
    other.client.writer.transport.pause_reading()
    await until(lambda: turns.sealing == 1)
    other.client.writer.transport.resume_reading()
    assert len(await other.groups(GROUPS)) == GROUPS
    await until(lambda: turns.sealing == 0)
    for dump in (one, other):
        await dump.client.close()
    await until(lambda: not len(server.sessions))
    assert turns.sealing == 0


async def test_one_that_leaves_while_it_is_sent_much_is_not_counted(server):
    dump = await encrypted(server)
    dump.client.writer.transport.abort()
    await until(lambda: not len(server.sessions))
    assert server.pools.turns.sealing == 0
    await plain(server)


async def test_a_batch_that_cannot_be_encrypted_ends_its_dump_alone(server, monkeypatch):
    seal, failed = Connection.seal, []

    def fail(self, data):
        if not failed and len(data) > BATCH_BYTES // 2:
            failed.append(len(data))
            raise TlsFailed("TLS failed: no way")
        seal(self, data)

    monkeypatch.setattr(Connection, "seal", fail)
    dump = await encrypted(server)
    while await dump.client.reader.read(1 << 16):
        pass
    assert failed
    await dump.client.close()
    await until(lambda: not len(server.sessions))
    other = await encrypted(server)
    assert await other.groups() == await plain(server)
    await other.client.close()


@pytest.mark.parametrize(("sealing", "size"), [
    (0, LONG_BYTES), (1, LONG_BYTES), (8, LONG_BYTES), (16, LONG_BYTES // 2), (64, 2 * BATCH_BYTES),
    (65, 0), (5000, 0),
])  # fmt: skip
def test_together_they_have_so_much(sealing, size):
    turns = PumpTurns(4)
    turns.sealing = sealing
    assert turns.sealed_bytes == size
    assert 2 * size * sealing <= SEALED_BYTES_MAX


@pytest.mark.parametrize(
    ("taken", "sealing", "crowded"), [(4, 0, False), (3, 1, False), (3, 2, True)]
)
def test_they_want_threads_like_others(taken, sealing, crowded):
    turns = PumpTurns(4)
    turns.taken, turns.sealing = taken, sealing
    assert turns.crowded == crowded
