"""
Recovery: the `.ibb` files as the redo log says they were at the last sync.

Changes are applied strictly in order. A page is rebuilt from its first byte, never read and
modified, because the log holds every page from its start (whole images after a checkpoint); so a
torn page is simply written again, and doing all of it twice gives the same. No page reaches a
file before its redo is durable, so a page in a file is a beginning of what the log says, and
nothing lies behind the end of the log; should it be otherwise all the same, the file is copied
aside before anything in it is overwritten or cleared. The LSN in a file's header is that of its
first change: a log that is older than the file tells of another one, and is not applied.
Source: ibb-format 11.
"""

from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from ibb.protocol.errors import FormatError

from .aside import discard, is_used_from, set_aside
from .chunk import chunk_area_end
from .disk import Disk, File
from .errors import RecoveryError
from .file_header import HEADER_UNIT, FileHeader, has_magic
from .file_name import binlog_name
from .listing import list_files
from .page import CHECKSUM_SIZE, page_is_zero
from .page_seal import seal_page, sealed_page
from .position import Position
from .redo_record import CHANGE_HEADER_SIZE, Change, RedoGroup, unpack_change_header
from .redo_segment import SEGMENT_NAMES, Segment, find_newest_segment, read_groups
from .second_reads import read_again, read_file_header
from .synced_note import certain_lsn


class Replayed(NamedTuple):
    """
    What the redo log gave.

    Attributes:
        sequence: of the segment that was read; the next one used must have a higher number.
        begun_at: end of the binlog when that segment was begun: the files hold all before it.
        next_lsn: beyond every LSN that may have been given out so far, to lost groups too; the
            next segment used must begin here or later.
        end: end of the binlog behind the last change, or None when the log held no change.
        copies_set_aside: files that were copied because they held more than the log tells of.
        certain: the LSN up to which a store that has the directory open had synced the log; None:
            none had it open, or that was not asked for.
    """

    sequence: int
    begun_at: Position
    next_lsn: int
    end: Position | None
    copies_set_aside: list[str]
    certain: int | None


def is_unused(disk: Disk, path: str) -> bool:
    """Tell whether a file has no header yet: made in advance, or not even that."""
    file = disk.open(path, read_only=True)
    try:
        start = file.read_at(0, HEADER_UNIT)
        if not has_magic(start):
            start = read_again(file, 0, HEADER_UNIT)
        return page_is_zero(start)
    finally:
        file.close()


def replay(
    disk: Disk,
    directory: str,
    *,
    apply: bool = True,
    set_aside: bool = True,
    certain_only: bool = False,
) -> Replayed | None:
    """
    Apply the redo log to the files; return None when there is no redo log.

    Args:
        disk: where the directory is.
        directory: its path.
        apply: False only reads to the end of the log: its files are gone for good.
        set_aside: copy a file first if it holds something that the log does not tell of.
        certain_only: leave out what a store that has the directory open has not synced yet.

    Raises:
        FormatError: the log is damaged before its end.
        RecoveryError: its changes do not follow one another or do not fit the files.
        DiskError: a file cannot be read or written.
    """
    segment = find_newest_segment(disk, directory)
    if segment is None:
        return None
    certain = certain_lsn(disk, directory) if certain_only else None
    _sync_segment(disk, directory, segment)
    for first_file in (_first_incomplete(disk, directory), 0):
        replayer = _Replayer(disk, directory, first_file, set_aside=set_aside)
        groups = read_groups(disk, directory, segment, until=certain, grows=certain_only)
        try:
            if apply:
                replayer.apply(groups)
            else:
                deque(groups, maxlen=0)
            end = replayer.finish()
        finally:
            replayer.close()
        if end is not None or not replayer.skipped:
            break
        # The log ends in a file that should be complete: take nothing for granted.
    return Replayed(
        segment.sequence,
        segment.begun_at,
        segment.first_lsn + disk.size(f"{directory}/{SEGMENT_NAMES[segment.slot]}"),
        end,
        replayer.copies_set_aside,
        certain,
    )


def _first_incomplete(disk: Disk, directory: str) -> int:
    """
    Return the first file of which pages may be only in the redo log.

    Before file N + 1 is made, file N - 1 is written and synced. So however many files the log
    tells of, the two newest that have a header are all that there is to recover.
    """
    for file_no in reversed(list_files(disk, directory)):
        if not is_unused(disk, f"{directory}/{binlog_name(file_no)}"):
            return max(file_no - 1, 0)
    return 0


def _sync_segment(disk: Disk, directory: str, segment: Segment) -> None:
    """Make certain what a killed process left unsynced: no page may get ahead of its redo."""
    file = disk.open(f"{directory}/{SEGMENT_NAMES[segment.slot]}")
    try:
        file.sync()
    finally:
        file.close()


class _Replayer:
    """
    Rebuilds pages one after the other.

    Attributes:
        skipped: there were changes of files before *first_file*.
        copies_set_aside: see `Replayed`.
    """

    def __init__(self, disk: Disk, directory: str, first_file: int, *, set_aside: bool) -> None:
        self._disk = disk
        self._directory = directory
        self._sets_aside = set_aside
        self._existing = list_files(disk, directory)
        self._first_file = first_file
        self._file: File | None = None
        self._file_no = -1
        self._page_no = -1
        self._page = bytearray()
        self._used = 0
        self._page_size = 0
        self._area_end = 0
        self._set_aside: set[int] = set()
        self.skipped = False
        self.copies_set_aside: list[str] = []

    def apply(self, groups: Iterable[RedoGroup]) -> None:
        """
        Apply the changes of groups in order.

        Raises:
            FormatError: a change passes the end of its group.
            RecoveryError: the changes do not follow one another or do not fit the files.
            DiskError: a file cannot be read or written.
        """
        for group in groups:
            payload = group.payload
            length_max = len(payload) - CHANGE_HEADER_SIZE
            if length_max > 0:
                # Nearly always the group is one small change that goes on where the page ends.
                file_no, page_no, offset, length = unpack_change_header(payload)
                end = offset + length
                if (
                    offset == self._used
                    and length == length_max
                    and page_no == self._page_no
                    and file_no == self._file_no
                    and offset > 0
                    and end <= self._area_end
                ):
                    self._page[offset:end] = payload[CHANGE_HEADER_SIZE:]
                    self._used = end
                    continue
            for change in group.changes():
                self._apply(change, group.lsn)

    def _apply(self, change: Change, lsn: int) -> None:
        if self._existing and change.file_no < self._existing[0]:
            return  # purged since
        if change.file_no < self._first_file:
            self.skipped = True
            return
        if (change.file_no, change.page_no) != (self._file_no, self._page_no):
            self._next_page(change, lsn)
        elif change.offset not in (0, self._used):
            raise RecoveryError(
                f"redo of {binlog_name(change.file_no)} page {change.page_no} goes on at "
                f"{change.offset}, the page ends at {self._used}"
            )
        if change.page_no == 0:
            self._page[:] = FileHeader.from_fields(change.data, change.file_no).encode()
            self._used = self._area_end
            return
        end = change.offset + len(change.data)
        if end > self._area_end or end < self._used:
            raise RecoveryError(
                f"redo of {binlog_name(change.file_no)} page {change.page_no} ends at {end}"
            )
        self._page[change.offset : end] = change.data
        self._used = end

    def _next_page(self, change: Change, lsn: int) -> None:
        if change.offset != 0:
            raise RecoveryError(
                f"Missing recovery record for {binlog_name(change.file_no)} page {change.page_no}: "
                f"its redo begins at offset {change.offset}"
            )
        if self._file is not None:
            follows = (change.file_no, change.page_no) in (
                (self._file_no, self._page_no + 1),
                (self._file_no + 1, 0),
            )
            if not follows or self._used != self._area_end:
                raise RecoveryError(
                    f"Missing recovery record between {binlog_name(self._file_no)} page "
                    f"{self._page_no} and {binlog_name(change.file_no)} page {change.page_no}"
                )
            self._write_page()
        if change.file_no != self._file_no:
            self._enter_file(change, lsn)
        self._page_no, self._used = change.page_no, 0
        self._page = bytearray(self._page_size)

    def _enter_file(self, change: Change, lsn: int) -> None:
        if self._file is not None:
            # It was left for the next one: full, or cut here by FLUSH.
            cut = (self._page_no + 1) * self._page_size
            if self._sets_aside and is_used_from(self._file, cut):
                self._set_file_aside()
            self._file.truncate(cut)
            self._file.sync()
            self._file.close()
        path = f"{self._directory}/{binlog_name(change.file_no)}"
        missing = not self._disk.exists(path)
        if missing and (change.page_no != 0 or change.file_no in self._existing):
            raise RecoveryError(f"{path} is missing and the redo log does not begin with it")
        if change.page_no == 0:
            header = FileHeader.from_fields(change.data, change.file_no)
            self._file = self._disk.open(path, create=True)
            with suppress(FormatError):  # it may have none yet, or a torn one
                self._check_age(read_file_header(self._file, change.file_no), lsn)
            self._file.allocate(header.page_count * header.page_size)
            self._disk.sync_dir(self._directory)
        else:
            self._file = self._disk.open(path)
            header = read_file_header(self._file, change.file_no)
            self._check_age(header, lsn)
        self._file_no = change.file_no
        self._page_size = header.page_size
        self._area_end = chunk_area_end(header.page_size)

    @staticmethod
    def _check_age(header: FileHeader, lsn: int) -> None:
        """Check that the first change of a file is not older than the file."""
        if lsn < header.lsn:
            raise RecoveryError(
                f"redo of {binlog_name(header.file_no)} has LSN {lsn}, but the file was begun at "
                f"LSN {header.lsn}: the log is not that of this file, which was not changed (put "
                "files and log of the same time back, or remove both ibb-redo-*.log to go on with "
                "what the files hold)"
            )

    def _write_page(self) -> None:
        assert self._file is not None
        seal_page(self._page)
        offset = self._page_no * self._page_size
        if self._sets_aside:
            self._compare(self._file.read_at(offset, self._page_size))
        self._file.write_at(offset, self._page)

    def finish(self) -> Position | None:
        """Write the last page; return the end of the binlog."""
        if self._file is None:
            return None
        self._write_page()
        self._file.sync()
        used = self._used
        if used == self._area_end:
            return Position(self._file_no, (self._page_no + 1) * self._page_size)
        return Position(self._file_no, self._page_no * self._page_size + used)

    def _compare(self, stored: bytes) -> None:
        """Copy the file if its page is whole and not a beginning of what the log says."""
        known = self._page.startswith(stored[:-CHECKSUM_SIZE].rstrip(b"\0"))
        whole = len(stored) == self._page_size
        if not known and whole and sealed_page(stored) == stored:
            self._set_file_aside()

    def _set_file_aside(self) -> None:
        if self._file_no not in self._set_aside:
            self._set_aside.add(self._file_no)
            path = f"{self._directory}/{binlog_name(self._file_no)}"
            self.copies_set_aside.append(set_aside(self._disk, path))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def clear_behind(disk: Disk, directory: str, end: Position, page_size: int) -> list[str]:
    """
    Clear what lies behind the end of the binlog, in its file and in later ones.

    Returns:
        The copies that were set aside, since there was something.
    """
    copies = []
    for file_no in reversed(list_files(disk, directory)):
        if file_no > end.file_no:
            copies += discard(disk, f"{directory}/{binlog_name(file_no)}")
    disk.sync_dir(directory)
    first_page = -(-end.offset // page_size)
    rest = first_page * page_size - end.offset  # of the page in which data ends
    path = f"{directory}/{binlog_name(end.file_no)}"
    size = disk.size(path)
    file = disk.open(path)
    try:
        later_is_used = is_used_from(file, first_page * page_size)
        behind = file.read_at(end.offset, max(rest - CHECKSUM_SIZE, 0))
        if later_is_used or not page_is_zero(behind):
            copies.append(set_aside(disk, path))
        if later_is_used:
            file.truncate(first_page * page_size)
            file.allocate(size)
            file.sync()
    finally:
        file.close()
    return copies
