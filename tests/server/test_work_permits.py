"""Permits of threads: how many work at a time, who is next, and that nobody waits for ever."""

import random
import sys
import threading
from concurrent.futures import Future
from queue import SimpleQueue

import pytest

from ibb.server.work_permits import THREADS_MAX, WorkPermits

from ..integration.waiting import wait_until

pytestmark = pytest.mark.kernel
SECONDS = 20.0


class Someone(threading.Thread):
    """A thread that does what it is told, one thing after the other."""

    def __init__(self):
        super().__init__(daemon=True)
        self._told = SimpleQueue()
        self.start()

    def run(self):
        for call, future in iter(self._told.get, None):
            try:
                future.set_result(call())
            except BaseException as error:  # noqa: BLE001 - it is whoever waits who is told
                future.set_exception(error)

    def begin(self, call):
        """Have a call begun behind those before it; return what it will be."""
        future = Future()
        self._told.put((call, future))
        return future

    def do(self, call):
        """Have a call done; return its result."""
        return self.begin(call).result(SECONDS)

    def end(self):
        self._told.put(None)


@pytest.fixture
def some():
    """Return a function that makes so many threads."""
    made = []

    def make(count):
        made.extend(Someone() for _ in range(count))
        return made[-count:]

    yield make
    for one in made:
        one.end()


def state(permits):
    return permits.free, permits.resting


def come_back(permits, one, then=lambda: None):
    """Have a thread that rests ask for its permit; return what comes of it, when it has asked."""
    resting = permits.resting
    coming = one.begin(lambda: (permits.take_back(), then()))
    wait_until(lambda: permits.resting == resting - 1, SECONDS)
    return coming


def resting(permits, threads):
    """Have threads lend permits, one after the other."""
    for one in threads:
        one.do(permits.take)
        assert one.do(permits.lend)


def test_as_many_work_as_there_are_permits(some):
    permits, (one, other, third) = WorkPermits(2, 1), some(3)
    assert state(permits) == (2, 0)
    one.do(permits.take)
    other.do(permits.take)
    assert state(permits) == (0, 0)
    asked = third.begin(permits.take)
    for _ in range(100):
        other.do(int)  # meanwhile it would get one, if it could
    assert not asked.done()
    assert state(permits) == (0, 0)
    one.do(permits.give)
    asked.result(SECONDS)
    assert state(permits) == (0, 0)
    other.do(permits.give)
    third.do(permits.give)
    assert state(permits) == (2, 0)


def test_a_permit_that_is_lent_is_another_ones_until_that_gives_it(some):
    permits, (one, other) = WorkPermits(1, 1), some(2)
    resting(permits, [one])
    assert state(permits) == (1, 1)
    other.do(permits.take)
    assert state(permits) == (0, 1)
    coming = come_back(permits, one)
    assert not coming.done()
    other.do(permits.give)
    coming.result(SECONDS)
    assert state(permits) == (0, 0)


def test_who_comes_back_first_works_first(some):
    permits, order, (holder, *threads) = WorkPermits(1, 5), [], some(6)
    resting(permits, threads)
    holder.do(permits.take)
    threads = [threads[place] for place in (3, 0, 4, 1, 2)]
    coming = [
        come_back(permits, one, lambda one=one: (order.append(one), permits.give()))
        for one in threads
    ]
    assert order == []
    holder.do(permits.give)
    for one in coming:
        one.result(SECONDS)
    assert order == threads
    assert state(permits) == (1, 0)


def test_who_asks_first_begins_first(some):
    """Those ask, one behind the other, who give way to somebody that has come back."""
    permits, order, (first, *threads) = WorkPermits(1, 5), [], some(6)
    resting(permits, threads)
    first.do(permits.take)
    holder, given_way = first, []
    for one in threads:
        coming = come_back(permits, one)
        note = lambda it=holder: (permits.give_way(), order.append(it), permits.give())  # noqa: E731
        given_way.append(holder.begin(note))
        coming.result(SECONDS)
        holder = one
    assert order == []
    holder.do(permits.give)
    for one in given_way:
        one.result(SECONDS)
    assert order == [first, *threads[:-1]]


def test_who_comes_back_is_before_those_that_begin(some):
    permits, order, (one, other, holder, *new) = WorkPermits(1, 4), [], some(5)
    resting(permits, [one, other])
    holder.do(permits.take)
    begun = [
        each.begin(lambda: (permits.take(), order.append("new"), permits.give())) for each in new
    ]
    coming = [
        come_back(permits, each, lambda: (order.append("back"), permits.give()))
        for each in (other, one)
    ]
    holder.do(permits.give)
    for each in (*begun, *coming):
        each.result(SECONDS)
    assert order == ["back", "back", "new", "new"]


def test_nobody_gives_way_to_those_that_begin(some):
    permits, (one, other) = WorkPermits(1, 1), some(2)
    one.do(permits.take)
    one.do(permits.give_way)  # nobody is there
    assert state(permits) == (0, 0)
    begun = other.begin(permits.take)
    for _ in range(100):
        one.do(permits.give_way)
    assert not begun.done()
    one.do(permits.give)
    begun.result(SECONDS)


def test_who_gives_way_works_again_behind_who_has_come_back(some):
    permits, (one, other) = WorkPermits(1, 1), some(2)
    resting(permits, [other])
    one.do(permits.take)
    coming = come_back(permits, other)
    giving_way = one.begin(permits.give_way)
    coming.result(SECONDS)
    assert not giving_way.done()
    other.do(permits.give)
    giving_way.result(SECONDS)
    assert state(permits) == (0, 0)  # it has that of the other
    one.do(permits.give)
    assert state(permits) == (1, 0)


@pytest.mark.parametrize("resting_max", [0, 1, 3])
def test_nobody_lends_a_permit_while_enough_have_done_so(some, resting_max):
    permits, (holder, *threads) = WorkPermits(1, resting_max), some(resting_max + 1)
    resting(permits, threads)
    holder.do(permits.take)
    for _ in range(2):
        assert not holder.do(permits.lend)
        assert state(permits) == (0, resting_max)
    coming = [come_back(permits, one, permits.give) for one in threads]
    assert not any(one.done() for one in coming)  # it has kept its own
    holder.do(permits.give)
    for one in coming:
        one.result(SECONDS)
    assert state(permits) == (1, 0)
    holder.do(permits.take)
    assert holder.do(permits.lend) == (resting_max > 0)


@pytest.mark.parametrize(
    ("permits", "resting_max"),
    [(0, 0), (0, 5), (-1, 5), (1, -1), (THREADS_MAX + 1, 0), (1, THREADS_MAX), (65, 64)],
)
def test_there_are_neither_too_few_nor_too_many_of_them(permits, resting_max):
    with pytest.raises(ValueError, match=f"^{permits} permits, {resting_max} threads"):
        WorkPermits(permits, resting_max)


@pytest.mark.parametrize("resting_max", [0, 1, THREADS_MAX - 1])
def test_as_many_threads_as_there_may_be_get_their_turn(some, resting_max):
    permits = WorkPermits(THREADS_MAX - resting_max, resting_max)
    threads = some(THREADS_MAX)
    for _ in range(3):
        done = [one.begin(lambda: (permits.take(), permits.give())) for one in threads]
        for one in done:
            one.result(SECONDS)
    assert state(permits) == (THREADS_MAX - resting_max, 0)


@pytest.fixture
def often():
    """Have threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


class Working:
    """Counts who works."""

    def __init__(self):
        self._mutex = threading.Lock()
        self._now = self.most = 0

    def begin(self):
        with self._mutex:
            self._now += 1
            self.most = max(self.most, self._now)

    def end(self):
        with self._mutex:
            self._now -= 1


@pytest.mark.parametrize(("most", "resting_max"), [(1, 1), (1, 7), (2, 2), (3, 6), (4, 0), (5, 20)])
def test_whatever_many_threads_do_no_more_work_and_all_come_to_their_end(
    some, often, most, resting_max
):
    permits, working = WorkPermits(most, resting_max), Working()

    def live(seed):
        rng, lent = random.Random(seed), 0
        for _ in range(40):
            permits.take()
            working.begin()
            for _ in range(rng.randrange(6)):
                working.end()
                if rng.random() < 0.3:
                    permits.give_way()
                elif permits.lend():
                    lent += 1
                    permits.take_back()
                working.begin()
            working.end()
            permits.give()
        return lent

    threads = some(most + resting_max)
    lives = [one.begin(lambda seed=seed: live(seed)) for seed, one in enumerate(threads)]
    assert (sum(one.result(SECONDS) for one in lives) > 0) == (resting_max > 0)
    assert 0 < working.most <= most
    assert state(permits) == (most, 0)
