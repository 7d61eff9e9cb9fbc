"""What a relay receives: no more than may wait, and what it says of it only while it goes on."""

import asyncio
import threading
from types import SimpleNamespace

import pytest

from ibb.protocol.command import SemiSyncAck
from ibb.protocol.gtid import Gtid
from ibb.server.connections.byte_queue import ByteQueue
from ibb.server.connections.direct_receiver import RECEIVE_BYTES, DirectReceiver
from ibb.server.relay.commit_sync import CommitSync
from ibb.server.relay.upstream import Upstream

from ..waiting import turns, until
from .fake_primary import HANG, FakePrimary, group, preamble
from .test_relay import SECONDS_MAX, Following


async def test_no_more_is_received_than_may_wait_for_the_store(target, monkeypatch):
    """As with TLS, which the loop has to take off."""
    monkeypatch.setattr(Upstream, "direct_receiver", lambda _: None)
    monkeypatch.setattr("ibb.server.relay.intake.INGEST_BYTES_MAX", 100_000)
    may_store, waits, received, had_room = threading.Event(), [], [], []
    commit_run, put = target.commit_run, ByteQueue.put

    def slow(groups):
        waits.append(1)
        assert may_store.wait(SECONDS_MAX)
        return commit_run(groups)

    def note(queue, piece):
        received.append(len(piece))
        had_room.append(put(queue, piece))
        return had_room[-1]

    monkeypatch.setattr(target, "commit_run", slow)
    monkeypatch.setattr(ByteQueue, "put", note)
    rest = [event for seq in range(2, 900) for event in group(Gtid(0, 1, seq), 20_000)]
    async with (
        FakePrimary([*preamble(), *group(Gtid(0, 1, 1)), *rest, HANG]) as primary,
        Following(target, primary.port) as following,
    ):
        await until(lambda: waits and False in had_room)
        await turns()  # in which more would come
        assert had_room[-1] is False
        assert sum(received) < 4_000_000
        may_store.set()
        await until(lambda: len(target.state()) and target.state().contains(Gtid(0, 1, 899)))
        assert following.delays == []


async def test_a_thread_that_receives_by_itself_takes_no_more_while_it_stores(target, monkeypatch):
    may_store, waits, received, beside = threading.Event(), [], [], []
    commit_run, receive = target.commit_run, DirectReceiver.receive
    begin_beside = CommitSync._begin_beside

    def slow(groups):
        waits.append(1)
        assert may_store.wait(SECONDS_MAX)
        return commit_run(groups)

    def note(receiver, silence):
        piece = receive(receiver, silence)
        received.append(len(piece))
        return piece

    monkeypatch.setattr(target, "commit_run", slow)
    monkeypatch.setattr(DirectReceiver, "receive", note)
    monkeypatch.setattr(
        CommitSync, "_begin_beside", lambda sync: beside.append(1) or begin_beside(sync)
    )
    rest = [event for seq in range(2, 900) for event in group(Gtid(0, 1, seq), 20_000)]
    async with (
        FakePrimary([*preamble(), *group(Gtid(0, 1, 1)), *rest, HANG]) as primary,
        Following(target, primary.port) as following,
    ):
        await until(lambda: waits)
        await turns()
        assert 0 < sum(received) <= len(received) * RECEIVE_BYTES < 4_000_000
        may_store.set()
        await until(lambda: len(target.state()) and target.state().contains(Gtid(0, 1, 899)))
        assert sum(received) > 16_000_000
        assert beside  # while so much was there already, nobody has waited for syncs
        assert following.delays == []


@pytest.mark.parametrize("ends", [True, False])
async def test_a_relay_that_is_to_end_acknowledges_nothing(target, ends):
    told, what = [], SemiSyncAck(4, "bin.000001")

    async def note(acknowledgement):
        told.append(acknowledgement)

    relay = Following(target, 1).relay
    following = asyncio.create_task(asyncio.sleep(SECONDS_MAX))
    if ends:
        following.cancel()
    await relay._acknowledge(following, SimpleNamespace(acknowledge=note), what)
    assert told == ([] if ends else [what])
    assert relay.acknowledged == len(told)
    following.cancel()
