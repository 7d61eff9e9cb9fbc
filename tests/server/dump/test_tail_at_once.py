"""Few readers at the end are sent what is new by the thread of a relay that made it durable."""

import asyncio
import os
import select
import threading

import pytest
from structlog.testing import capture_logs

from ibb.protocol.event import EventType
from ibb.protocol.gtid import Gtid
from ibb.server.dump import tails
from ibb.server.dump.tail import Tail
from ibb.server.dump.tail_turns import TailTurns

from ..conftest import publish
from ..raw_client import until_sessions
from ..waiting import until
from .made_streams import packets_of
from .test_tail_dump import closed, members, waiting

SECONDS_MAX = 20
roomy = pytest.mark.roomy


def in_thread(call):
    """Call something in another thread while the loop stands still; return what it returns."""
    found = []
    thread = threading.Thread(target=lambda: found.append(call()))
    thread.start()
    thread.join(SECONDS_MAX)
    return found[0]


def relayed(server, store, seq):
    """Store a group as a relay does."""
    with server.signal.told_behind():
        publish(store, Gtid(0, 1, seq), wait=True)


@roomy
async def test_a_reader_is_sent_a_group_while_the_loop_does_nothing(serve, store):
    server = await serve(store)
    (dump,) = await waiting(server)
    dump.client.writer.transport.pause_reading()
    descriptor = dump.client.writer.get_extra_info("socket").fileno()

    def commit_and_read():
        relayed(server, store, 11)
        assert select.select([descriptor], [], [], SECONDS_MAX)[0]
        return os.read(descriptor, 1 << 16)

    packets = packets_of(in_thread(commit_and_read))
    assert len(packets) == 3
    assert packets[0][1][1 + 4] == EventType.GTID
    (member,) = members(server)
    assert (member.at.position, member.reached()) == (store.end(), {0: Gtid(0, 1, 11)})
    await closed([dump])


@roomy
async def test_heartbeats_do_not_come_between_what_a_thread_sends(serve, store):
    server = await serve(store)
    (dump,) = await waiting(server, heartbeat=0.001)
    done = threading.Event()

    def commit_until_done():
        seq = 10
        while not done.is_set():
            seq += 1
            relayed(server, store, seq)
            done.wait(seq % 3 * 0.001)  # one heartbeat is due by then, or two, or none
        return seq

    writing = asyncio.create_task(asyncio.to_thread(commit_until_done))
    seqs, beats = [], 0
    async with asyncio.timeout(SECONDS_MAX):
        while beats < 200 or len(seqs) < 500:
            header, event = await dump.event()  # which checks the sequence ids
            beats += header.type == EventType.HEARTBEAT
            if header.type == EventType.GTID:
                seqs.append(int.from_bytes(event[19:27], "little"))
    done.set()
    last = await writing
    assert seqs == list(range(11, 11 + len(seqs)))
    assert last >= seqs[-1]
    await closed([dump])


@roomy
async def test_many_are_served_by_the_loop(serve, store, monkeypatch):
    server = await serve(store)
    dumps = await waiting(server, tails.AT_ONCE_MAX + 1)
    threads = []
    send = Tail._send
    monkeypatch.setattr(
        Tail, "_send", lambda *given: threads.append(threading.get_ident()) or send(*given)
    )
    in_thread(lambda: relayed(server, store, 11))
    for dump in dumps:
        assert (await dump.next_group()).gtid.seq == 11
    assert threads == [threading.get_ident()]
    await closed([dumps.pop()])
    await until(lambda: len(members(server)) == tails.AT_ONCE_MAX)
    publish(store, Gtid(0, 1, 12), wait=True)  # from here on they are few
    for dump in dumps:
        assert (await dump.next_group()).gtid.seq == 12
    await until(lambda: server.tails._resting is None)
    in_thread(lambda: relayed(server, store, 13))
    assert threads[-1] != threading.get_ident()
    for dump in dumps:
        assert (await dump.next_group()).gtid.seq == 13
    await closed(dumps)


@roomy
async def test_another_commit_does_not_wait_for_readers(serve, store, monkeypatch):
    server = await serve(store)
    (dump,) = await waiting(server)
    begun, may_end, send = threading.Event(), threading.Event(), Tail._send_at_once

    def slowly(*given):
        begun.set()
        assert may_end.wait(SECONDS_MAX)
        send(*given)

    monkeypatch.setattr(Tail, "_send_at_once", slowly)
    sending = threading.Thread(target=lambda: relayed(server, store, 11))
    sending.start()
    assert begun.wait(SECONDS_MAX)
    (member,) = members(server)
    assert (member.at.position < store.end(), member.reached()) == (True, {})  # nothing was sent
    in_thread(lambda: publish(store, Gtid(0, 1, 12), wait=True))
    assert store.state().contains(Gtid(0, 1, 12))
    may_end.set()
    for seq in (11, 12):
        assert (await dump.next_group()).gtid.seq == seq
    sending.join()
    assert member.reached() == {0: Gtid(0, 1, 12)}
    await closed([dump])


@roomy
async def test_whatever_goes_wrong_the_loop_is_told(serve, store, monkeypatch):
    server = await serve(store)
    (dump,) = await waiting(server)

    def fail(*_):
        raise ValueError("a fault")

    with monkeypatch.context() as patch, capture_logs() as lines:
        patch.setattr(server.signal, "at_once", fail)
        in_thread(lambda: relayed(server, store, 11))
        assert (await dump.next_group()).gtid.seq == 11
    assert [line["event"] for line in lines] == ["readers_not_served"]
    in_thread(lambda: relayed(server, store, 12))
    assert (await dump.next_group()).gtid.seq == 12
    await closed([dump])


@roomy
async def test_a_fault_in_a_thread_ends_the_readers_and_no_commit(serve, store, monkeypatch):
    server = await serve(store)
    dumps = await waiting(server, 2)

    def fail(*_):
        raise ValueError("a fault")

    with monkeypatch.context() as patch, capture_logs() as lines:
        patch.setattr(Tail, "_send", fail)
        in_thread(lambda: relayed(server, store, 11))
        assert store.state().contains(Gtid(0, 1, 11))
        await until_sessions(server, 0)
    assert [line["readers"] for line in lines if line["event"] == "tail_failed"] == [2]
    await closed(dumps)
    (dump,) = await waiting(server, start="0-1-11")
    in_thread(lambda: relayed(server, store, 12))
    assert (await dump.next_group()).gtid.seq == 12
    await closed([dump])


@pytest.mark.kernel
@pytest.mark.parametrize("takes", [0, 1, 50, -1])
async def test_the_loop_sends_what_one_does_not_take(direct_crowd, takes):
    crowd = direct_crowd
    slow, other = crowd.at_end(2)
    crowd.commit(100)
    crowd.news()
    crowd.commit(101)
    slow.line.takes = takes
    assert not crowd.tell_a_thread()
    assert slow.member.reached() == {0: Gtid(0, 1, 100)}
    assert slow.member.at.position < other.member.at.position == crowd.history.end()
    crowd.commit(102)
    assert not crowd.tell_a_thread()  # the loop has its turn first
    assert other.member.reached() == {0: Gtid(0, 1, 101)}
    crowd.news()
    assert slow.member.reached() == other.member.reached() == {0: Gtid(0, 1, 102)}
    crowd.commit(103)
    assert crowd.tell_a_thread()
    crowd.check()


@pytest.mark.kernel
async def test_who_takes_the_rest_neither_leaves_behind_the_group_before(direct_crowd):
    crowd = direct_crowd
    slow, other = crowd.at_end(2)
    crowd.commit(100)
    crowd.news()
    crowd.commit(101)
    slow.line.takes, slow.line.is_slow = 30, True
    crowd.news()
    assert slow.member is None
    assert slow.at.position < crowd.history.end()
    assert other.member.reached() == {0: Gtid(0, 1, 101)}
    crowd.check()


@pytest.mark.kernel
async def test_behind_a_heartbeat_that_waits_the_loop_sends_first(direct_crowd):
    crowd = direct_crowd
    (reader,) = crowd.at_end(1)
    reader.line.is_slow = True
    reader.member.beat()
    reader.beats += 1
    reader.line.is_slow, reader.line.unsent = False, 0  # as it may seem to a thread, for a moment
    crowd.commit(100)
    assert not crowd.tell_a_thread()
    crowd.news()
    crowd.commit(101)
    assert crowd.tell_a_thread()
    crowd.check()


@pytest.mark.kernel
@pytest.mark.parametrize("what", ["stopping", "resting", "anew", "far", "heartbeat"])
async def test_some_things_are_left_to_the_loop(direct_crowd, what, monkeypatch):
    crowd = direct_crowd
    (reader,) = crowd.at_end(1)
    before = len(reader.data)
    with monkeypatch.context() as patch:
        if what == "stopping":
            reader.stream.stopping = True
        elif what == "resting":
            crowd.tails._resting = asyncio.get_running_loop().call_later(60, print)
        elif what == "anew":
            patch.setattr(crowd.history, "is_still", lambda _: False)
        elif what == "heartbeat":
            reader.line.unsent = 1  # of one: nobody is sent past what waits for it
        else:
            patch.setattr("ibb.server.dump.tail.REACH_BYTES_MAX", 10)
        crowd.commit(100)
        assert not in_thread(crowd.signal.at_once)
        assert len(reader.data) == before
        reader.stream.stopping, reader.line.unsent = False, 0
    assert crowd.tell_a_thread()
    assert reader.member.reached() == {0: Gtid(0, 1, 100)}
    crowd.check()


@pytest.mark.kernel
async def test_a_thread_sends_to_nobody_behind_the_end(direct_crowd):
    crowd = direct_crowd
    (reader,) = crowd.at_end(1)
    reader.leave()
    assert not crowd.tell_a_thread()
    crowd.news()
    assert not crowd.tails._tails
    crowd.check()


def test_a_thread_waits_for_no_turn():
    turns = TailTurns()
    with turns:
        assert not in_thread(turns.begin)
        with turns:
            pass
        assert not in_thread(turns.begin)
    assert in_thread(lambda: turns.begin() and turns.end())


def test_what_is_left_is_done_first_and_once():
    turns, done = TailTurns(), []

    def leave_two():
        assert turns.begin()
        turns.leave(lambda: done.append(1))
        turns.leave(lambda: done.append(2))
        return turns.end()

    assert in_thread(leave_two) is False
    assert not in_thread(turns.begin)
    with turns:
        assert done == [1, 2]
    with turns:
        assert done == [1, 2]
    assert in_thread(lambda: turns.begin() and turns.end())


def test_a_fault_in_what_is_left_keeps_no_turn():
    turns = TailTurns()
    in_thread(lambda: (turns.begin() and turns.leave(lambda: 1 // 0)) or turns.end())
    with pytest.raises(ZeroDivisionError), turns:
        pass
    assert in_thread(lambda: turns.begin() and turns.end())
