"""Waiting for groups: each waiter is told of its own, and the history is looked at once for all."""

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from structlog.testing import capture_logs

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.server import gtid_waits
from ibb.server.gtid_waits import GtidWaits

from .waiting import until

WAITERS = 100
LONG = 3600.0


class Source:
    """A history and its signal: grows when told to, and counts looks."""

    def __init__(self):
        self.binlog_state = BinlogState()
        self.looks = 0
        self.count = 0
        self._changed = asyncio.Event()

    def state(self):
        self.looks += 1
        return self.binlog_state.copy()

    def grow(self, *gtids):
        for gtid in gtids:
            self.binlog_state.update(Gtid.parse(gtid))
        self.count += 1
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def wait(self, seen, timeout_seconds):
        if self.count == seen:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), timeout_seconds)


@pytest.fixture
async def source():
    return Source()


@pytest.fixture
async def waits(source):
    with ThreadPoolExecutor(1) as pool:
        waits = GtidWaits(source, source, pool)
        yield waits
        await waits.close()


def waiting(waits, text, seconds=LONG):
    return asyncio.create_task(waits.wait(GtidPosition.parse(text), seconds))


def fail():
    raise MemoryError("as if")


async def idle(source, looks):
    """Wait until the history was looked at so often."""
    await until(lambda: source.looks >= looks)
    await asyncio.sleep(0)


async def test_each_waits_for_its_own_groups(source, waits):
    source.grow("0-1-5")
    assert await waits.wait(GtidPosition.parse("0-9-5"), LONG)
    assert await waits.wait(GtidPosition.parse(""), LONG)
    third, both, other = (waiting(waits, text) for text in ("0-1-7", "0-1-6,1-1-1", "2-1-1"))
    source.grow("0-1-6")
    source.grow("0-1-7")
    assert await third
    assert not both.done()
    source.grow("1-1-2")
    assert await both
    assert not other.done()
    other.cancel()


async def test_one_look_serves_all_who_wait(source, waits):
    tasks = [waiting(waits, "9-9-9") for _ in range(WAITERS)]
    await idle(source, WAITERS + 1)  # one of each that begins, and the common one
    before = source.looks
    for number in range(1, 11):
        source.grow(f"0-1-{number}")
        await idle(source, before + number)
    assert source.looks == before + 10
    source.grow("9-9-10")
    assert all(await asyncio.gather(*tasks))
    assert source.looks == before + 11


async def test_who_waits_no_longer_is_forgotten(source, waits):
    assert not await waits.wait(GtidPosition.parse("0-1-1"), 0.001)
    gone = waiting(waits, "0-1-1,1-1-1")
    stays = waiting(waits, "0-1-1")
    await until(lambda: len(waits._due.get(0, ())) == 2)
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    assert [due.waiter for due in waits._due[0]] != []
    assert len(waits._due[0]) == 1
    source.grow("0-1-1")
    assert await stays
    assert waits._due == {}
    assert not waits._following.is_running
    looks = source.looks
    source.grow("0-1-2")
    await asyncio.sleep(0)
    assert source.looks == looks


async def test_a_look_that_fails_is_logged_and_the_next_one_tells_all(source, waits, monkeypatch):
    first = waiting(waits, "0-1-1")
    await idle(source, 2)
    with monkeypatch.context() as patched, capture_logs() as lines:
        patched.setattr(source, "state", fail)
        patched.setattr(gtid_waits, "RETRY_SECONDS", 0.01)
        source.grow("0-1-1")
        await until(lambda: lines)
        assert lines[0]["event"] == "gtid_wait_look_failed"
        assert not first.done()
    assert await asyncio.wait_for(first, 20)


async def test_a_follower_that_ended_is_followed_by_another(source, waits):
    first = waiting(waits, "0-1-1")
    await idle(source, 2)
    await waits._following.stop()
    second = waiting(waits, "0-1-1")
    await idle(source, 4)
    source.grow("0-1-1")
    assert await asyncio.wait_for(asyncio.gather(first, second), 20) == [True, True]
