"""
Commits for asyncio: nobody's event loop waits for the disk, and one sync serves all who commit.

A thread waits for the redo log, as any committing thread would. What was asked for meanwhile is
served by its next sync, and an event loop is told once a sync, not once a commit.
"""

import asyncio
import threading
from types import TracebackType
from typing import Final, Self

from ibb.protocol.errors import IbbError
from ibb.protocol.gtid import Gtid
from ibb.storage import Store
from ibb.storage.commit_position import CommitPosition
from ibb.storage.errors import StoreFailed
from ibb.storage.group_writer import GroupWriter

PENDING_MAX: Final = 65_536  # commits; one more waits for the log in the caller's thread

_Future = asyncio.Future[None]


class AsyncCommits:
    """
    The way in for tasks that commit. A context manager that closes itself, not the store.

    A commit does its work in the task's thread, in some ten microseconds, and then waits without
    it. It holds the event loop up only where a thread would have to wait to append: for the disk
    when the page FIFO is full, and for a checkpoint when the redo log goes over to its other
    segment.

    Args:
        store: where groups go.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._mutex = threading.Lock()
        self._pending: list[tuple[CommitPosition, _Future]] = []
        self._wanted = threading.Semaphore(0)
        self._at_work = False
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="ibb-commits", daemon=True)
        self._thread.start()

    async def commit(self, group: GroupWriter, gtid: Gtid) -> CommitPosition:
        """
        Publish a group; return when it is as safe as `flush_log_at_commit` and the store's gate
        promise.

        If the task is cancelled while it waits, the group is committed all the same.

        Raises:
            GroupError: the events are not a whole group, or belong to another GTID.
            StoreFull: there is no room; the group is still open.
            StoreFailed: the store has stopped writing.
        """
        position = group.commit(gtid, wait=False)
        await self.acknowledged(position)
        return position

    async def acknowledged(self, position: CommitPosition) -> None:
        """
        Return when what was committed up to *position* is as safe as the store promises.

        Raises:
            StoreFailed: it is not known to be; the store has stopped writing.
        """
        future: _Future = asyncio.get_running_loop().create_future()
        with self._mutex:
            accepted = len(self._pending) < PENDING_MAX and not self._closed
            if accepted:
                self._pending.append((position, future))
                if not self._at_work:
                    self._at_work = True
                    self._wanted.release()
        if not accepted:
            self._store.wait_for(position)
            return
        await future

    def close(self) -> None:
        """Serve who waits and end the thread; a second call does nothing."""
        with self._mutex:
            self._closed = True
        self._wanted.release()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _run(self) -> None:
        is_over = False
        while not is_over:
            self._wanted.acquire()
            while pending := self._take():
                outcome = self._outcome([position for position, _ in pending])
                by_loop: dict[asyncio.AbstractEventLoop, list[_Future]] = {}
                for _, future in pending:
                    by_loop.setdefault(future.get_loop(), []).append(future)
                for loop, futures in by_loop.items():
                    _tell(loop, futures, outcome)
            with self._mutex:  # whom nobody serves yet was accepted before it was closed
                is_over = self._closed and not self._pending

    def _take(self) -> list[tuple[CommitPosition, _Future]]:
        with self._mutex:
            pending, self._pending = self._pending, []
            if not pending:
                self._at_work = False
        return sorted(pending, key=_lsn)

    def _outcome(self, positions: list[CommitPosition]) -> IbbError | None:
        """Wait for the newest record; and for the newest group, which the gate may hold."""
        groups = [position for position in positions if position.gtid is not None]
        try:
            for position in {positions[-1], *groups[-1:]}:
                self._store.wait_for(position)
        except IbbError as error:
            return error
        except Exception as error:  # noqa: BLE001 - who waits must hear of it, whatever it is
            return StoreFailed(error)
        return None


def _lsn(entry: tuple[CommitPosition, _Future]) -> int:
    return entry[0].lsn


def _tell(
    loop: asyncio.AbstractEventLoop, futures: list[_Future], outcome: IbbError | None
) -> None:
    try:
        loop.call_soon_threadsafe(_settle, futures, outcome)
    except RuntimeError:
        if not loop.is_closed():
            raise
        # Nobody is left in a closed loop who could wait.


def _settle(futures: list[_Future], outcome: IbbError | None) -> None:
    for future in futures:
        if future.done():
            continue  # its task was cancelled
        if outcome is None:
            future.set_result(None)
        else:
            future.set_exception(outcome)
