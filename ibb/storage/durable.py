"""
The durable offset: up to where the binlog would survive a crash, and so may be read.

The pending-LSN FIFO holds, for each group of the redo log, where the binlog ended behind it. When
the log is synced up to an LSN, all entries up to there leave; the last one is the new durable
offset. It is always the end of a whole record and never goes back. The GTID state moves with it,
so that nobody is told of a transaction that a crash could still take away.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid

from .position import Position

_log = logging.getLogger(__name__)

PENDING_MAX = 2048  # entries; above that the newest one is extended


class PendingLsn(NamedTuple):
    """Once the redo log is synced up to `lsn`, the binlog up to `end` is durable, `gtids` too."""

    lsn: int
    end: Position
    gtids: BinlogState | Gtid | None


class DurableOffset:
    """
    The durable end of a binlog, and who waits for it to move.

    Args:
        end: end of the binlog as it was found at the opening.
        state: GTID state there.
        tells_of_pending: wake also when something begins to wait for a sync, which no commit
            will do; whoever wants it then syncs.

    Attributes:
        tells_of_pending: as above.
    """

    def __init__(
        self, end: Position, state: BinlogState, *, tells_of_pending: bool = False
    ) -> None:
        self._mutex = threading.Lock()
        self._pending: deque[PendingLsn] = deque()
        self._end = end
        self._state = state.copy()
        self.tells_of_pending = tells_of_pending
        self._synced_lsn = 0
        self._waiters: dict[int, Callable[[], None]] = {}
        self._next_waiter = 0

    def restart(self, end: Position, state: BinlogState) -> None:
        """Begin at another end; those who wait keep waiting."""
        with self._mutex:
            assert not self._pending
            self._synced_lsn = 0
            self._end = end
            self._state = state.copy()

    def delete_domains(self, domains: frozenset[int]) -> None:
        """Forget domains of the state."""
        with self._mutex:
            kept = [gtid for gtid in self._state.entries() if gtid.domain not in domains]
            self._state = BinlogState(kept)

    @property
    def end(self) -> Position:
        """The durable end."""
        return self._end

    def state(self) -> BinlogState:
        """Return a copy of the GTID state at the durable end."""
        with self._mutex:
            return self._state.copy()

    def add(self, lsn: int, end: Position, gtids: BinlogState | Gtid | None) -> None:
        """
        Note what becomes durable with an LSN; called in LSN order.

        Another thread may have synced the log up to there already: then it is durable now.
        """
        pending: PendingLsn = tuple.__new__(PendingLsn, (lsn, end, gtids))  # faster than a call
        with self._mutex:
            # Later entries are told of when the ones before them become durable.
            is_news = self.tells_of_pending and not self._pending
            if len(self._pending) >= PENDING_MAX:
                pending = _extended(self._pending.pop(), pending)
            self._pending.append(pending)
            is_synced = lsn <= self._synced_lsn
        if is_synced:
            self.synced(lsn)
        elif is_news:
            self._wake_all()

    def synced(self, lsn: int) -> None:
        """Move up to what the redo log, synced up to *lsn*, makes certain, and wake who waits."""
        with self._mutex:
            self._synced_lsn = max(self._synced_lsn, lsn)
            pending, end = self._pending, self._end
            while pending and pending[0].lsn <= lsn:
                _, end, gtids = pending.popleft()
                _apply(gtids, self._state)
            assert end >= self._end
            if end is self._end:
                return
            self._end = end
        if self._waiters:
            self._wake_all()

    def subscribe(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Have *wake* called, from whichever thread, at each move; return the way out."""
        with self._mutex:
            key = self._next_waiter
            self._next_waiter += 1
            self._waiters[key] = wake

        return partial(self._unsubscribe, key)

    def _unsubscribe(self, key: int) -> None:
        with self._mutex:
            self._waiters.pop(key, None)

    def _wake_all(self) -> None:
        """Wake who waits; one who cannot be woken must not harm the commit that is durable."""
        with self._mutex:
            waiters = list(self._waiters.items())
        for key, wake in waiters:
            try:
                wake()
            except Exception:  # noqa: BLE001 - whatever it is, it is not the commit's
                self._unsubscribe(key)
                _log.exception("one who waits for new groups failed and is not told any more")


def _apply(gtids: BinlogState | Gtid | None, state: BinlogState) -> None:
    if isinstance(gtids, Gtid):
        state.update(gtids)
    elif gtids is not None:
        state.load(gtids.entries())


def _extended(newest: PendingLsn, pending: PendingLsn) -> PendingLsn:
    """Return one entry for two; it takes no more memory than there are (domain, server) pairs."""
    gtids = newest.gtids if isinstance(newest.gtids, BinlogState) else BinlogState()
    if isinstance(newest.gtids, Gtid):
        gtids.update(newest.gtids)
    _apply(pending.gtids, gtids)
    return PendingLsn(pending.lsn, pending.end, gtids)
