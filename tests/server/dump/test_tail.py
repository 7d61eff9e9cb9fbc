"""Readers that the loop serves at the end get, byte for byte, what each of them gets alone."""

import random
import time

import pytest

from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.server.config import TAIL_BYTES
from ibb.server.dump import tails
from ibb.server.dump.dump_batch import Outcome
from ibb.server.dump.run_stream import RunStream
from ibb.server.dump.tail import REACH_BYTES, Tail
from ibb.server.dump.tail_member import TailMember
from ibb.storage.page_runs import PageRuns

from ..waiting import until
from .crowd import filled, opened, publish
from .tail_crowd import TailCrowd

pytestmark = pytest.mark.kernel


def restarted(store):
    """Have it seem that a server began to write; readers that begin here see no difference."""
    store.write_format_description(store.formats.in_force(store.end()))


def some_trouble(crowd, rng):
    """Have something happen to one reader that nobody else may notice."""
    reader = rng.choice(crowd.readers)
    reader.line.takes = rng.choice((None, None, -1, 0, 1, 60, 400))
    match rng.randrange(6):
        case 0:
            reader.leave()
        case 1:
            reader.line.is_slow = True
        case 2:
            crowd.add(start=reader.at and GtidPosition(list(reader.sent.values())))
        case 3 if reader.member is not None:
            reader.beat()
        case 4:
            reader.run()
        case _:
            reader.leave()
            reader.outcome = Outcome.MORE
            reader.step()


@pytest.mark.parametrize("is_direct", [False, True])
@pytest.mark.parametrize("seed", range(12))
async def test_any_readers_get_what_each_gets_alone(seed, is_direct, monkeypatch, tmp_path):
    rng = random.Random(seed)
    monkeypatch.setattr(tails, "AT_ONCE_MAX", rng.choice((2, 4, 9)))
    if seed % 2:  # the loop rests behind all that it serves
        monkeypatch.setattr(tails, "REST_SECONDS_MIN", 0.0)
    with opened(tmp_path, rng) as store:
        filled(store, rng, 40)
        batch = rng.choice((700, 5000, 1 << 18))
        crowd = TailCrowd(store, rng, monkeypatch, batch=batch, is_direct=is_direct)
        for _ in range(6):
            crowd.add(checksum=rng.random() < 0.7, annotate=rng.random() < 0.8)
        for number in range(1000, 1000 + 50 * 10, 10):
            for reader in crowd.readers:
                if reader.member is None and rng.random() < 0.7:
                    reader.run()
                    if rng.random() < 0.2:
                        crowd.commit(number)
                    reader.join()
            for more in range(1, rng.choice((1, 2, 3, 9))):
                publish(store, rng, number + more)
            if rng.random() < 0.1:
                rng.choice((store.switch_file, lambda: restarted(store)))()
            if rng.random() < 0.9:
                store.sync()
                crowd.news()
            if rng.random() < 0.3:
                some_trouble(crowd, rng)
                for reader in crowd.readers:
                    reader.look()
        assert sum(reader.times_joined for reader in crowd.readers) > 15
        crowd.check()
        crowd.close()


async def test_packets_are_made_once_for_all_and_by_no_thread(crowd, monkeypatch):
    readers, loads, load = crowd.at_end(20), [], PageRuns.load
    monkeypatch.setattr(
        PageRuns, "load", lambda self, *a, **k: loads.append(a) or load(self, *a, **k)
    )
    monkeypatch.setattr(RunStream, "next_batch", None)
    for number in range(100, 110):
        before = [len(one.data) for one in readers]
        crowd.commit(number)
        crowd.news()
        assert [len(one.data) for one in readers] == [size + 1 for size in before]
        assert all(one.member.at.position == crowd.history.end() for one in readers)
        assert all(one.member.reached()[0] == Gtid(0, 1, number) for one in readers)
    assert len(loads) == 10
    monkeypatch.undo()
    crowd.check()


async def test_each_kind_of_packets_has_a_tail(crowd):
    crowd.at_end(2)
    crowd.at_end(2, checksum=False)
    crowd.at_end(1, annotate=False)
    assert len(crowd.tails._tails) == 3
    crowd.commit(100)
    crowd.news()
    crowd.check()
    crowd.news()
    assert not crowd.tails._tails


@pytest.mark.parametrize(
    ("sizes", "why"),
    [
        ([300_000], "an event is not for the kernel"),
        ([TAIL_BYTES], "a group is more than is made at a time"),
        ([20_000] * (REACH_BYTES // 20_000 + 2), "much came at once"),
    ],
)
async def test_what_is_much_is_left_to_threads(crowd, sizes, why):
    readers = crowd.at_end(3)
    crowd.commit(99)
    crowd.news()
    assert all(one.member for one in readers), why
    with_them = crowd.readers[0].data.copy()
    for number, size in enumerate(sizes, 100):
        crowd.commit(number, size, wait=False)
    crowd.history.sync()
    crowd.news()
    assert not any(one.member for one in readers), why
    assert crowd.readers[0].data == with_them
    for one in readers:
        one.run()
        assert one.join()
    crowd.check()


async def test_what_comes_is_sent_in_turns_of_a_limited_size(crowd):
    readers = crowd.at_end(2)
    for number in range(100, 112):
        crowd.commit(number, 14_000, wait=False)
    crowd.history.sync()
    sent = len(readers[0].data)
    crowd.news()
    assert all(one.member for one in readers)
    assert readers[0].member.at.position < crowd.history.end()
    first = readers[0].data[sent:]
    assert len(first) == 1
    assert TAIL_BYTES - 14_500 < len(first[0]) <= TAIL_BYTES
    await until(lambda: readers[0].member.at.position == crowd.history.end())
    assert len(readers[0].data) > sent + 2
    crowd.check()


async def test_who_has_not_taken_all_when_more_is_due_leaves_and_the_others_stay(crowd):
    slow, *others = crowd.at_end(4)
    slow.line.is_slow = True
    before = slow.member.at
    crowd.commit(100)
    crowd.news()
    assert slow.member.at == before  # what waits for it, it has not been sent
    assert 0 not in slow.member.reached()
    assert crowd.tails._resting is not None  # it is seen soon, though nothing more comes
    crowd.commit(101)
    crowd.news()
    assert slow.member is None
    assert slow.sent[0] == Gtid(0, 1, 100)
    assert all(one.member.reached()[0] == Gtid(0, 1, 101) for one in others)
    slow.run()
    assert slow.join()
    crowd.check()


async def test_who_has_taken_all_by_then_stays(crowd):
    slow, other = crowd.at_end(2)
    slow.line.is_slow = True
    crowd.commit(100)
    crowd.news()
    slow.line.is_slow, slow.line.unsent = False, 0
    await until(lambda: crowd.tails._resting is None)
    for one in (slow, other):
        one.look()
        assert one.member.reached() == {0: Gtid(0, 1, 100)}
        assert one.member.at.position == crowd.history.end()
    crowd.commit(101)
    crowd.news()
    assert slow.member.reached() == other.member.reached() == {0: Gtid(0, 1, 101)}
    crowd.check()


async def test_who_has_not_taken_all_may_leave_before_more_is_due(crowd):
    slow, _ = crowd.at_end(2)
    slow.line.is_slow = True
    before = slow.member.at
    crowd.commit(100)
    crowd.news()
    member = slow.member
    member.leave()
    assert (member.at, member.reached()) == (before, {})
    assert member.unsent == {0: Gtid(0, 1, 100)}
    slow.look()
    crowd.check()


async def test_who_cannot_be_sent_to_leaves_at_once(crowd, monkeypatch):
    gone, other = crowd.at_end(2)
    monkeypatch.setattr(gone.line, "write_at_once", lambda _: False)
    crowd.commit(100)
    crowd.news()
    assert gone.member is None
    assert other.member.reached() == {0: Gtid(0, 1, 100)}
    crowd.readers.remove(gone)
    gone.stream.close()
    crowd.check()


async def test_who_closes_with_something_on_its_way_leaves(crowd):
    gone, other = crowd.at_end(2)
    gone.line.is_slow = True
    crowd.commit(100)
    crowd.news()
    gone.line.is_closing, gone.line.unsent = True, 0
    crowd.commit(101)
    crowd.news()
    assert gone.member is None
    assert gone.sent[0] == Gtid(0, 1, 100)
    assert other.member.reached() == {0: Gtid(0, 1, 101)}
    crowd.check()


@pytest.mark.parametrize("what", ["delay", "rate"])
async def test_who_may_not_have_all_at_once_any_more_leaves_before_it(crowd, what):
    limited, other = crowd.at_end(2)
    if what == "delay":
        limited.pace._pacing.delay = 3600.0
    else:
        limited.pace._pacing.rate = 1 << 20
    crowd.commit(100)
    crowd.news()
    assert limited.member is None
    assert limited.sent.get(0) != Gtid(0, 1, 100)
    assert other.member.reached() == {0: Gtid(0, 1, 100)}
    assert not limited.join()
    limited.pace._pacing.delay = limited.pace._pacing.rate = 0
    crowd.check()


async def test_who_was_told_to_end_gets_no_more(crowd):
    ending, other = crowd.at_end(2)
    ending.stream.stopping = True
    crowd.commit(100)
    crowd.news()
    assert ending.member is None
    assert 0 not in ending.sent or ending.sent[0].seq != 100
    assert other.member.reached()[0].seq == 100
    ending.stream.stopping = False
    crowd.check()


async def test_a_member_that_has_left_is_told_nothing_of_what_comes(crowd):
    gone, other = crowd.at_end(2)
    crowd.commit(100)
    crowd.news()
    member: TailMember = gone.member
    gone.leave()
    seq = gone.stream.seq
    crowd.commit(101)
    crowd.news()
    member.leave()
    assert gone.stream.seq == seq
    assert gone.sent[0].seq == 100
    assert other.member.reached()[0].seq == 101
    crowd.check()


async def test_heartbeats_are_counted_and_tell_the_place(crowd):
    one, other = crowd.at_end(2)
    for number in range(100, 103):
        one.beat()
        crowd.commit(number)
        crowd.news()
        one.beat()
        other.leave()
        other.run()
        assert one.data[-1][4:] == other.stream.heartbeat()[4:]
        other.stream.seq = (other.stream.seq - 1) & 255
        assert other.join()
    crowd.check()


async def test_nothing_is_sent_of_a_history_that_was_begun_anew(crowd, monkeypatch):
    readers = crowd.at_end(3)
    before = [one.data.copy() for one in readers]
    crowd.commit(100)
    calls = iter([True, False])
    monkeypatch.setattr(crowd.history, "is_still", lambda _: next(calls, False))
    crowd.news()
    assert [one.data for one in readers] == before
    assert not any(one.member for one in readers)
    for one in readers:
        one.step()
        assert one.outcome is Outcome.END


async def test_the_loop_rests_longer_than_it_served(crowd, monkeypatch):
    (reader,) = crowd.at_end(1)
    served, serve = [], Tail.serve

    def slowly(self):
        served.append(time.monotonic())
        begun, has_more = time.thread_time(), serve(self)
        while time.thread_time() < begun + 0.004:
            pass
        return has_more

    monkeypatch.setattr(Tail, "serve", slowly)
    for number in range(100, 105):
        crowd.commit(number)
        crowd.signal.listener()
    assert len(served) == 1
    await until(lambda: reader.member.at.position == crowd.history.end())
    assert served[1] >= served[0] + 0.004 * (1 + tails.REST_SHARE) - 0.001  # timers count so
    monkeypatch.undo()
    await until(lambda: crowd.tails._resting is None)
    before = len(reader.data)
    crowd.commit(105)
    crowd.news()
    assert len(reader.data) == before + 1  # at once
    crowd.check()


def test_the_longest_rest_is_not_noticed():
    assert tails.REST_SECONDS_MIN < tails.REST_SECONDS_MAX <= 0.05
