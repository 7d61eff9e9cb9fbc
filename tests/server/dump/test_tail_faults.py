"""Readers at the end when one of them, its connection, or the tail itself goes wrong."""

import asyncio
import errno
import os
from types import SimpleNamespace

import pytest

from ibb.protocol.event import EventFlag
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import encode_gtid_event
from ibb.server.connections import connection as connection_module
from ibb.server.connections.tls_channel import TlsChannel, TlsFailed
from ibb.server.dump.tail import Tail
from ibb.server.dump.tails import Tails

from ...storage.events import TIMESTAMP, query, xid
from ..conftest import publish
from ..raw_client import dumping, until_sessions
from ..waiting import until
from .test_tail_dump import closed, encrypted, members, waiting

pytestmark = pytest.mark.roomy
BAD_RECORD = b"\x17\x03\x03\x00\x20" + bytes(32)
QUIET_SECONDS = 0.3


async def stall(server, store, dump):
    """Have a client read nothing, and the system take no more for it; return its session."""
    dump.client.writer.transport.pause_reading()
    (session,) = server.sessions
    for seq in range(11, 1011):
        publish(store, Gtid(0, 1, seq), size=50_000, wait=True)
        try:
            async with asyncio.timeout(QUIET_SECONDS):
                await until(lambda: [one.at.position for one in members(server)] == [store.end()])
        except TimeoutError:
            return session, seq
    raise AssertionError("the system takes everything")


@pytest.mark.parametrize("through_tls", [False, True])
async def test_one_that_does_not_read_is_waited_for_without_work(
    serve, store, monkeypatch, through_tls
):
    server = await serve(store, net_write_timeout=2)
    stalled = await encrypted(server) if through_tls else (await waiting(server))[0]
    await stall(server, store, stalled)
    joins, join = [], Tails.join
    monkeypatch.setattr(Tails, "join", lambda *who: joins.append(who) or join(*who))
    await until_sessions(server, 0)  # though nothing more came
    assert len(joins) < 10
    await closed([stalled])


async def test_what_the_system_has_not_taken_counts_as_not_sent(serve, store):
    server = await serve(store)
    (stalled,) = await waiting(server)
    session, seq = await stall(server, store, stalled)
    progress = session.progress()
    assert [gtid.seq for gtid in progress.reached] == [seq - 1]
    assert progress.at.position < store.end()
    assert not session.is_idle_dump
    stalled.client.writer.transport.resume_reading()
    assert len(await stalled.groups(seq - 10)) == seq - 10
    await until(lambda: session.is_idle_dump)
    assert [gtid.seq for gtid in session.progress().reached] == [seq]
    await closed([stalled])


async def test_the_end_of_one_connection_costs_the_others_nothing(serve, store, monkeypatch):
    server = await serve(store)
    bad = await encrypted(server)
    receive = TlsChannel.receive

    def meet(self, data):
        try:
            return receive(self, data)
        except TlsFailed:
            publish(store, Gtid(0, 1, 11), wait=True)  # which is told of while the session ends
            raise

    dumps = [await dumping(server, "0-1-10", non_block=False) for _ in range(4)]
    await until(lambda: len(members(server)) == 5)
    monkeypatch.setattr(TlsChannel, "receive", meet)
    bad.client.writer.transport.write(BAD_RECORD)
    await until_sessions(server, 4)
    for dump in dumps:
        assert (await dump.next_group()).gtid.seq == 11
    await closed([bad, *dumps])


async def test_bytes_for_which_the_system_has_no_memory_just_then_are_sent(
    serve, store, monkeypatch
):
    server = await serve(store)
    (dump,) = await waiting(server)

    def refuse(*_):
        raise OSError(errno.ENOBUFS, "no buffer space")

    with monkeypatch.context() as patch:
        patch.setattr(connection_module, "os", SimpleNamespace(write=refuse))
        publish(store, Gtid(0, 1, 11), wait=True)
        assert (await dump.next_group()).gtid.seq == 11
    assert os.write is not refuse
    publish(store, Gtid(0, 1, 12), wait=True)
    assert (await dump.next_group()).gtid.seq == 12
    await closed([dump])


async def test_readers_of_a_tail_that_fails_come_again(serve, store, monkeypatch):
    server = await serve(store)
    dumps = await waiting(server, 2)

    def fail(*_):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(Tail, "_send", fail)
        publish(store, Gtid(0, 1, 11), wait=True)
        await until_sessions(server, 0)  # nobody knows what they have
    (again,) = await waiting(server, start="0-1-11")
    publish(store, Gtid(0, 1, 12), wait=True)
    assert (await again.next_group()).gtid.seq == 12
    await closed([*dumps, again])


async def test_much_that_came_before_one_joined_is_sent_to_its_end(crowd):
    reader = crowd.add()
    reader.run()
    for number in range(100, 112):
        crowd.commit(number, 14_000, wait=False)
    crowd.history.sync()
    crowd.news()  # before its session knows that it waits
    assert reader.join()
    await until(lambda: reader.member.at.position == crowd.history.end())
    crowd.check()


async def test_groups_of_which_nothing_is_sent_count_as_reached(crowd):
    (reader,) = crowd.at_end(1, skip_marked=True)
    gtid, flag = Gtid(9, 1, 500), int(EventFlag.SKIP_REPLICATION)
    with crowd.history.begin() as group:
        for event in (encode_gtid_event(gtid, TIMESTAMP, 4), query("a"), xid(1)):
            flags = (int.from_bytes(event[17:19], "little") | flag).to_bytes(2, "little")
            group.write(event[:17] + flags + event[19:])
        group.commit(gtid)
    before = len(reader.data)
    crowd.news()
    assert len(reader.data) == before
    assert reader.member.reached()[9] == gtid
    crowd.check()
