"""
The redo log: what makes a binlog record certain before its pages are written.

Two preallocated segment files (`redo_segment.py`) are used in turn, each full of redo groups
(`redo_record.py`); LSNs count the bytes of all groups ever written, plus gaps where an opening
began a segment: no LSN is given out twice, so what an earlier use has left in a file never lies
at the LSN that is due there. Before the log goes over to the other segment everything logged so
far is in the `.ibb` files and synced (a checkpoint), so the newest segment alone is what recovery
reads.

Group commit (`log_turns.py`): whoever waits for an LSN first writes and syncs for all; who finds
too much in memory writes meanwhile. A sync that failed is final: what reached the disk is unknown,
so the log takes nothing more.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .disk import Buffer, Disk, File
from .errors import DiskError, StoreFailed, StoreFull
from .log_turns import LogTurns
from .position import Position
from .redo_record import (
    CHANGE_HEADER_SIZE,
    GROUP_HEADER_SIZE,
    Change,
    encode_group,
    encode_single,
    group_size,
)
from .redo_segment import (
    FIRST_LSN,
    GROUP_SIZE_MAX,
    MAKING_ORDER,
    SEGMENT_DATA_OFFSET,
    SEGMENT_NAMES,
    encode_segment_header,
)

_log = logging.getLogger(__name__)

SMALL_GROUP_SIZE_MAX = (1 << 16) + GROUP_HEADER_SIZE + CHANGE_HEADER_SIZE  # one change of a page
_BUFFER_BYTES_MAX = 4 << 20  # appended and not yet handed to the disk
_BLANK_BYTES = 1 << 20  # zeros written at a time in front of the log's end


class RedoLog:
    """
    The writing side.

    `append` and `begin_segment` belong to the holder of the store's write lock; `sync_to` may be
    called by any thread.

    Args:
        disk: where the segments are.
        directory: path of the store.
        segment_size: bytes of a segment file.
        on_synced: called with the LSN that has become durable, by the thread that synced.
    """

    def __init__(
        self, disk: Disk, directory: str, segment_size: int, on_synced: Callable[[int], None]
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._segment_size = segment_size
        self._on_synced = on_synced
        self._files: dict[int, File] = {}  # by slot
        self._file: File | None = None
        self._offset = 0  # of the next byte handed to the disk
        self._buffer: list[Buffer] = []
        self._buffered = 0
        self._mutex = threading.Lock()
        self._turns = LogTurns()
        self._writing = threading.Lock()  # held by who hands bytes to the disk, but for a sync
        self._used = [0, 0]  # end of what was written in each segment file since the opening
        self.failure: BaseException | None = None
        self.next_lsn = FIRST_LSN
        self.synced_lsn = FIRST_LSN
        self._announced_lsn = FIRST_LSN  # synced, and `on_synced` was told
        self._written_lsn = FIRST_LSN  # with the operating system

    def prepare(self) -> None:
        """
        Make both segment files at their full size, so that the log never runs out of room.

        Raises:
            StoreFull: there is no room for them.
            DiskError: they cannot be made.
        """
        try:
            for slot in MAKING_ORDER:
                path = f"{self._directory}/{SEGMENT_NAMES[slot]}"
                file = self._files[slot] = self._disk.open(path, create=True)
                file.allocate(self._segment_size)
                # After a failed sync a length may be in the cache alone, and no sync would bring
                # it to the disk: only what changes does.
                last = self._segment_size - 1
                file.write_at(last, file.read_at(last, 1))
                file.sync()
        except DiskError as error:
            self.close()
            if error.full:
                raise StoreFull(f"no room for the redo log: {error}") from error
            raise
        self._disk.sync_dir(self._directory)

    def begin_segment(self, sequence: int, first_lsn: int, end: Position) -> None:
        """
        Go over to a segment; everything before is checkpointed and synced.

        Args:
            sequence: of the use of a segment.
            first_lsn: of its first group.
            end: of the binlog now.

        Raises:
            DiskError: its header could not be written: the log takes nothing more.
        """
        assert not self._buffer
        assert first_lsn >= self.next_lsn
        try:
            file = self._files[sequence % 2]
            file.write_at(0, encode_segment_header(sequence, first_lsn, end, self._segment_size))
            file.sync()
        except DiskError as error:
            self.fail(error)
            raise
        self._file, self._offset = file, SEGMENT_DATA_OFFSET
        self._sequence = sequence
        self._slot = sequence % 2
        self.next_lsn = self._written_lsn = self.synced_lsn = self._announced_lsn = first_lsn

    def begin_next_segment(self, end: Position) -> None:
        """Go over to the other segment; everything before is checkpointed and synced."""
        self.begin_segment(self._sequence + 1, self.next_lsn, end)

    @property
    def group_size_max(self) -> int:
        """The largest group there can be."""
        return min(GROUP_SIZE_MAX, self._segment_size - SEGMENT_DATA_OFFSET)

    def fits(self, size: int) -> bool:
        """Tell whether a group of *size* bytes still fits in this segment."""
        assert size <= self.group_size_max
        return self._offset + self._buffered + size <= self._segment_size

    def append(self, changes: list[Change]) -> int:
        """
        Add one group; return the LSN behind it. It is durable once `sync_to` that LSN returns.

        Raises:
            StoreFailed: the log failed before.
        """
        self._check()
        assert self.fits(group_size(changes))
        data = encode_group(self.next_lsn, self.synced_lsn, changes)
        return self._add(data)

    def append_small(self, change: Change) -> int:
        """As `append` for a single change, faster; call it only if `takes_small`."""
        return self._add(encode_single(self.next_lsn, self.synced_lsn, change))

    def append_run(self, groups: list[Buffer], size: int) -> int:
        """
        Add groups that are encoded already, the first at `next_lsn`; return the LSN behind them.

        Args:
            groups: in pieces, whose bytes stay as they are from now on.
            size: bytes of all.

        Raises:
            StoreFailed: the log failed before.
        """
        self._check()
        assert self.fits(size)
        with self._mutex:
            self._buffer += groups
            return self._added(size)

    @property
    def takes_small(self) -> bool:
        """A change inside one page can be appended as things are."""
        buffered = self._buffered
        return (
            buffered < _BUFFER_BYTES_MAX
            and self._offset + buffered + SMALL_GROUP_SIZE_MAX <= self._segment_size
            and self.failure is None
        )

    def _add(self, group: Buffer) -> int:
        with self._mutex:
            self._buffer.append(group)
            return self._added(len(group))

    def _added(self, size: int) -> int:
        self._buffered += size
        self.next_lsn += size
        return self.next_lsn

    @property
    def wants_write(self) -> bool:
        """So much is waiting in memory that it should be written before more is added."""
        return self._buffered >= _BUFFER_BYTES_MAX

    def sync_to(self, lsn: int) -> None:
        """
        Return when everything before *lsn* is durable, and `on_synced` has been told.

        Raises:
            StoreFailed: the log could not be written; what became of the data is unknown.
        """
        while self._announced_lsn < lsn:
            self._check()
            try:
                if self._turns.enter(lsn, until_synced=True) and self._announced_lsn < lsn:
                    self._write(sync=True)
            finally:
                self._leave()

    def write_to(self, lsn: int) -> None:
        """
        Return when everything before *lsn* is with the operating system, not yet durable.

        Raises:
            StoreFailed: as `sync_to`.
        """
        while self._written_lsn < lsn:
            self._check()
            try:
                if self._turns.enter(lsn, until_synced=False) and self._written_lsn < lsn:
                    self._write(sync=False)
            finally:
                self._leave()

    def write_now(self) -> None:
        """
        Hand everything appended to the operating system, without waiting for a sync that goes on.

        Raises:
            StoreFailed: as `sync_to`.
        """
        self._write(sync=False)

    def _leave(self) -> None:
        self._turns.leave(
            written_lsn=self._written_lsn,
            synced_lsn=self._announced_lsn,
            failed=self.failure is not None,
        )

    def _write(self, *, sync: bool) -> None:
        """Hand everything appended to the disk; with *sync* only for whoever has its turn."""
        try:
            file, target = self._write_out()
            if sync:
                file.sync()
                self.synced_lsn = target
                self._on_synced(target)
                self._announced_lsn = target
        except StoreFailed:
            raise
        except DiskError as error:
            self.fail(error)
            self._check()
        except BaseException as error:
            self.fail(error)  # interrupted: what was taken from the buffer may be nowhere
            raise

    def _write_out(self) -> tuple[File, int]:
        """Write what is in memory; return the file, and the LSN before which all is in it."""
        with self._writing:
            self._check()
            assert self._file is not None
            with self._mutex:
                parts, self._buffer = self._buffer, []
                size, target = self._buffered, self.next_lsn
            end = self._offset + size
            if parts:
                if end > self._used[self._slot]:
                    parts.append(self._blank_behind(end, size))
                self._file.write_at(self._offset, parts[0] if len(parts) == 1 else parts)
            with self._mutex:
                self._offset = end
                self._buffered -= size
                self._written_lsn = target
            return self._file, target

    def _blank_behind(self, end: int, size: int) -> bytes:
        """
        Return zeros to write behind *size* bytes that end where the file was never written.

        A file system keeps a note of which reserved blocks were written; changing it makes a sync
        take longer. So small writes go where one write of zeros has been before.
        """
        blank = 0 if size > _BLANK_BYTES // 4 else min(_BLANK_BYTES, self._segment_size - end)
        self._used[self._slot] = end + blank
        return bytes(blank)

    def fail(self, error: BaseException) -> None:
        """Take nothing more: memory holds what the log would not bring back."""
        if self.failure is None:
            self.failure = error
            _log.error("%s: %s", self._directory, StoreFailed(error))

    @contextmanager
    def whole_or_failed(self) -> Iterator[None]:
        """Fail if what goes on inside fails: pages in memory may hold half of it."""
        try:
            yield
        except BaseException as error:
            self.fail(error)
            raise

    def close(self) -> None:
        """Close the segment files; nothing is written any more."""
        for file in self._files.values():
            file.close()
        self._files.clear()

    def _check(self) -> None:
        if self.failure is not None:
            raise StoreFailed(self.failure) from self.failure
