"""Dumps that wait at the end, over real sockets: served by the loop, and ended by everything."""

import asyncio
import threading
from dataclasses import replace

import pytest

from ibb.protocol.errors import SqlError
from ibb.protocol.event import EventType
from ibb.protocol.gtid import Gtid
from ibb.protocol.heartbeat import Heartbeat
from ibb.server.dump.run_stream import RunStream
from ibb.storage.store import Store

from ...tiny import SMALL
from ..conftest import publish
from ..raw_client import RawClient, dumping, until_sessions
from ..waiting import until

pytestmark = pytest.mark.roomy
GONE_SECONDS = 20


def members(server):
    return [one for tail in server.tails._tails.values() for one in tail.members]


async def waiting(server, count=1, start="0-1-10", **options):
    """Return dumps of which each is served by the server's loop."""
    dumps = [await dumping(server, start, non_block=False, **options) for _ in range(count)]
    await until(lambda: len(members(server)) == count)
    return dumps


async def encrypted(server):
    """Return a dump through TLS that the server's loop serves."""
    dump = await dumping(server, "0-1-10", non_block=False, server_id=5, tls=True)
    await until(lambda: members(server))
    return dump


async def closed(dumps):
    for dump in dumps:
        await dump.client.close()


async def test_what_comes_reaches_all_without_a_thread(serve, store, monkeypatch):
    server = await serve(store)
    dumps = await waiting(server, 5)
    monkeypatch.setattr(RunStream, "next_batch", None)
    for seq in range(11, 41):
        publish(store, Gtid(0, 1, seq), size=seq * 10, wait=True)
        for dump in dumps:
            assert (await dump.next_group()).gtid.seq == seq  # which checks the sequence ids, too
    assert len(members(server)) == 5
    await closed(dumps)
    await until_sessions(server, 0)
    assert not members(server)


async def test_a_commit_of_a_thread_reaches_all(serve, store):
    server = await serve(store)
    dumps = await waiting(server, 3)

    def commit_many():
        for seq in range(11, 211):
            publish(store, Gtid(0, 1, seq), wait=seq % 7 == 0)
        store.sync()

    writing = threading.Thread(target=commit_many)
    writing.start()
    for dump in dumps:
        assert [one.gtid.seq for one in await dump.groups(200)] == list(range(11, 211))
    writing.join()
    await until(lambda: len(members(server)) == 3)
    await closed(dumps)


@pytest.mark.parametrize("mode", [0, 2])
async def test_what_no_commit_syncs_is_synced_for_them(serve, tmp_path, mode):
    options = replace(SMALL, flush_log_at_commit=mode, flush_log_interval=1e6)
    with Store.open(tmp_path / "store", options) as store:
        for seq in range(1, 13):
            publish(store, Gtid(0, 1, seq))
        server = await serve(store)
        dumps = await waiting(server, 3, "0-1-12")
        for seq in range(13, 31):
            publish(store, Gtid(0, 1, seq), wait=True)
            if seq % 3 == 0:
                for dump in dumps:
                    assert (await dump.groups(3))[-1].gtid.seq == seq
        await closed(dumps)
        await server.stop()


async def test_heartbeats_come_behind_silence_only(serve, store):
    server = await serve(store)
    (dump,) = await waiting(server, heartbeat=0.4)
    loop, begun = asyncio.get_running_loop(), asyncio.get_running_loop().time()
    for seq in range(11, 61):
        publish(store, Gtid(0, 1, seq), wait=True)
        assert (await dump.next_group()).gtid.seq == seq
        await asyncio.wait([asyncio.create_task(dump.client.reader.read(0))], timeout=0.01)
    spoken_at = loop.time()
    header, event = await dump.event()
    assert header.type == EventType.HEARTBEAT
    assert spoken_at + 0.3 < loop.time()
    assert loop.time() > begun + 0.4
    beat = Heartbeat.parse(event)
    publish(store, Gtid(0, 1, 61), wait=True)
    group = await dump.next_group()
    header, event = await dump.event()
    assert header.type == EventType.HEARTBEAT
    assert (
        Heartbeat.parse(event).position
        == beat.position + sum(map(len, group.events)) + 4 * len(group.events) * dump.checksum
    )
    assert len(members(server)) == 1
    await closed([dump])


async def test_readers_are_shown_where_they_are(serve, store):
    server = await serve(store)
    dumps = await waiting(server, 2)
    publish(store, Gtid(0, 1, 11), wait=True)
    for dump in dumps:
        assert (await dump.next_group()).gtid.seq == 11
    async with await RawClient.logged_in(server, "admin", "mighty") as client:
        for row in await client.rows("SHOW BINLOG READERS"):
            assert "0-1-11" in row
            assert f"{store.end().offset}" in row
    assert sum(session.is_idle_dump for session in server.sessions) == 2
    await closed(dumps)


async def test_the_end_of_the_server_is_told(serve, store):
    server = await serve(store)
    dumps = await waiting(server, 3)
    stopping = asyncio.create_task(server.stop())
    for dump in dumps:
        with pytest.raises(SqlError, match="shutdown"):
            await dump.groups()
    await closed(dumps)
    await stopping


async def test_one_that_is_killed_leaves_and_the_others_stay(serve, store):
    server = await serve(store)
    killed, other = await waiting(server, 2)
    async with await RawClient.logged_in(server, "admin", "mighty") as client:
        await client.query(f"KILL {killed.client.greeting.connection_id}")
    with pytest.raises(SqlError):
        await killed.groups()
    await until(lambda: len(members(server)) == 1)
    publish(store, Gtid(0, 1, 11), wait=True)
    assert (await other.next_group()).gtid.seq == 11
    await closed([killed, other])


async def test_one_that_does_not_read_is_dropped_and_holds_up_nobody(serve, store):
    server = await serve(store, net_write_timeout=1)
    stalled, other = await waiting(server, 2)
    stalled.client.writer.transport.pause_reading()
    for seq in range(11, 1011):
        publish(store, Gtid(0, 1, seq), size=30_000, wait=seq % 10 == 0)
    store.sync()
    async with asyncio.timeout(GONE_SECONDS):
        assert len(await other.groups(1000)) == 1000
    await until_sessions(server, 1)
    await until(lambda: len(members(server)) == 1)
    await closed([stalled, other])


async def test_an_encrypted_reader_is_served_too(serve, store):
    server = await serve(store)
    dump = await encrypted(server)
    for seq in range(11, 31):
        publish(store, Gtid(0, 1, seq), size=3000, wait=True)
        assert (await dump.next_group()).gtid.seq == seq
    assert len(members(server)) == 1
    await closed([dump])


async def test_a_rate_that_is_set_holds_for_who_waits_already(serve, store):
    server = await serve(store)
    (dump,) = await waiting(server)
    publish(store, Gtid(0, 1, 11), wait=True)
    assert (await dump.next_group()).gtid.seq == 11
    server.pacing.rate = 1 << 16
    publish(store, Gtid(3, 1, 1), wait=True)
    assert (await dump.next_group()).gtid == Gtid(3, 1, 1)
    assert not members(server)
    async with await RawClient.logged_in(server, "admin", "mighty") as client:
        ((*shown,),) = await client.rows("SHOW BINLOG READERS")
        assert "0-1-11,3-1-1" in shown
    server.pacing.rate = 0
    publish(store, Gtid(0, 1, 12), wait=True)
    assert (await dump.next_group()).gtid.seq == 12
    await until(lambda: len(members(server)) == 1)
    await closed([dump])


async def test_a_group_that_is_not_for_the_loop_comes_all_the_same(serve, store):
    server = await serve(store)
    (dump,) = await waiting(server)
    for seq, size in enumerate((100, 3 << 20, 100, 200_000, 100), 11):
        publish(store, Gtid(0, 1, seq), size=size, wait=True)
        assert (await dump.next_group()).gtid.seq == seq
    await until(lambda: len(members(server)) == 1)
    await closed([dump])


async def test_one_that_goes_on_by_itself_is_shown_where_others_had_sent_it_to(
    serve, store, monkeypatch
):
    server = await serve(store)
    (dump,) = await waiting(server)
    for seq in range(11, 14):
        publish(store, Gtid(0, 1, seq), wait=True)
        assert (await dump.next_group()).gtid.seq == seq
    (session,), end = server.sessions, store.end()
    shown, next_batch = [], RunStream.next_batch

    def look(stream, *terms):
        shown.append(session.progress().at.position)
        return next_batch(stream, *terms)

    monkeypatch.setattr(RunStream, "next_batch", look)
    publish(store, Gtid(0, 1, 14), size=500_000, wait=True)
    assert (await dump.next_group()).gtid.seq == 14
    assert shown[0] == end
    assert sorted(shown) == shown
    await closed([dump])
