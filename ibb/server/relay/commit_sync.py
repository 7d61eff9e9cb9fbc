"""
What a relay has committed, made durable: before it goes on, or while it stores what has come.

A sync takes about as long as it takes to store a mebibyte. Who has no more to store waits for it,
since another thread would have to be woken first; while more has come already, one does it beside.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from ibb.server.worker_threads import WorkerThreads
from ibb.storage.errors import StoreFailed

if TYPE_CHECKING:
    from concurrent.futures import Future

    from ibb.storage.commit_position import CommitPosition
    from ibb.storage.store import Store


class CommitSync:
    """
    The syncs of one dump; belongs to the thread that stores it.

    At most one goes on beside that. How much may wait for it is the redo log's to say, which takes
    no more than it has memory for.

    Args:
        store: holds the commits.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._thread: WorkerThreads | None = None  # made when it is needed first
        self._beside: Future[float] | None = None
        self._newest: CommitPosition | None = None  # that nobody has waited for

    def settle(self, committed: CommitPosition | None, *, has_more: bool) -> float | None:
        """
        Have everything so far become as safe as the store's `flush_log_at_commit` promises.

        Args:
            committed: the newest since the last call; None: nothing was.
            has_more: it need not be on return, as this will be called again, and soon.

        Returns:
            Seconds that a sync took; None: none has come to its end.

        Raises:
            StoreFailed: one failed.
        """
        self._newest = committed or self._newest
        if has_more and self._may_go_beside():
            return self._begin_beside()
        took = self._end_beside()
        if self._newest is not None:
            newest, self._newest = self._newest, None
            took = self._waited_for(newest)
        return took

    def close(self) -> None:
        """Have everything so far synced once more; that it failed the store tells whoever asks."""
        try:
            with suppress(StoreFailed):
                self.settle(None, has_more=False)
        finally:
            thread, self._thread = self._thread, None
            if thread is not None:
                thread.shutdown()

    def _may_go_beside(self) -> bool:
        """Tell whether syncs are all that is waited for: no replica's acknowledgement is."""
        commits = self._store.commits
        return commits.are_synced and commits.gate is None

    def _begin_beside(self) -> float | None:
        """Have all so far synced by the other thread, unless it is at work."""
        if self._beside is not None and not self._beside.done():
            return None
        took, newest = self._end_beside(), self._newest
        if newest is not None:
            self._newest = None
            if self._thread is None:
                self._thread = WorkerThreads(1, "relay-sync")
            self._beside = self._thread.submit(self._waited_for, newest)
        return took

    def _end_beside(self) -> float | None:
        beside, self._beside = self._beside, None
        return None if beside is None else beside.result()

    def _waited_for(self, position: CommitPosition) -> float:
        began = time.monotonic()
        self._store.wait_for(position)
        return time.monotonic() - began
