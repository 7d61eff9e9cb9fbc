"""
The disk of a served store, with an eye on what the store does to it.

Storage reaches files through its `Disk` alone, so whoever hands one in sees when a sync is slow,
when the redo log begins anew, and how far pages have come into their files.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from ibb.storage.file_name import parse_binlog_name
from ibb.storage.os_disk import OsDisk
from ibb.storage.position import NOWHERE, Position
from ibb.storage.redo_segment import SEGMENT_NAMES

from .latencies import Latencies

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ibb.storage.disk import Buffer, File


class MeasuredDisk(OsDisk):
    """
    The real disk, for the store in one directory; safe to use from several threads.

    Args:
        directory: as `Store.open` is given it: other places, such as a backup's, are not measured.
        monotonic: seconds since some moment.
        now: seconds since 1970.

    Attributes:
        redo_syncs, binlog_syncs: how long syncs of the redo log and of binlog files took.
        checkpoints: how often the redo log began anew, the opening counted.
        checkpoint_at: when it did last, in seconds since 1970.
        segment: path of the redo segment in use.
        in_files: up to here everything is in the binlog files, durable there or not.
    """

    def __init__(
        self,
        directory: str,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.redo_syncs = Latencies()
        self.binlog_syncs = Latencies()
        self.checkpoints = 0
        self.checkpoint_at: float | None = None
        self.segment = ""
        self.in_files = NOWHERE
        self._directory = directory
        self._monotonic = monotonic
        self._now = now
        self._mutex = threading.Lock()
        self._waiting: dict[int, float] = {}  # when the sync began that a thread waits for

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> File:
        """Open a file; what is written to it counts if it is one of the store's."""
        file = super().open(path, create=create, read_only=read_only)
        folder, _, name = path.rpartition("/")
        if read_only or folder != self._directory:
            return file
        if name in SEGMENT_NAMES:
            self._measure(file, self.redo_syncs, lambda at, _: self._redo_written(path, at))
        elif (file_no := parse_binlog_name(name)) is not None:
            if create:
                self._made(file_no)
            self._measure(
                file,
                self.binlog_syncs,
                lambda at, size: self._pages_written(Position(file_no, at + size)),
            )
        return file

    def longest_wait(self) -> float:
        """Return for how long the oldest sync has gone on that has not come back, 0 without one."""
        with self._mutex:
            began = min(self._waiting.values(), default=None)
        return 0.0 if began is None else max(0.0, self._monotonic() - began)

    def _measure(self, file: File, syncs: Latencies, written: Callable[[int, int], None]) -> None:
        """Have *file* tell of its syncs, and of writes by offset and size."""
        write_at, sync = file.write_at, file.sync

        def told(offset: int, data: Buffer | Sequence[Buffer]) -> None:
            write_at(offset, data)
            if isinstance(data, bytes | bytearray | memoryview):
                written(offset, len(data))
            else:
                written(offset, sum(len(part) for part in data))

        def timed() -> None:
            thread, began = threading.get_ident(), self._monotonic()
            with self._mutex:
                self._waiting[thread] = began
            try:
                sync()
            finally:
                with self._mutex:
                    del self._waiting[thread]
                    syncs.add(self._monotonic() - began)

        file.write_at = told  # type: ignore[method-assign]
        file.sync = timed  # type: ignore[method-assign]

    def _redo_written(self, path: str, offset: int) -> None:
        if offset == 0:  # a segment's header: the files hold everything before it
            self.segment = path
            self.checkpoint_at = self._now()
            self.checkpoints += 1

    def _pages_written(self, end: Position) -> None:
        self.in_files = max(self.in_files, end)

    def _made(self, file_no: int) -> None:
        """Begin anew where the history does: its files have numbers that there were before."""
        if file_no <= self.in_files.file_no:
            self.in_files = Position(file_no, 0)
