"""Semi-synchronous dumps over a real socket: framing, positions, and commits that wait."""

import asyncio
import socket
import threading

import pytest

from ibb.protocol.errors import SqlError
from ibb.protocol.event import EventHeader, EventType
from ibb.protocol.gtid import Gtid
from ibb.protocol.rotate import Rotate
from ibb.protocol.stream_position import StreamPosition
from ibb.server.config import Config, ConfigError
from ibb.server.server import Server

from ..conftest import publish
from ..raw_client import RawClient, until_sessions
from ..waiting import until

pytestmark = pytest.mark.tiny

LONG_MS = 1_000_000
NAME = "ibb-bin.000001"


@pytest.fixture
async def waiting_server(serve, store):
    return await serve(
        store, rpl_semi_sync_master_enabled=True, rpl_semi_sync_master_timeout=LONG_MS
    )


async def semi_sync_dump(server, position, **options):
    client = await RawClient.logged_in(server)
    await client.prepare(position, rpl_semi_sync_slave=1)
    dump = await client.dump(semi_sync=True, **{"server_id": 5} | options)
    await dump.preamble(rotate_checksum=True)
    return dump


class Commit:
    """A publisher's commit in a thread of its own."""

    def __init__(self, store, gtid, size=0):
        self.thread = threading.Thread(
            target=publish, args=(store, gtid, size), kwargs={"wait": True}
        )
        self.thread.start()

    @property
    def waits(self):
        return self.thread.is_alive()

    async def returned(self):
        await asyncio.to_thread(self.thread.join, 20)
        assert not self.thread.is_alive()


def wire_bytes(group):
    return sum(len(event) + 4 for event in group.events)  # each with its checksum


async def test_a_commit_returns_when_its_group_is_acknowledged(waiting_server, store):
    dump = await semi_sync_dump(waiting_server, "0-1-8")
    had = await dump.groups(2)
    assert not dump.asked  # nobody waits for what was there before
    commit = Commit(store, Gtid(0, 1, 11))
    group = await dump.next_group()
    assert dump.asked
    position = 4 + sum(map(wire_bytes, [*had, group]))
    assert EventHeader.unpack(group.events[-1]).log_pos == position
    assert commit.waits
    await dump.client.acknowledge("other.000001", position)
    await dump.client.acknowledge(NAME, position - 1)
    sessions = "Rpl_semi_sync_master_wait_sessions"
    await until(lambda: waiting_server.status()[sessions] == "1")  # the dump may be the faster
    async with await RawClient.logged_in(waiting_server) as other:
        assert await other.rows(f"SHOW STATUS LIKE '{sessions}'") == [(sessions, "1")]
    await dump.client.acknowledge(NAME, position)
    await commit.returned()
    assert waiting_server.status()["Rpl_semi_sync_master_yes_tx"] == "1"
    (line,) = waiting_server.readers()
    assert line.ack_age is not None
    assert 0 <= line.ack_age < 60
    await dump.client.close()


async def test_positions_grow_by_the_bytes_sent_and_sequence_ids_begin_anew(waiting_server, store):
    dump = await semi_sync_dump(waiting_server, "0-1-10")
    position = 4
    for seq in range(11, 15):
        commit = Commit(store, Gtid(0, 1, seq), size=300_000 if seq == 12 else 0)
        group = await dump.next_group()  # checks the sequence ids
        for event in group.events:
            position += len(event) + 4
            assert EventHeader.unpack(event).log_pos == position
        await dump.client.acknowledge(NAME, position)
        await commit.returned()
    await dump.client.close()


async def test_a_reply_to_the_last_of_several_lets_all_go(waiting_server, store):
    commits = [Commit(store, Gtid(0, 1, 11))]
    dump = await semi_sync_dump(waiting_server, "0-1-10")
    await dump.next_group()
    commits.append(Commit(store, Gtid(0, 1, 12)))
    await dump.next_group()
    assert all(commit.waits for commit in commits)
    await dump.client.acknowledge(NAME, dump.last_log_pos)
    for commit in commits:
        await commit.returned()
    await dump.client.close()


async def test_a_replica_that_comes_back_with_the_group_has_acknowledged_it(waiting_server, store):
    dump = await semi_sync_dump(waiting_server, "0-1-10")
    commit = Commit(store, Gtid(0, 1, 11))
    await dump.next_group()
    await dump.client.close()
    await until_sessions(waiting_server, 0)
    assert commit.waits
    again = await semi_sync_dump(waiting_server, "0-1-11")
    await commit.returned()
    await again.client.close()


async def test_a_replica_that_comes_back_without_the_group_is_asked_again(waiting_server, store):
    dump = await semi_sync_dump(waiting_server, "0-1-10")
    commit = Commit(store, Gtid(0, 1, 11))
    await dump.next_group()
    assert dump.asked
    await dump.client.close()
    await until_sessions(waiting_server, 0)
    again = await semi_sync_dump(waiting_server, "0-1-9")
    await again.groups(2)
    assert again.asked
    assert commit.waits
    await again.client.acknowledge(NAME, again.last_log_pos)
    await commit.returned()
    await again.client.close()


async def test_until_vouches_for_nothing(waiting_server, store):
    client = await RawClient.logged_in(waiting_server)
    await client.prepare("0-1-10", rpl_semi_sync_slave=1, slave_until_gtid="3-1-1")
    commit = Commit(store, Gtid(0, 1, 11))
    dump = await client.dump(semi_sync=True, server_id=5, non_block=True)
    await dump.preamble(rotate_checksum=True)
    assert await dump.groups() == []
    assert commit.waits
    await client.close()
    ready = await semi_sync_dump(waiting_server, "0-1-11")
    await commit.returned()
    await ready.client.close()


async def test_without_semi_sync_on_packets_are_framed_and_nothing_is_asked(serve, store):
    server = await serve(store)
    publish(store, Gtid(0, 1, 11), wait=True)  # does not wait
    dump = await semi_sync_dump(server, "0-1-8", non_block=True)
    for _ in range(3):
        await dump.next_group()
        assert not dump.asked
    assert await dump.event() is None  # EOF is not framed so
    await dump.client.close()


async def test_an_error_is_not_framed_as_an_event(waiting_server):
    client = await RawClient.logged_in(waiting_server)
    await client.prepare("0-1-99", rpl_semi_sync_slave=1)
    dump = await client.dump(semi_sync=True, server_id=5)
    with pytest.raises(SqlError, match="1236"):
        await dump.event()
    await client.close()


async def test_a_stream_begins_new_files_that_only_it_knows(waiting_server, store, monkeypatch):
    monkeypatch.setattr(
        "ibb.server.dump.dump_stream.StreamPosition", lambda name: StreamPosition(name, 1000)
    )
    dump = await semi_sync_dump(waiting_server, "")
    names = [NAME]
    for seq in range(11, 15):
        commit = Commit(store, Gtid(0, 1, seq), size=800)
        while not dump.asked:
            header, event = await dump.event()
            if header.type == EventType.ROTATE:
                rotate = Rotate.parse(event)
                assert rotate.position == 4
                names.append(rotate.file_name)
        dump.asked = False
        await dump.client.acknowledge(names[-1], dump.last_log_pos)
        await commit.returned()
    assert names == [f"ibb-bin.{number:06d}" for number in range(1, len(names) + 1)]
    assert len(names) > 3
    await dump.client.close()


async def test_clients_below_capability_4_get_running_positions(serve, store):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        await client.prepare("0-1-5", capability=0)
        dump = await client.dump(non_block=True)
        await dump.preamble(rotate_checksum=True)
        position = 4
        events = 0
        while (found := await dump.event()) is not None:
            position += len(found[1]) + 4
            assert found[0].log_pos == position
            events += 1
        assert events == 15


async def test_commits_have_no_gate_before_they_wait_for_the_first_time(serve, store):
    # With one they are written group by group, without it a relay writes runs of them at once.
    server = await serve(store, rpl_semi_sync_master_timeout=LONG_MS)
    assert store.commits.gate is None
    await asyncio.to_thread(publish, store, Gtid(0, 1, 11), wait=True)
    server.set_global("rpl_semi_sync_master_enabled", 1)
    dump = await semi_sync_dump(server, "0-1-11")
    commit = Commit(store, Gtid(0, 1, 12))
    group = await dump.next_group()
    assert dump.asked
    assert commit.waits
    await dump.client.acknowledge(NAME, EventHeader.unpack(group.events[-1]).log_pos)
    await commit.returned()
    gate = store.commits.gate
    server.set_global("rpl_semi_sync_master_enabled", 0)
    assert store.commits.gate is gate  # one who commits may have found it there
    await asyncio.to_thread(publish, store, Gtid(0, 1, 13), wait=True)
    await dump.client.close()
    await server.stop()
    server.semi_sync.enabled = True
    store.commits.gate = None
    server.semi_sync.enabled = False
    server.semi_sync.enabled = True
    assert store.commits.gate is None  # it has let go of the store


async def test_a_server_that_cannot_start_leaves_no_commit_waiting(serve, store):
    host, port = (await serve(store)).address
    options = {"rpl_semi_sync_master_enabled": True, "rpl_semi_sync_master_timeout": LONG_MS}
    with pytest.raises(ConfigError, match="in use"):
        await serve(store, listen=f"{host}:{port}", **options)
    commit = Commit(store, Gtid(0, 1, 11))
    await commit.returned()


async def test_a_server_that_is_started_again_has_commits_wait(store, tmp_path):
    taken = socket.create_server(("127.0.0.1", 0))
    config = Config(listen=f"127.0.0.1:{taken.getsockname()[1]}", rpl_semi_sync_master_enabled=True)
    server = Server(store, config=config, place=str(tmp_path))
    with pytest.raises(ConfigError, match="in use"):
        await server.start()
    taken.close()
    await server.start()
    assert server.semi_sync.enabled
    assert store.commits.gate is not None
    await server.stop()
