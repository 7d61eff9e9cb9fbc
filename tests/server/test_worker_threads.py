"""Threads that are asked: who works, how many, what comes back, and how they end."""

import asyncio
import gc
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from ibb.server import worker_threads
from ibb.server.work_permits import WorkPermits
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


@pytest.fixture
def lending():
    """Return a pool of eight threads, of which two work at a time, and their permits."""
    permits = WorkPermits(2, 6)
    threads = WorkerThreads(8, "work", permits)
    yield threads, permits
    threads.shutdown()


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
        worker._more = lambda one, has_come: asked.append(has_come) or more(one, has_come)
    for _ in range(10):
        pool.submit(int).result(SECONDS)
        settled(pool)
    assert asked == [True, False] * 10  # it comes for the call, and sees that there is no other


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


def test_one_thread_more_than_may_work_stands_ready(lending):
    pool, permits = lending
    may_end = threading.Event()
    calls = busy(pool, 2, may_end)
    assert (len(pool._workers), pool._coming, permits.free) == (2, 0, 0)
    late = [pool.submit(threading.current_thread) for _ in range(20)]
    assert (len(pool._workers), pool._coming) == (3, 1)
    may_end.set()
    assert {call.result(SECONDS).name for call in late} <= {"work_0", "work_1", "work_2"}
    assert all(call.result(SECONDS) for call in calls)
    settled(pool)
    late = [pool.submit(int) for _ in range(20)]
    wait(late, SECONDS)
    settled(pool)
    assert len(pool._workers) == 3
    pool.shutdown()
    assert pool._coming == 0


def test_who_stands_ready_works_when_another_one_lends_its_permit(lending):
    pool, permits = lending
    lent, may_end = threading.Event(), threading.Event()
    others = busy(pool, 1, may_end)

    def lend():
        assert permits.lend()
        assert lent.wait(SECONDS)
        permits.take_back()
        return permits.resting

    lender = pool.submit(lend)
    wait_until(lambda: permits.resting, SECONDS)
    for _ in range(5):  # as many as one likes
        assert pool.submit(threading.current_thread).result(SECONDS).name != "work_1"
    assert not any(call.done() for call in (lender, *others))
    lent.set()
    assert lender.result(SECONDS) == 0
    may_end.set()
    assert others[0].result(SECONDS)


def test_who_comes_back_goes_on_before_another_call_is_begun():
    permits, order = WorkPermits(1, 3), []
    pool = WorkerThreads(4, "work", permits)
    may_come = threading.Event()

    def lend():
        assert permits.lend()
        assert may_come.wait(SECONDS)
        permits.take_back()
        order.append("back")

    def work():
        may_come.set()
        wait_until(lambda: permits.resting == 0, SECONDS)
        order.append("work")

    calls = [pool.submit(lend)]
    wait_until(lambda: permits.resting, SECONDS)
    may_work = threading.Event()
    calls += [pool.submit(may_work.wait, SECONDS), pool.submit(work)]
    calls += [pool.submit(order.append, number) for number in range(5)]
    may_work.set()
    for call in calls:
        call.result(SECONDS)
    assert order == ["work", "back", *range(5)]
    pool.shutdown()
    assert (permits.free, permits.resting) == (1, 0)


@pytest.mark.parametrize(("most", "resting_max"), [(1, 1), (1, 5), (2, 6), (4, 64)])
def test_all_calls_are_done_whatever_they_lend_and_the_threads_end(most, resting_max):
    """Some rest until others have worked; no more work at a time than may."""
    permits, working, mutex = WorkPermits(most, resting_max), [0, 0], threading.Lock()
    pool = WorkerThreads(most + resting_max, "work", permits)

    def count(change):
        with mutex:
            working[0] += change
            working[1] = max(working)

    def work(gate, opens):
        count(1)
        opens.set()
        if gate is not None and permits.lend():
            count(-1)
            assert gate.wait(SECONDS)
            permits.take_back()
            count(1)
        count(-1)

    gates = [threading.Event() for _ in range(501)]
    calls = [
        pool.submit(work, gates[number + 1] if number % 3 else None, gates[number])
        for number in range(500)
    ]
    gates[500].set()
    pool.shutdown()
    assert [call.result(0) for call in calls] == [None] * 500
    assert 0 < working[1] <= most
    assert not any(worker.is_alive() for worker in pool._workers)
    assert (permits.free, permits.resting) == (most, 0)


def test_a_shutdown_waits_for_a_call_that_rests(lending):
    pool, permits = lending
    may_end = threading.Event()

    def rest():
        assert permits.lend()
        assert may_end.wait(SECONDS)
        permits.take_back()

    resting = [pool.submit(rest) for _ in range(4)]
    wait_until(lambda: permits.resting == 4, SECONDS)
    late = pool.submit(int)
    ending = threading.Thread(target=pool.shutdown)
    ending.start()
    assert late.result(SECONDS) == 0
    assert ending.is_alive()
    may_end.set()
    ending.join(SECONDS)
    assert not ending.is_alive()
    assert all(call.done() for call in resting)
    assert not any(worker.is_alive() for worker in pool._workers)


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


def test_where_the_system_has_no_more_threads_those_there_are_do_all(monkeypatch):
    def none_left(_):
        raise RuntimeError("can't start new thread")

    few = WorkerThreads(3, "few", WorkPermits(1, 2))
    assert few.submit(int).result(SECONDS) == 0
    monkeypatch.setattr(threading.Thread, "start", none_left)
    calls = [few.submit(int) for _ in range(20)]
    assert [call.result(SECONDS) for call in calls] == [0] * 20
    other = WorkerThreads(1, "other")
    with pytest.raises(RuntimeError, match="new thread"):
        other.submit(calls.append, "refused")
    monkeypatch.undo()
    assert other.submit(len, calls).result(SECONDS) == 20
    other.shutdown()
    few.shutdown()


@pytest.fixture
def own_interpreter():
    """Nobody gets the interpreter from a thread that does not give it away."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SECONDS)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("own_interpreter")
async def test_what_is_to_begin_at_once_does_so_before_the_loop_goes_on(pool, monkeypatch):
    monkeypatch.setattr(worker_threads, "BEGIN_SECONDS_MAX", SECONDS)
    all_idle(pool)
    begun = []
    first = pool.run(lambda: begun.append(1))
    assert begun == []
    await first
    settled(pool)
    second = pool.run(lambda: begun.append(2), at_once=True)
    assert begun == [1, 2]
    await second


async def test_a_loop_does_not_wait_for_threads_that_are_busy(pool, lending, monkeypatch):
    monkeypatch.setattr(worker_threads, "BEGIN_SECONDS_MAX", threading.TIMEOUT_MAX)
    (few, permits), may_end = lending, threading.Event()
    busy(pool, 3, may_end)
    assert few.submit(int).result(SECONDS) == 0
    settled(few, 1)
    permits.take()
    permits.take()  # as others do: who is idle could not begin
    late = [each.run(lambda: 7, at_once=True) for each in (pool, few)]
    assert not any(call.done() for call in late)
    may_end.set()
    permits.give()
    permits.give()
    assert await asyncio.gather(*late) == [7, 7]


async def test_a_loop_waits_only_so_long_for_a_thread_that_does_not_come(pool, monkeypatch):
    all_idle(pool)
    with monkeypatch.context() as patched:
        patched.setattr(pool, "_wake_one", lambda: None)
        call = pool.run(lambda: 7, at_once=True)
    assert pool.submit(lambda: 8).result(SECONDS) == 8  # who comes does what has waited, too
    assert await asyncio.wait_for(call, SECONDS) == 7
