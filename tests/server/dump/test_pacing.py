"""Rates are kept over time, batches pass whole, and nothing young is served to who is delayed."""

import threading

import pytest

from ibb.server.dump.pacing import BURST_SECONDS, Pacing, TokenBucket


class StoppedClock:
    def __init__(self):
        self.seconds = 1000.0

    def now(self):
        return 1_700_000_000 + self.seconds

    def monotonic(self):
        return self.seconds


@pytest.fixture
def clock():
    return StoppedClock()


def time_to_send(bucket, clock, sizes):
    """Send batches one after the other as a dump does; return the seconds that it took."""
    began = clock.seconds
    for size in sizes:
        clock.seconds += bucket.take(size)
    return clock.seconds - began


@pytest.mark.parametrize("sizes", [[100] * 1000, [50_000, 50_000], [100_000], [1] * 5 + [99_995]])
def test_a_rate_is_kept_whatever_the_batches(clock, sizes):
    assert sum(sizes) == 100_000
    took = time_to_send(TokenBucket(10_000, clock.monotonic), clock, sizes)
    assert took == pytest.approx(10 - BURST_SECONDS)


def test_no_rate_is_no_limit(clock):
    assert time_to_send(TokenBucket(0, clock.monotonic), clock, [1 << 40] * 3) == 0


def test_an_idle_reader_saves_up_no_more_than_a_burst(clock):
    bucket = TokenBucket(1000, clock.monotonic)
    clock.seconds += 3600
    assert time_to_send(bucket, clock, [1000] * 10) == pytest.approx(10 - BURST_SECONDS)


def test_a_rate_can_be_changed(clock):
    bucket = TokenBucket(10, clock.monotonic)
    assert bucket.take(1000) > 90
    bucket.rate = 1000
    assert bucket.take(1250) == pytest.approx(1)
    bucket.rate = 0
    assert bucket.take(1 << 30) == 0


def test_a_rate_that_is_taken_away_in_the_middle_does_no_harm():
    """SET GLOBAL runs in another thread than the dumps."""
    setters = []

    def monotonic():
        if setters:
            setters[0].start()
            setters.pop().join(0.05)  # it has to wait
        return 1.0

    bucket = TokenBucket(100, monotonic)
    setter = threading.Thread(target=lambda: setattr(bucket, "rate", 0))
    setters.append(setter)
    assert bucket.take(125) == 1.0
    setter.join()
    assert bucket.take(125) == 0.0


def rest_after(pace, size):
    """Return the seconds to wait behind so many bytes."""
    pace.sent(size)
    return pace.rest()


@pytest.mark.parametrize("change", ["rate", "total_rate"])
def test_who_rests_goes_on_when_a_rate_changes(clock, change):
    pacing = Pacing(1, 1, clock)
    pace = pacing.for_reader()
    assert rest_after(pace, 1 << 20) > 1_000_000
    pacing.rate = pacing.total_rate = 1 << 20
    assert pace.rest() == 0
    pace.sent(1 << 20)
    setattr(pacing, change, 0)
    assert pace.rest() == pytest.approx(0.75)
    pacing.rate = pacing.total_rate = 0
    assert (pace.rest(), pace.limited) == (0, False)


def test_an_account_keeps_its_own_rate_and_delay(clock):
    pacing = Pacing(1000, 0, clock)
    pace = pacing.for_reader(rate=50, delay=9)
    pacing.rate, pacing.delay = 0, 1
    assert (pace.own.rate, pace.delay) == (50, 9)
    assert (pacing.for_reader().own.rate, pacing.for_reader().delay) == (0, 1)


def test_readers_share_the_rate_of_all(clock):
    pacing = Pacing(0, 1000, clock)
    first, second = pacing.for_reader(), pacing.for_reader()
    assert rest_after(first, 1250) == pytest.approx(1)
    assert rest_after(second, 1000) == pytest.approx(2)
    assert rest_after(first, 1000) == pytest.approx(3)


def test_the_slower_of_both_limits_counts(clock):
    pacing = Pacing(100, 1000, clock)
    assert rest_after(pacing.for_reader(), 1025) == pytest.approx(10)
    assert rest_after(pacing.for_reader(rate=5000), 1000) == pytest.approx(1.775)
    assert pacing.for_reader(rate=50).own.rate == 50


def test_a_group_waits_until_it_is_old_enough(clock):
    pace = Pacing(0, 0, clock).for_reader(delay=60)
    written = int(clock.now())
    assert pace.too_young(written) == 60
    clock.seconds += 59
    assert pace.too_young(written) == 1
    clock.seconds += 1
    assert pace.too_young(written) == 0
    assert Pacing(0, 0, clock).for_reader().too_young(written + 10) == 0
