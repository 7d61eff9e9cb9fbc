"""Waking who waits for more."""

import asyncio
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from ibb.protocol.errors import FormatError
from ibb.server.durable_signal import DurableSignal

from .waiting import until

SECONDS_MAX = 10


class History:
    """Tells its one subscriber when it is told to; counts looks."""

    def __init__(self, *, ours=True):
        self.pages = SimpleNamespace(tail_is_final=ours)
        self.wake = None
        self.looks = 0

    def subscribe(self, wake):
        self.wake = wake
        return lambda: setattr(self, "wake", None)

    def refresh(self):
        self.looks += 1
        if self.looks == 1:
            raise FormatError("half a header")
        if self.looks == 3:
            self.wake()


@pytest.fixture
def pool():
    with ThreadPoolExecutor(1) as executor:
        yield executor


async def test_a_wake_from_a_thread_ends_every_wait(pool):
    history = History()
    signal = DurableSignal(history, pool, 1)
    waiting = [asyncio.create_task(signal.wait(signal.count, None)) for _ in range(3)]
    await asyncio.sleep(0)
    pool.submit(history.wake)
    await asyncio.wait_for(asyncio.gather(*waiting), SECONDS_MAX)
    await signal.close()
    assert history.wake is None


async def test_a_wake_before_the_wait_is_not_lost(pool):
    signal = DurableSignal(History(), pool, 1)
    seen = signal.count
    signal.nudge()
    await asyncio.wait_for(signal.wait(seen, None), SECONDS_MAX)
    assert signal.count == seen + 1
    await signal.close()


async def test_the_loop_is_woken_only_for_what_is_not_done_at_once(pool):
    history, calls = History(), []
    signal = DurableSignal(history, pool, 1)
    signal.listener = lambda: calls.append("loop")
    signal.at_once = lambda: calls.append("at once") or is_done

    def relay():
        with signal.told_behind():
            history.wake()
            assert not calls[before:]

    is_done, before = True, 0
    seen = signal.count
    pool.submit(relay).result()
    await asyncio.sleep(0)
    assert calls == ["at once"]
    await asyncio.wait_for(signal.wait(seen, None), SECONDS_MAX)  # it has fired all the same
    is_done, before = False, 1
    pool.submit(relay).result()
    await until(lambda: calls == ["at once"] * 2 + ["loop"])
    is_done, before = True, 3
    waiting = asyncio.create_task(signal.wait(signal.count, None))
    await asyncio.sleep(0)
    pool.submit(relay)
    await asyncio.wait_for(waiting, SECONDS_MAX)
    await signal.close()


async def test_others_are_told_as_ever_while_one_tells_behind(pool):
    history, calls = History(), []
    signal = DurableSignal(history, pool, 1)
    signal.at_once = lambda: calls.append("at once") or True
    signal.listener = lambda: calls.append("loop")
    with signal.told_behind():
        pool.submit(history.wake).result()
        await until(lambda: calls == ["loop"])
    with signal.told_behind():
        pass
    assert calls == ["loop"]  # there is nothing to tell
    await signal.close()


async def test_a_wake_while_one_begins_to_wait_is_not_lost(pool):
    history = History()
    signal = DurableSignal(history, pool, 1)
    signal.at_once = lambda: True

    class Late(set):
        def add(self, one):
            pool.submit(relay).result()  # it sees nobody wait
            super().add(one)

    def relay():
        with signal.told_behind():
            history.wake()

    signal._waiting = Late()
    await asyncio.wait_for(signal.wait(signal.count, None), SECONDS_MAX)
    assert not signal._waiting
    await signal.close()


async def test_a_wait_ends_after_its_time(pool):
    signal = DurableSignal(History(), pool, 1)
    seen = signal.count
    await asyncio.wait_for(signal.wait(seen, 0.01), SECONDS_MAX)
    assert signal.count == seen
    await signal.close()


class AtOnce(Executor):
    """Does what it is given before it returns."""

    def submit(self, work, *arguments):
        done = Future()
        try:
            done.set_result(work(*arguments))
        except FormatError as error:
            done.set_exception(error)
        return done


async def test_foreign_files_are_looked_at_only_while_somebody_waits():
    history = History(ours=False)
    signal = DurableSignal(history, AtOnce(), 0.001)
    for _ in range(10):
        await asyncio.sleep(0)  # all that can go on does
    assert history.looks == 0
    await asyncio.wait_for(signal.wait(signal.count, None), SECONDS_MAX)
    assert history.looks >= 3  # the first one failed, and the looks went on
    await signal.close()


async def test_trouble_that_stays_is_logged_once(pool):
    """Not at each look, a second apart, for as long as a disk is away."""
    history = History(ours=False)
    told = ["away", "away", "", "away", "other", "other", ""]

    def refresh():
        history.looks += 1
        if history.looks <= len(told) and told[history.looks - 1]:
            raise FormatError(told[history.looks - 1])

    history.refresh = refresh
    with capture_logs() as lines:
        signal = DurableSignal(history, pool, 0)
        seen = signal.count
        waiting = asyncio.create_task(signal.wait(seen, None))
        await until(lambda: history.looks > len(told))
        signal.nudge()
        await waiting
        await signal.close()
    assert [line["error"] for line in lines] == ["away", "away", "other"]
