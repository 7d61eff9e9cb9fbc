"""
Group commit: of all who wait for the redo log, one works for everybody.

Whoever comes while nobody is at work leads: it writes and syncs what there is. The others sleep,
each on a lock of its own, until their LSN was reached or it is their turn to lead.

Those whose LSN was reached do not all start up at once: hundreds of threads that want the
interpreter at the same time cost more than their work. A few are woken, and each wakes one more.
"""

import threading
from collections import deque

WOKEN_AT_ONCE = 2  # threads; more than one, so that a slow one holds up nobody


class _Waiter:
    """A thread that sleeps until its `turn` can be taken."""

    __slots__ = ("lsn", "turn", "until_synced")

    def __init__(self, lsn: int, *, until_synced: bool) -> None:
        self.lsn = lsn
        self.until_synced = until_synced
        self.turn = threading.Lock()


class LogTurns:
    """Who works on the log, and who waits. Safe to use from any thread."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._leader: int | None = None  # the thread at work
        self._waiting: list[_Waiter] = []
        self._served: deque[_Waiter] = deque()  # to be woken, one by another

    def enter(self, lsn: int, *, until_synced: bool) -> bool:
        """
        Lead, or wait until something has changed.

        Args:
            lsn: up to where the log is wanted.
            until_synced: wanted durable; else with the operating system.

        Returns:
            True: the caller leads and must `leave`. False: it may be served now, and looks again.
        """
        with self._mutex:
            if self._leader is None:
                self._leader = threading.get_ident()
                return True
            waiter = _Waiter(lsn, until_synced=until_synced)
            waiter.turn.acquire()
            self._waiting.append(waiter)
        try:
            waiter.turn.acquire()
        except BaseException:
            self._withdraw(waiter)
            raise
        self._wake_served()
        return False

    def leave(self, *, written_lsn: int, synced_lsn: int, failed: bool) -> None:
        """
        End one's work, if one leads: those who are served go, and one of the others leads.

        May always be called behind `enter`, so that no interruption in between leaves nobody at
        work for ever.

        Args:
            written_lsn: the operating system has the log up to here.
            synced_lsn: durable up to here.
            failed: nobody will be served any more; all go.
        """
        if self._leader != threading.get_ident():
            return
        with self._mutex:
            self._leader = None
            if not self._waiting:
                return
            waiting: list[_Waiter] = []
            for waiter in self._waiting:
                reached = synced_lsn if waiter.until_synced else written_lsn
                (self._served if failed or waiter.lsn <= reached else waiting).append(waiter)
            self._waiting = waiting
            self._wake_next_leader()
        for _ in range(WOKEN_AT_ONCE):
            self._wake_served()

    def _wake_served(self) -> None:
        try:
            waiter = self._served.popleft()
        except IndexError:
            return  # all are awake
        waiter.turn.release()

    def _wake_next_leader(self) -> None:
        if self._waiting and self._leader is None:
            self._waiting.pop(0).turn.release()

    def _withdraw(self, waiter: _Waiter) -> None:
        """Take a thread out that was interrupted; what it was woken for falls to others."""
        with self._mutex:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
                return
            self._wake_next_leader()
        self._wake_served()
