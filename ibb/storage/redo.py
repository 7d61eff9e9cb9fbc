"""
The redo log: what makes a binlog record certain before its pages are written.

Two preallocated segment files are used in turn. A segment begins with a header and holds redo
groups (`redo_record.py`) one behind the other; LSNs count the bytes of all groups ever written,
plus gaps where a new segment began. Before the log goes over to the other segment everything
logged so far is in the `.ibb` files and synced (a checkpoint), so the newest segment alone is
what recovery reads.

    offset  size   segment header
    0       8      magic "ibbRedo1"
    8       4      format version, 2
    12      4      0
    16      8      sequence number of this use, 1 upwards over both files
    24      8      LSN of the first group
    32      16     end of the binlog when this use began: u64 file number, u64 offset
    48      4      CRC-32C over bytes 0..47
    4096           groups

Group commit (`log_turns.py`): whoever waits for an LSN first writes and syncs for all. A sync that
failed is final: what reached the disk is unknown, so the log takes nothing more.
"""

import struct
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ibb.protocol.checksum import crc32c
from ibb.protocol.errors import FormatError

from .disk import Disk, File
from .errors import DiskError, StoreFailed, StoreFull
from .log_turns import LogTurns
from .position import Position
from .redo_record import (
    CHANGE_HEADER_SIZE,
    GROUP_HEADER_SIZE,
    MAGIC,
    Change,
    RedoGroup,
    encode_group,
    encode_single,
    group_size,
    parse_group,
    parse_groups,
    peek_synced_lsn,
)

FORMAT_VERSION = 2
SEGMENT_NAMES = ("ibb-redo-0.log", "ibb-redo-1.log")
SEGMENT_DATA_OFFSET = 4096
GROUP_SIZE_MAX = 3 << 20  # bytes: a record, the state records inside it, a whole page image
FIRST_LSN = 1
_SEGMENT_MAGIC = b"ibbRedo1"
_SEGMENT_HEADER = struct.Struct("<8sIIQQQQ")
_CRC = struct.Struct("<I")
SMALL_GROUP_SIZE_MAX = (1 << 16) + GROUP_HEADER_SIZE + CHANGE_HEADER_SIZE  # one change of a page
_BUFFER_BYTES_MAX = 4 << 20  # appended and not yet handed to the disk
_BLANK_BYTES = 1 << 20  # zeros written at a time in front of the log's end
_SCAN_WINDOW = 1 << 20
_OVERLAP = GROUP_HEADER_SIZE - 1  # bytes of a window that the next one has again


class Segment(NamedTuple):
    """A segment file with a valid header."""

    slot: int
    sequence: int
    first_lsn: int
    begun_at: Position  # end of the binlog then; the files hold all before it


def find_newest_segment(disk: Disk, directory: str) -> Segment | None:
    """
    Return the segment in use, or None when there is no redo log.

    Raises:
        FormatError: a segment was written by a newer version of the log's format.
    """
    found = [
        segment
        for slot, name in enumerate(SEGMENT_NAMES)
        if disk.exists(path := f"{directory}/{name}")
        and (segment := read_segment_header(disk, path, slot))
    ]
    return max(found, key=lambda segment: segment.sequence, default=None)


def read_segment_header(disk: Disk, path: str, slot: int) -> Segment | None:
    """
    Return what the segment file at *path* says of itself; None: it was never begun, or torn then.

    Raises:
        FormatError: it was written by a newer version of the log's format.
    """
    file = disk.open(path, read_only=True)
    try:
        raw = file.read_at(0, _SEGMENT_HEADER.size + _CRC.size)
    finally:
        file.close()
    if len(raw) < _SEGMENT_HEADER.size + _CRC.size:
        return None
    magic, version, _, sequence, first_lsn, file_no, offset = _SEGMENT_HEADER.unpack_from(raw)
    (crc,) = _CRC.unpack_from(raw, _SEGMENT_HEADER.size)
    if magic != _SEGMENT_MAGIC or crc != crc32c(raw[: _SEGMENT_HEADER.size]):
        return None  # never used, or torn when it was begun: nothing in it was promised
    if version != FORMAT_VERSION:
        raise FormatError(
            f"redo log format {version} is unknown, this program knows {FORMAT_VERSION}: "
            "open the directory with the version that wrote it",
            file=path,
        )
    return Segment(slot, sequence, first_lsn, Position(file_no, offset))


def read_groups(disk: Disk, directory: str, segment: Segment) -> Iterator[RedoGroup]:
    """
    Yield the groups of a segment up to the end of the log.

    Raises:
        FormatError: a group is damaged that had been synced, by the word of a later one.
    """
    path = f"{directory}/{SEGMENT_NAMES[segment.slot]}"
    file = disk.open(path, read_only=True)
    try:
        offset, lsn = SEGMENT_DATA_OFFSET, segment.first_lsn
        group: RedoGroup | None = None
        while True:
            window = file.read_at(offset, GROUP_SIZE_MAX + _SCAN_WINDOW)
            for group in parse_groups(window, 0, lsn):
                yield group
            if group is None or group.end_lsn == lsn:
                break
            offset += group.end_lsn - lsn
            lsn = group.end_lsn
        _check_torn_tail(file, path, offset, lsn)
    finally:
        file.close()


def _check_torn_tail(file: File, path: str, offset: int, lsn: int) -> None:
    """
    Tell the torn end of the log from damage in its middle.

    What is left of an earlier use of the segment can be many small groups: only one that claims
    what would prove damage is read.
    """
    start = offset
    while len(window := file.read_at(start, _SCAN_WINDOW + _OVERLAP)) > _OVERLAP:
        at = window.find(MAGIC)
        while 0 <= at < len(window) - _OVERLAP:
            if peek_synced_lsn(window, at) > lsn:
                raw = file.read_at(start + at, GROUP_SIZE_MAX)
                later = parse_group(raw, 0, None)
                if later is not None:
                    raise FormatError(
                        f"redo group {lsn} is damaged although it had been synced "
                        f"before group {later.lsn}; nothing was changed",
                        file=path,
                        offset=offset,
                    )
            at = window.find(MAGIC, at + 1)
        start += _SCAN_WINDOW


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
        self._file: File | None = None
        self._offset = 0  # of the next byte handed to the disk
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._mutex = threading.Lock()
        self._turns = LogTurns()
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
        for name in SEGMENT_NAMES:
            file = self._disk.open(f"{self._directory}/{name}", create=True)
            try:
                file.allocate(self._segment_size)
                file.sync()
            except DiskError as error:
                if error.full:
                    raise StoreFull(f"no room for the redo log: {error}") from error
                raise
            finally:
                file.close()
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
            file = self._disk.open(f"{self._directory}/{SEGMENT_NAMES[sequence % 2]}")
            head = _SEGMENT_HEADER.pack(
                _SEGMENT_MAGIC, FORMAT_VERSION, 0, sequence, first_lsn, *end
            )
            file.write_at(0, head + _CRC.pack(crc32c(head)))
            file.sync()
        except DiskError as error:
            self.fail(error)
            raise
        if self._file is not None:
            self._file.close()
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

    @property
    def takes_small(self) -> bool:
        """A change inside one page can be appended as things are."""
        buffered = self._buffered
        return (
            buffered < _BUFFER_BYTES_MAX
            and self._offset + buffered + SMALL_GROUP_SIZE_MAX <= self._segment_size
            and self.failure is None
        )

    def _add(self, group: bytes) -> int:
        size = len(group)
        with self._mutex:
            self._buffer.append(group)
            self._buffered += size
            self.next_lsn = lsn = self.next_lsn + size
        return lsn

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
            if self._turns.enter(lsn, until_synced=True):
                try:
                    if self._announced_lsn < lsn:
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
            if self._turns.enter(lsn, until_synced=False):
                try:
                    if self._written_lsn < lsn:
                        self._write(sync=False)
                finally:
                    self._leave()

    def _leave(self) -> None:
        self._turns.leave(
            written_lsn=self._written_lsn,
            synced_lsn=self._announced_lsn,
            failed=self.failure is not None,
        )

    def _write(self, *, sync: bool) -> None:
        """Hand everything appended to the disk; only for whoever has its turn."""
        self._check()
        assert self._file is not None
        with self._mutex:
            parts, self._buffer = self._buffer, []
            size, target = self._buffered, self.next_lsn
        end = self._offset + size
        try:
            if parts:
                if end > self._used[self._slot]:
                    parts.append(self._blank_behind(end, size))
                self._file.write_at(self._offset, parts[0] if len(parts) == 1 else parts)
            if sync:
                self._file.sync()
        except DiskError as error:
            self.fail(error)
            self._check()
        with self._mutex:
            self._offset = end
            self._buffered -= size
            self._written_lsn = target
        if sync:
            self.synced_lsn = target
            self._on_synced(target)
            self._announced_lsn = target

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

    def close(self) -> None:
        """Close the segment file; nothing is written any more."""
        if self._file is not None:
            self._file.close()

    def _check(self) -> None:
        if self.failure is not None:
            raise StoreFailed(self.failure) from self.failure
