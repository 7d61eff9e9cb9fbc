"""
A pool of threads that is cheap to ask: one thread is woken for each call, the one that worked last.

`ThreadPoolExecutor` wakes a second one each time, which only finds that there is nothing to do; and
its futures, which threads can wait for, cost more than what the loop needs. Both stand in the way
of whoever waits for an answer, since they take the interpreter from who makes it.

There may be more threads than work at a time, by their permits: one more than that stands ready for
when another one lends its own.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from .work_permits import WorkPermits

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")
BEGIN_SECONDS_MAX: Final = 0.0002  # for which a loop waits for a thread; most take a quarter


class WorkerThreads(Executor):
    """
    Up to some threads, made when they are needed first.

    Args:
        threads: how many at most.
        name: begins their names.
        permits: by which they work; None: all may at a time.
    """

    def __init__(self, threads: int, name: str, permits: WorkPermits | None = None) -> None:
        self._most = threads
        self._name = name
        self._permits = permits or WorkPermits(threads)
        self._mutex = threading.Lock()
        self._workers: list[_Worker] = []
        self._idle: list[_Worker] = []  # who worked last is the last
        self._coming = 0  # that were woken and have not looked for a call yet
        self._waiting: deque[_Call] = deque()
        self._closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have a thread call *fn*; from any thread."""
        call = _FutureCall(lambda: fn(*args, **kwargs))
        self._begin(call)
        return call.future

    def run(self, call: Callable[[], T], *, at_once: bool = False) -> asyncio.Future[T]:
        """
        Have a thread do a call for the running loop; one cancelled before it began is not done.

        Args:
            call: what it does.
            at_once: if a thread may, let it begin before the loop goes on: what that does
                next may keep the interpreter to itself for longer than the whole call takes. The
                loop waits `BEGIN_SECONDS_MAX`, and then, as ever, for the interpreter.
        """
        looped = _LoopCall(call, asyncio.get_running_loop())
        if at_once and self._permits.free > 0:
            looped.begins = threading.Lock()
            looped.begins.acquire()
        self._begin(looped)
        if looped.begins is not None:
            looped.begins.acquire(timeout=BEGIN_SECONDS_MAX)
        return looped.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no calls any more; with *wait*, return when no thread works any more."""
        with self._mutex:
            self._closed = True
            dropped = list(self._waiting) if cancel_futures else []
            if cancel_futures:
                self._waiting.clear()
            idle, self._idle = self._idle, []
            self._coming += len(idle)
        for call in dropped:
            call.cancel()
        for worker in idle:
            worker.woken.release()
        if wait:
            for worker in self._workers:
                worker.join()

    def _begin(self, call: _Call) -> None:
        with self._mutex:
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._waiting.append(call)
            self._wake_one()

    def _wake_one(self) -> None:
        """Have another thread come, if so many may work, or else one stand ready."""
        if self._coming >= min(len(self._waiting), max(self._permits.free, 1)):
            return
        if self._idle:
            self._idle.pop().woken.release()
        elif len(self._workers) < self._most:
            name = f"{self._name}_{len(self._workers)}"
            worker = _Worker(name, self._next, self._permits)
            try:
                worker.start()
            except RuntimeError:  # the system has no more of them
                if not self._workers:
                    self._waiting.clear()
                    raise
                return
            self._workers.append(worker)
        else:
            return
        self._coming += 1

    def _next(self, worker: _Worker, has_come: bool) -> _Call | None:
        """Return what waits for a thread; None: nothing, the worker ends or will be woken."""
        with self._mutex:
            self._coming -= has_come
            if self._waiting:
                call = self._waiting.popleft()
                self._wake_one()
                return call
            if self._closed:
                worker.ends = True
            else:
                self._idle.append(worker)
            return None


class _Worker(threading.Thread):
    """
    One thread.

    Args:
        name: its own.
        more: returns what it is to do next, told whether it has just come; None: nothing.
        permits: by which it works.

    Attributes:
        woken: released to have it come again.
        ends: there will be nothing any more.
    """

    def __init__(
        self, name: str, more: Callable[[_Worker, bool], _Call | None], permits: WorkPermits
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._more, self._permits = more, permits
        self.ends = False
        self.woken = threading.Lock()
        self.woken.acquire()

    def run(self) -> None:
        """Work until there will be nothing any more."""
        while not self.ends:
            self._permits.take()
            call = self._more(self, True)
            while call is not None:
                call.work()
                call = None  # what it holds may go
                self._permits.give_way()
                call = self._more(self, False)
            self._permits.give()
            if not self.ends:
                self.woken.acquire()


class _FutureCall:
    """A call whose outcome any thread can wait for."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.future: Final[Future[Any]] = Future()
        self._call = call

    def cancel(self) -> None:
        self.future.cancel()

    def work(self) -> None:
        future = self.future
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = self._call()
        except BaseException as error:  # noqa: BLE001 - it is whoever waits who is told
            future.set_exception(error)
            del self, future  # the error holds this frame, and the future the error
        else:
            future.set_result(result)


class _LoopCall:
    """A call whose outcome an event loop is told."""

    __slots__ = ("_call", "_loop", "begins", "future")

    def __init__(self, call: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> None:
        self.future: Final[asyncio.Future[Any]] = loop.create_future()
        self._call = call
        self._loop = loop
        self.begins: threading.Lock | None = None  # released then

    def cancel(self) -> None:
        self._tell(self.future.cancel)

    def work(self) -> None:
        future = self.future
        if self.begins is not None:
            self.begins.release()
        if future.cancelled():  # else it may be from now on, and is done all the same
            return
        try:
            result = self._call()
        except BaseException as error:  # noqa: BLE001 - as above
            self._tell(_fail, future, error)
            del self, future  # as above
        else:
            self._tell(_finish, future, result)

    def _tell(self, callback: Callable[..., object], *values: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(callback, *values)


_Call = _FutureCall | _LoopCall


def _finish(future: asyncio.Future[Any], result: object) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)


def run_in(pool: Executor, call: Callable[[], T], *, at_once: bool = False) -> asyncio.Future[T]:
    """Have a thread of a pool of any kind do a call for the loop, as `WorkerThreads.run`."""
    if isinstance(pool, WorkerThreads):
        return pool.run(call, at_once=at_once)
    return asyncio.get_running_loop().run_in_executor(pool, call)
