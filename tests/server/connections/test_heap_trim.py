"""Memory given back behind sessions that were sent much: once for many of them, in a thread."""

import asyncio
import threading

import pytest

from ibb.server.connections import heap_trim
from ibb.server.connections.heap_trim import SENT_BYTES_MIN, HeapTrim
from ibb.server.worker_threads import WorkerThreads


@pytest.fixture
def pool():
    made = WorkerThreads(1, "trim")
    yield made
    made.shutdown()


class Trims:
    """Notes in which thread each trim was."""

    def __init__(self):
        self.threads = []
        self._loop = asyncio.get_running_loop()
        self._done = asyncio.Event()

    def __call__(self):
        self.threads.append(threading.current_thread().name)
        self._loop.call_soon_threadsafe(self._done.set)

    async def another(self):
        await asyncio.wait_for(self._done.wait(), 10.0)
        self._done.clear()


async def trimmed_behind(pool, *sent):
    trims = Trims()
    heap = HeapTrim(trims)
    for each in sent:
        heap.session_ended(each, pool)
    await trims.another()
    return heap, trims


async def test_sessions_that_end_together_are_followed_by_one_trim(monkeypatch, pool):
    monkeypatch.setattr(heap_trim, "TRIM_SECONDS", 0.0)
    heap, trims = await trimmed_behind(pool, SENT_BYTES_MIN, 10 * SENT_BYTES_MIN, 0)
    assert trims.threads == ["trim_0"]
    heap.session_ended(SENT_BYTES_MIN, pool)  # of which the last one can say nothing
    await trims.another()
    assert trims.threads == ["trim_0"] * 2


async def test_who_was_sent_little_is_followed_by_none(monkeypatch, pool):
    monkeypatch.setattr(heap_trim, "TRIM_SECONDS", 0.0)
    small = Trims()
    HeapTrim(small).session_ended(SENT_BYTES_MIN - 1, pool)
    await trimmed_behind(pool, SENT_BYTES_MIN)
    assert small.threads == []


async def test_a_server_that_stops_trims_no_more(monkeypatch, pool):
    monkeypatch.setattr(heap_trim, "TRIM_SECONDS", 0.0)
    stopped = Trims()
    heap = HeapTrim(stopped)
    heap.session_ended(SENT_BYTES_MIN, pool)
    heap.close()
    await trimmed_behind(pool, SENT_BYTES_MIN)
    assert stopped.threads == []


@pytest.mark.parametrize("trims", [(), (None,), (None, None)])
async def test_a_system_without_it_waits_for_nothing(pool, trims):
    heap = HeapTrim(*trims)
    heap.session_ended(SENT_BYTES_MIN, pool)
    assert heap._timer is None
    heap.close()


async def test_one_way_to_trim_is_tried_behind_the_other(monkeypatch, pool):
    monkeypatch.setattr(heap_trim, "TRIM_SECONDS", 0.0)
    done, last = [], Trims()
    trims = lambda: done.append("first"), None, lambda: done.append("second"), None, last
    heap = HeapTrim(*trims)
    for _ in range(2):
        heap.session_ended(SENT_BYTES_MIN, pool)
        await last.another()
    assert done == ["first", "second"] * 2
    assert last.threads == ["trim_0"] * 2
