"""Readers that come to where others are served: behind the same group, or not at all."""

import asyncio
import random

import pytest

from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.server.dump.dump_batch import Outcome
from ibb.server.dump.dump_stream import DumpStream
from ibb.server.dump.run_stream import RunStream
from ibb.server.dump.tail import REACH_BYTES, Tail

from ..waiting import until
from .crowd import opened
from .made_streams import made_by
from .tail_crowd import TailCrowd

pytestmark = pytest.mark.kernel


async def test_who_passes_over_groups_that_it_has_does_not_join(crowd):
    newest = crowd.history.state().position()
    ahead = GtidPosition([*newest, Gtid(0, 1, 10_000)])
    reader = crowd.add(start=ahead, ignore_duplicates=True)
    reader.run()
    assert reader.outcome is Outcome.IDLE
    assert reader.stream._header is not None  # it is where it could join
    assert not reader.join()
    crowd.at_end(1)
    crowd.commit(100)
    crowd.news()
    reader.run()
    assert made_by(DumpStream, crowd.history, reader.asked).sent == reader.sent
    crowd.check()


async def test_one_that_is_a_little_behind_is_sent_what_it_lacks(crowd, monkeypatch):
    (first,) = crowd.at_end(1)
    crowd.commit(100)
    crowd.news()
    late = crowd.add()
    late.run()
    for number in (101, 102):
        crowd.commit(number)
        crowd.news()
    monkeypatch.setattr(RunStream, "next_batch", None)
    before = len(late.data)
    assert late.join()
    assert len(late.data) == before + 1
    assert late.member.reached() == {0: Gtid(0, 1, 102)}
    crowd.commit(103)
    crowd.news()
    assert late.member.reached() == first.member.reached() | late.member.reached()
    monkeypatch.undo()
    crowd.check()


async def test_one_is_sent_what_it_lacks_though_there_is_more_by_then(crowd, monkeypatch):
    crowd.at_end(1)
    late = crowd.add()
    late.run()
    crowd.commit(100)
    crowd.news()
    admit = Tail.admit

    def admit_late(self, *place):
        crowd.commit(101)
        return admit(self, *place)

    monkeypatch.setattr(Tail, "admit", admit_late)
    crowd.end_rest()  # it is long where group 100 took long
    assert late.join()
    assert late.member.reached() == {0: Gtid(0, 1, 101)}  # it was served at once behind that
    crowd.check()


async def test_one_that_does_not_take_what_it_lacks_goes_on_behind_it(crowd):
    crowd.at_end(1)
    late = crowd.add()
    late.run()
    crowd.commit(100)
    crowd.news()
    late.line.is_slow = True
    late.member = crowd.tails.join(late.stream, late.line)
    assert late.member.left.done()
    late.look()
    assert late.sent[0] == Gtid(0, 1, 100)
    crowd.check()


async def test_one_that_is_far_behind_does_not_join(crowd):
    first, late = crowd.add(), crowd.add()
    late.run()
    for number in range(100, 100 + REACH_BYTES // 10_000 + 10):
        crowd.commit(number, 10_000, wait=False)
    crowd.history.sync()
    first.run()
    assert first.join()
    crowd.commit(1000)
    crowd.news()
    assert first.member.reached()
    before = len(late.data)
    assert not late.join()
    assert len(late.data) == before
    crowd.check()


async def test_one_that_is_before_the_first_of_them_does_not_join_before_a_group_came(crowd):
    late = crowd.add()
    late.run()
    crowd.commit(100)
    crowd.at_end(1, start=crowd.history.state().position())
    assert not late.join()
    crowd.commit(101)
    crowd.news()
    assert late.join()
    assert late.member.reached() == {0: Gtid(0, 1, 101)}
    crowd.check()


async def test_what_came_before_one_joined_is_synced_for_it(monkeypatch, tmp_path):
    rng = random.Random(5)
    with opened(tmp_path, rng, flush_log_at_commit=0, flush_log_interval=1e6) as store:
        crowd = TailCrowd(store, rng, monkeypatch)
        reader = crowd.add()
        reader.run()
        crowd.commit(100)
        crowd.news()  # which concerns nobody
        assert crowd.pool.calls == 0
        assert reader.join()
        await until(lambda: store.state().contains(Gtid(0, 1, 100)))
        crowd.news()
        assert reader.member.reached() == {0: Gtid(0, 1, 100)}
        crowd.check()
        crowd.close()


async def test_nothing_is_kept_for_who_is_served(crowd):
    crowd.at_end(2)
    late = crowd.add()
    late.run()
    assert not crowd.blocks._kept
    assert all(one.stream._seat.place is None for one in crowd.readers[:2])
    crowd.check()


@pytest.mark.parametrize("can_join", [True, False])
async def test_who_cannot_join_waits_for_no_rest(crowd, can_join):
    crowd.at_end(1)
    crowd.end_rest()
    crowd.tails._resting = asyncio.get_running_loop().call_later(60, print)
    late = crowd.add()
    late.run()
    late.stream.stopping = not can_join
    waiting = asyncio.ensure_future(crowd.tails.rested(late.stream))
    await asyncio.sleep(0)
    assert waiting.done() is not can_join
    late.stream.stopping = False
    crowd.end_rest()
    crowd.tails._serve_and_rest()
    await waiting
    assert late.join()
    crowd.check()


async def test_nobody_waits_for_a_rest_when_none_are_served_any_more(crowd):
    (first,) = crowd.at_end(1)
    crowd.end_rest()
    crowd.tails._resting = asyncio.get_running_loop().call_later(60, print)
    waiting = asyncio.ensure_future(crowd.tails.rested(first.stream))
    await asyncio.sleep(0)
    assert not waiting.done()
    crowd.tails.close()
    await waiting


async def test_who_comes_while_the_loop_rests_has_nobody_served(crowd):
    readers = crowd.at_end(3)
    late = crowd.add()
    late.run()
    crowd.tails._resting = asyncio.get_running_loop().call_later(60, print)
    crowd.commit(100)
    before = [len(one.data) for one in readers]
    assert late.join()
    assert [len(one.data) for one in readers] == before
    crowd.news()
    assert all(one.member.reached() == {0: Gtid(0, 1, 100)} for one in (*readers, late))
    crowd.check()
