"""
The files of the redo log, and how they are read.

A segment begins with a header and holds redo groups (`redo_record.py`) one behind the other.

    offset  size   segment header
    0       8      magic "ibbRedo1"
    8       4      format version, 2
    12      4      bytes that the file was made with, 0: not told
    16      8      sequence number of this use, 1 upwards over both files
    24      8      LSN of the first group
    32      16     end of the binlog when this use began: u64 file number, u64 offset
    48      4      CRC-32C over bytes 0..47
    4096           groups
"""

import struct
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from ibb.protocol.checksum import crc32c
from ibb.protocol.errors import FormatError

from .disk import Disk, File
from .position import Position
from .redo_record import GROUP_HEADER_SIZE, RedoGroup, parse_group, parse_groups
from .redo_scan import find_due
from .second_reads import read_again, tell_of_healed

FORMAT_VERSION = 2
SEGMENT_NAMES = ("ibb-redo-0.log", "ibb-redo-1.log")
SEGMENT_DATA_OFFSET = 4096
GROUP_SIZE_MAX = 3 << 20  # bytes: a record, the state records inside it, a whole page image
FIRST_LSN = 1
MAKING_ORDER = (1, 0)  # of the slots: sequence number 1 is used in slot 1
_SEGMENT_MAGIC = b"ibbRedo1"
_SEGMENT_HEADER = struct.Struct("<8sIIQQQQ")
_CRC = struct.Struct("<I")
_WHOLE_HEADER = _SEGMENT_HEADER.size + _CRC.size
_LSN_END = 1 << 64
_SCAN_WINDOW = 1 << 20
_OVERLAP = GROUP_HEADER_SIZE - 1  # bytes of a window that the next one has again


class Segment(NamedTuple):
    """A segment file with a valid header."""

    slot: int
    sequence: int
    first_lsn: int
    begun_at: Position  # end of the binlog then; the files hold all before it
    size: int  # bytes that the file has at least; 0: not told


def find_newest_segment(disk: Disk, directory: str) -> Segment | None:
    """
    Return the segment in use, or None when there is no redo log.

    Raises:
        FormatError: a segment was written by a newer version of the log's format, or has lost
            its header or its end or vanished though it was in use.
    """
    paths = [f"{directory}/{name}" for name in SEGMENT_NAMES]
    found = [
        segment
        for slot, path in enumerate(paths)
        if disk.exists(path) and (segment := read_segment_header(disk, path, slot))
    ]
    newest = max(found, key=lambda segment: segment.sequence, default=None)
    for slot, path in enumerate(paths):
        if slot not in (segment.slot for segment in found):
            _check_unused(disk, path, newest)
    if newest is not None:
        _check_whole(disk, paths[newest.slot], newest.size)
    return newest


def _check_whole(disk: Disk, path: str, due: int) -> None:
    """Check that a file was not cut: behind its new end groups may have been."""
    size = disk.size(path)
    if size < due:
        raise FormatError(
            f"a redo segment was cut: it has {size} bytes, it was made with {due}: groups may be "
            "lost that were durable; nothing was changed (put the whole file back, or remove both "
            "segments to go on with what the files hold, or lengthen this one to go on with what "
            f"is left in it: truncate -s {due} FILE)",
            file=path,
        )


def _check_unused(disk: Disk, path: str, other: Segment | None) -> None:
    """
    Check that a segment without a valid header was never begun, or torn when it was.

    Both files are there before the first header is, and a header is synced before its first
    group is written; what an earlier use left is older than the other segment.
    """
    wrong = None
    if disk.exists(path):
        _check_whole(disk, path, _size_due(disk, path, other))
        file = disk.open(path, read_only=True)
        try:
            group = parse_group(file.read_at(SEGMENT_DATA_OFFSET, GROUP_SIZE_MAX), 0, None)
        finally:
            file.close()
        if group is not None and (other is None or group.lsn >= other.first_lsn):
            wrong = (
                f"the header of a redo segment is damaged, with redo group {group.lsn} behind it"
            )
    elif other is not None:
        wrong = "a redo segment is missing"
    if wrong is not None:
        raise FormatError(
            f"{wrong}: groups may be lost that were durable; nothing was changed (remove both "
            "segments to go on with what the files hold)",
            file=path,
        )


def _size_due(disk: Disk, path: str, other: Segment | None) -> int:
    """
    Return the bytes that a segment without a valid header must have at least.

    The one that is used first is made first: the other is never longer before a header is there.
    """
    if other is not None:
        return other.size
    first, second = (f"{path.rpartition('/')[0]}/{SEGMENT_NAMES[slot]}" for slot in MAKING_ORDER)
    return disk.size(second) if path == first and disk.exists(second) else 0


def damaged_headers(disk: Disk, directory: str) -> list[str]:
    """Return the segment files that begin with what is no header; opening begins them anew."""
    paths = [f"{directory}/{name}" for name in SEGMENT_NAMES]
    return [
        path
        for slot, path in enumerate(paths)
        if disk.exists(path)
        and read_segment_header(disk, path, slot) is None
        and any(_raw_header(disk, path))
    ]


def encode_segment_header(sequence: int, first_lsn: int, begun_at: Position, size: int) -> bytes:
    """Return what a segment begins with; for the arguments see `Segment`."""
    head = _SEGMENT_HEADER.pack(
        _SEGMENT_MAGIC, FORMAT_VERSION, size, sequence, first_lsn, *begun_at
    )
    return head + _CRC.pack(crc32c(head))


def read_segment_header(disk: Disk, path: str, slot: int) -> Segment | None:
    """
    Return what the segment file at *path* says of itself; None: it was never begun, or torn then.

    Raises:
        FormatError: it was written by a newer version of the log's format.
    """
    raw = _raw_header(disk, path)
    if not _is_header(raw):
        return None  # never used, or torn when it was begun: nothing in it was promised
    _, version, size, sequence, first_lsn, file_no, offset = _SEGMENT_HEADER.unpack_from(raw)
    if version != FORMAT_VERSION:
        raise FormatError(
            f"redo log format {version} is unknown, this program knows {FORMAT_VERSION}: "
            "open the directory with the version that wrote it",
            file=path,
        )
    return Segment(slot, sequence, first_lsn, Position(file_no, offset), size)


def _raw_header(disk: Disk, path: str) -> bytes:
    """Return what a segment file begins with, read again if that is no header."""
    file = disk.open(path, read_only=True)
    try:
        raw = file.read_at(0, _WHOLE_HEADER)
        return raw if _is_header(raw) else read_again(file, 0, _WHOLE_HEADER)
    finally:
        file.close()


def _is_header(raw: bytes) -> bool:
    return (
        len(raw) == _WHOLE_HEADER
        and raw.startswith(_SEGMENT_MAGIC)
        and raw[_SEGMENT_HEADER.size :] == _CRC.pack(crc32c(raw[: _SEGMENT_HEADER.size]))
    )


def read_groups(
    disk: Disk,
    directory: str,
    segment: Segment,
    *,
    until: int | None = None,
    grows: bool = False,
) -> Iterator[RedoGroup]:
    """
    Yield the groups of a segment up to the end of the log.

    Args:
        disk: where the log is.
        directory: path of the store.
        segment: in use.
        until: an LSN; groups that do not end before it or at it are left out, and not looked at,
            since they may just be written. None: there are none such.
        grows: somebody may be writing: more groups at another look are no sign of a misread.

    Raises:
        FormatError: a group is damaged that had been synced, by the word of a later one.
    """
    path = f"{directory}/{SEGMENT_NAMES[segment.slot]}"
    file = disk.open(path, read_only=True)
    try:
        offset, lsn = SEGMENT_DATA_OFFSET, segment.first_lsn
        looks = 0  # at this place, without finding a group
        while until is None or lsn < until:
            read = partial(read_again, file) if looks else file.read_at
            end_lsn = lsn
            for group in parse_groups(read(offset, GROUP_SIZE_MAX + _SCAN_WINDOW), 0, lsn):
                if until is not None and group.end_lsn > until:
                    return
                yield group
                end_lsn = group.end_lsn
            if end_lsn > lsn:
                if looks and not grows:
                    tell_of_healed(f"{path}: the log seemed to end before LSN {lsn}")
                offset += end_lsn - lsn
                lsn, looks = end_lsn, 0
                continue
            looks += 1
            if looks == 1:
                continue  # unless it was misread: nobody would miss what follows
            damage = _damage(file, path, offset, lsn)
            if damage is None:
                return
            if looks > 2 or not grows:
                raise damage
            # Both may have been written since it was looked at, this group before the later one.
    finally:
        file.close()


def _damage(file: File, path: str, offset: int, lsn: int) -> FormatError | None:
    """
    Tell the torn end of the log from damage in its middle, which is returned.

    User data can hold anything: only what lies at its LSN and claims what would prove damage is
    read.
    """
    start = offset
    while len(window := file.read_at(start, _SCAN_WINDOW + _OVERLAP)) > _OVERLAP:
        first_lsn, at = lsn + start - offset, -1
        if first_lsn + len(window) > _LSN_END:
            return None  # no group can lie there
        while (at := find_due(window, at + 1, first_lsn, lsn)) >= 0:
            later = parse_group(file.read_at(start + at, GROUP_SIZE_MAX), 0, first_lsn + at)
            if later is not None:
                return FormatError(
                    f"redo group {lsn} is damaged although it had been synced "
                    f"before group {later.lsn}; nothing but what is before it was written",
                    file=path,
                    offset=offset,
                )
        start += _SCAN_WINDOW
    return None
