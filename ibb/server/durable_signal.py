"""Wake the dumps that wait at the end of the history when it grows."""

from __future__ import annotations

import asyncio
import itertools
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from ibb.protocol.errors import IbbError

from .background_task import BackgroundTask
from .log import get_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor

    from ibb.storage.history import History


IDLE_LOOK_SECONDS: Final = 1.0


class DurableSignal:
    """
    One subscription to the history for all who wait, and one look a while at foreign files.

    While nobody waits the looks are `IDLE_LOOK_SECONDS` apart.

    Args:
        history: tells when its durable end moved, from any thread.
        pool: where a history that another program writes is looked at.
        poll_interval: seconds between looks, while somebody waits.

    Attributes:
        count: how often it fired. Read it before looking for data, and hand it to `wait`.
        listener: is called each time, by the loop's thread; may be set.
        at_once: is called before, in a thread that is in `told_behind`; returns whether the
            listener need not be called. May be set.
    """

    def __init__(self, history: History, pool: Executor, poll_interval: float) -> None:
        self.count = 0
        self.listener: Callable[[], None] | None = None
        self.at_once: Callable[[], bool] | None = None
        self._history = history
        self._pool = pool
        self._poll_interval = poll_interval
        self._loop = asyncio.get_running_loop()
        self._waiting: set[asyncio.Future[None]] = set()
        self._fired = False  # a call of `_deliver` is on its way
        self._counts = itertools.count(1)  # no number is ever given twice
        self._teller: int | None = None  # the thread that is in `told_behind`
        self._owes = False  # it is to tell of something
        self._waited_for = asyncio.Event()
        self._unsubscribe = history.subscribe(self._fire)
        self._polling = BackgroundTask("durable_polls")
        if not history.pages.tail_is_final:
            self._polling.start(self._poll())

    async def wait(self, seen: int, timeout_seconds: float | None) -> None:
        """Return when it fired since *count* was *seen*, or after the time."""
        if self.count != seen:
            return
        future = self._loop.create_future()
        self._waiting.add(future)
        if self.count != seen:  # only now who fires sees that somebody waits
            self._waiting.discard(future)
            return
        self._waited_for.set()
        timer = None
        if timeout_seconds is not None:
            timer = self._loop.call_later(timeout_seconds, _finish, future)
        try:
            await future
        finally:
            self._waiting.discard(future)
            if timer is not None:
                timer.cancel()

    def nudge(self) -> None:
        """Let everybody who waits look around, from the loop's thread."""
        self.count = next(self._counts)
        for future in self._waiting:
            _finish(future)
        if self.listener is not None:
            self.listener()

    async def close(self) -> None:
        """Listen no longer."""
        self._unsubscribe()
        await self._polling.stop()

    @contextmanager
    def told_behind(self) -> Iterator[None]:
        """
        Have what this thread makes durable in a block told at its end, by itself if it can be.

        For one thread at a time, which holds nothing then that another one waits for.
        """
        self._owes, self._teller = False, threading.get_ident()
        try:
            yield
        finally:
            self._teller = None
            if self._owes:
                self._tell()

    def _fire(self) -> None:
        if self._teller == threading.get_ident():
            self._owes = True
        else:
            self._wake()

    def _tell(self) -> None:
        """Tell of what is durable, from any thread, without the loop where nobody needs that."""
        is_told = False
        if self.at_once is not None:
            try:
                is_told = self.at_once()
            except Exception:  # noqa: BLE001 - whatever it is, it is not the commit's
                get_log().exception("readers_not_served")
        if is_told:
            self.count = next(self._counts)
        if not is_told or self._waiting:
            with suppress(RuntimeError):  # the loop is closed
                self._wake()

    def _wake(self) -> None:
        if not self._fired:  # a race only costs one call more
            self._fired = True
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._fired = False
        self.nudge()

    async def _poll(self) -> None:
        told = ""  # the trouble of the look before
        while True:
            self._waited_for.clear()
            if not self._waiting:
                with suppress(TimeoutError):  # who asks by SQL waits for nothing
                    async with asyncio.timeout(IDLE_LOOK_SECONDS):
                        await self._waited_for.wait()
            trouble = ""
            try:
                await self._loop.run_in_executor(self._pool, self._history.refresh)
            except IbbError as error:
                trouble = str(error)
            if trouble not in ("", told):
                get_log().warning("history_unreadable", error=trouble)
            told = trouble
            await asyncio.sleep(self._poll_interval)


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
