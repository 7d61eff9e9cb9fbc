"""
The log syncer: the redo log durable at intervals, where commits do not wait for that.

Normally a thread of its own, which waits for the log alone: the housekeeper's files, syncs and
purges may take seconds, and a power loss shall never take more than the last interval. A store
without background work calls `sync_if_due` itself. Source: ibb-format 10.
"""

import threading

from .clock import Clock
from .errors import StoreFailed
from .redo import RedoLog

LOOK_SECONDS = 1.0  # at most between two looks at the clock, which may be a test's
PAUSE_SECONDS = 0.001  # at least


class LogSyncer:
    """
    Syncs the redo log when the time has come. Safe to use from several threads.

    Args:
        redo: the log.
        seconds: from the beginning of one sync to that of the next; None: commits see to that.
        clock: tells when it is time.
    """

    def __init__(self, redo: RedoLog, *, seconds: float | None, clock: Clock) -> None:
        self._redo = redo
        self._seconds = seconds
        self._clock = clock
        self._synced_at = clock.monotonic()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Work in a thread of its own from now on, if there is anything to do."""
        if self._seconds is not None:
            self._thread = threading.Thread(
                target=self._run, args=(self._seconds,), name="ibb-log-syncer", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """End the thread; what is not synced yet is the caller's to sync."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def sync_if_due(self) -> None:
        """
        Sync the log if nobody else sees to it and the time has come.

        Raises:
            StoreFailed: the sync failed.
        """
        if self._seconds is None:
            return
        now = self._clock.monotonic()
        if now - self._synced_at >= self._seconds:
            self._synced_at = now
            self._redo.sync_to(self._redo.next_lsn)

    def _run(self, seconds: float) -> None:
        pause = 0.0
        while not self._stopping.wait(pause):
            try:
                self.sync_if_due()
            except StoreFailed:
                return  # the log has stopped, and says why
            except BaseException as error:  # nobody would sync any more: that must be seen
                self._redo.fail(error)
                raise
            left = self._synced_at + seconds - self._clock.monotonic()
            pause = max(min(left, seconds, LOOK_SECONDS), PAUSE_SECONDS)
