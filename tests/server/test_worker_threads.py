"""Threads that are asked: who works, how many, what comes back, and how they end."""

import asyncio
import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from ibb.server.worker_threads import WorkerThreads, run_in

from ..integration.waiting import wait_until
from .waiting import until

SECONDS = 20.0


@pytest.fixture
def pool():
    threads = WorkerThreads(3, "work")
    yield threads
    threads.shutdown()


def busy(pool, count, may_end):
    """Have *count* threads wait; return their calls when they do."""
    begun = threading.Semaphore(0)

    def work():
        begun.release()
        assert may_end.wait(SECONDS)
        return threading.current_thread().name

    calls = [pool.submit(work) for _ in range(count)]
    for _ in range(count):
        assert begun.acquire(timeout=SECONDS)
    return calls


def settled(pool, idle=3):
    """Wait until so many threads have nothing to do."""
    wait_until(lambda: len(pool._idle) >= idle, SECONDS)


def all_idle(pool):
    """Have each thread work once, and wait until none does."""
    may_end = threading.Event()
    calls = busy(pool, 3, may_end)
    may_end.set()
    wait(calls, SECONDS)
    settled(pool)


def test_a_thread_is_made_when_none_is_idle_up_to_the_most(pool):
    may_end = threading.Event()
    calls = busy(pool, 3, may_end)
    fourth = pool.submit(threading.current_thread)
    assert not fourth.done()
    may_end.set()
    names = {call.result(SECONDS) for call in calls}
    assert names == {"work_0", "work_1", "work_2"}
    assert fourth.result(SECONDS).name in names


def test_who_worked_last_works_next(pool):
    all_idle(pool)
    last = pool._idle[-1].name
    for _ in range(20):
        assert pool.submit(lambda: threading.current_thread().name).result(SECONDS) == last
        settled(pool)


def test_one_thread_is_woken_for_a_call(pool):
    all_idle(pool)
    asked, more = [], pool._next
    for worker in pool._workers:
        worker._more = lambda one: asked.append(one.name) or more(one)
    for _ in range(10):
        pool.submit(int).result(SECONDS)
        settled(pool)
    assert len(asked) == 10


def test_what_a_call_raises_is_told_to_who_waits(pool):
    with pytest.raises(ZeroDivisionError):
        pool.submit(divmod, 1, 0).result(SECONDS)
    assert pool.submit(divmod, 7, 4).result(SECONDS) == (1, 3)


async def test_the_loop_gets_results_and_errors(pool):
    assert await pool.run(lambda: 5) == 5
    with pytest.raises(ZeroDivisionError):
        await pool.run(lambda: 1 // 0)
    assert (await pool.run(threading.current_thread)).name.startswith("work_")


async def test_a_call_that_was_cancelled_before_its_turn_is_not_done(pool):
    may_end, done = threading.Event(), []
    calls = busy(pool, 3, may_end)
    dropped, kept = pool.run(lambda: done.append("dropped")), pool.run(lambda: done.append("kept"))
    dropped.cancel()
    may_end.set()
    await kept
    assert done == ["kept"]
    assert all(call.result(SECONDS) for call in calls)


async def test_a_call_that_is_cancelled_meanwhile_ends_and_tells_nobody(pool):
    may_end, told = threading.Event(), []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    going = pool.run(lambda: may_end.wait(SECONDS) and 1 // 0)
    await pool.run(int)  # another thread's: the first has begun
    going.cancel()
    may_end.set()
    assert [await pool.run(int) for _ in range(9)] == [0] * 9
    assert going.cancelled()
    assert told == []


@pytest.mark.parametrize("cancel", [False, True])
async def test_a_shutdown_waits_for_what_is_done_and_does_or_drops_the_rest(pool, cancel):
    may_end = threading.Event()
    calls = busy(pool, 3, may_end)
    late, looped = pool.submit(int), pool.run(int)
    ending = asyncio.get_running_loop().run_in_executor(
        None, lambda: pool.shutdown(cancel_futures=cancel)
    )
    await asyncio.wait([looped], timeout=SECONDS if cancel else 0.05)
    assert looped.cancelled() is cancel
    assert not ending.done()
    may_end.set()
    await ending
    assert all(call.result(0) for call in calls)
    assert late.cancelled() is cancel
    assert cancel or (late.result(0), await looped) == (0, 0)
    assert not any(worker.is_alive() for worker in pool._workers)
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(int)


def test_an_outcome_for_a_loop_that_is_closed_is_dropped(pool):
    loop, may_end = asyncio.new_event_loop(), threading.Event()

    async def ask():
        return pool.run(lambda: may_end.wait(SECONDS))

    future = loop.run_until_complete(ask())
    loop.close()
    may_end.set()
    assert pool.submit(int).result(SECONDS) == 0
    pool.shutdown()
    assert not future.done()


async def test_any_pool_can_be_asked(pool):
    with ThreadPoolExecutor(1) as other:
        assert [await run_in(one, lambda: 3) for one in (pool, other)] == [3, 3]


def test_no_call_is_lost_or_done_twice_whoever_asks(pool):
    done, per_thread = [], 2000

    def ask(first):
        wait([pool.submit(done.append, first + number) for number in range(per_thread)])

    askers = [threading.Thread(target=ask, args=(n * per_thread,)) for n in range(4)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join(SECONDS)
    assert sorted(done) == list(range(4 * per_thread))


class Held:
    """What a call knows."""


async def test_what_a_call_that_failed_knew_goes_with_its_error(pool):
    gc.collect()
    gc.disable()
    try:
        for begin in (pool.run, lambda call: asyncio.wrap_future(pool.submit(call))):
            held = Held()
            gone = weakref.ref(held)

            def fail(held=held):
                raise LookupError(str(held))

            with pytest.raises(LookupError):
                await begin(fail)
            del held, fail
            await until(lambda gone=gone: gone() is None)
    finally:
        gc.enable()
