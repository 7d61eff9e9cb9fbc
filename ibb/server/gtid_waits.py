"""MASTER_GTID_WAIT: who waits for groups to be here; one look at the history for all of them."""

from __future__ import annotations

import asyncio
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.binlog_state import BinlogState

from .background_task import BackgroundTask
from .log import get_log

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from concurrent.futures import Executor

    from ibb.protocol.gtid import Gtid
    from ibb.storage.history import History

    from .durable_signal import DurableSignal

RETRY_SECONDS: Final = 1.0  # until there is another look behind one that failed


def has_come(state: BinlogState, gtid: Gtid) -> bool:
    """Tell whether *gtid*, or one behind it in its domain, is in *state*."""
    newest = state.newest(gtid.domain)
    return newest is not None and newest.seq >= gtid.seq


class _Waiter(NamedTuple):
    """One statement: the GTIDs that it has not looked for yet, and what tells it of the last."""

    left: Iterator[Gtid]
    all_came: asyncio.Future[None]


class _Due(NamedTuple):
    """A waiter in the heap of its domain; *number* keeps two of the same sequence number apart."""

    seq: int
    number: int
    waiter: _Waiter


class GtidWaits:
    """
    Those who wait, by the GTID that each lacks next. For the loop's thread.

    Args:
        history: what the groups come to.
        signal: tells when it grew.
        pool: where it is looked at.
    """

    def __init__(self, history: History, signal: DurableSignal, pool: Executor) -> None:
        self._history = history
        self._signal = signal
        self._pool = pool
        self._due: dict[int, list[_Due]] = {}  # a heap for each domain that is waited for
        self._numbers = count()
        self._following = BackgroundTask("gtid_waits")

    async def wait(self, wanted: Iterable[Gtid], seconds: float | None) -> bool:
        """Return whether all of *wanted* came within the time; None is for ever."""
        waiter = _Waiter(iter(wanted), asyncio.get_running_loop().create_future())
        self._enter(waiter, BinlogState())
        if self._due and not self._following.is_running:
            self._following.start(self._follow())
        try:
            async with asyncio.timeout(seconds):
                await self._look()  # for what came before we waited
                await waiter.all_came
        except TimeoutError:
            return False
        finally:
            self._leave(waiter)
        return True

    async def close(self) -> None:
        """Look no longer."""
        await self._following.stop()

    def _enter(self, waiter: _Waiter, state: BinlogState) -> None:
        """Have a waiter wait for the next GTID that has not come, or tell it that all have."""
        for gtid in waiter.left:
            if not has_come(state, gtid):
                heap = self._due.setdefault(gtid.domain, [])
                heappush(heap, _Due(gtid.seq, next(self._numbers), waiter))
                return
        if not waiter.all_came.done():
            waiter.all_came.set_result(None)

    def _leave(self, waiter: _Waiter) -> None:
        for domain, heap in list(self._due.items()):
            left = [due for due in heap if due.waiter is not waiter]
            if not left:
                del self._due[domain]
            elif len(left) < len(heap):
                heapify(left)
                self._due[domain] = left
        if not self._due:
            self._following.cancel()

    async def _follow(self) -> None:
        while True:
            seen, at_most = self._signal.count, None
            try:
                await self._look()
            except Exception:  # noqa: BLE001 - the next look may fare better, whatever it is
                get_log().exception("gtid_wait_look_failed")
                at_most = RETRY_SECONDS
            await self._signal.wait(seen, at_most)

    async def _look(self) -> None:
        """Tell those whose groups have come."""
        loop = asyncio.get_running_loop()
        state = await loop.run_in_executor(self._pool, self._history.state)
        for domain in list(self._due):
            newest, heap = state.newest(domain), self._due[domain]
            while heap and newest is not None and heap[0].seq <= newest.seq:
                self._enter(heappop(heap).waiter, state)
            if not heap:
                del self._due[domain]
