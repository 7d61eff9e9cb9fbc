"""The redo log as a person wants to see it: segments, groups, changes."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from ibb.protocol.errors import FormatError
from ibb.storage.disk import Disk
from ibb.storage.file_name import binlog_name
from ibb.storage.redo_segment import (
    SEGMENT_NAMES,
    find_newest_segment,
    read_groups,
    read_segment_header,
)
from ibb.storage.synced_note import certain_lsn

CHANGES_SHOWN_MAX = 100  # of a group


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentLine:
    """
    A segment file.

    Attributes:
        name: of the file.
        size: bytes.
        status: `newest`, `older`, `unused or torn`, or what is wrong with it.
        sequence: number of this use; None without a valid header.
        first_lsn: of the first group; None without a valid header.
    """

    name: str
    size: int
    status: str
    sequence: int | None = None
    first_lsn: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLine:
    """New bytes for a place in a page."""

    file: str
    page: int
    offset: int
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RedoGroupLine:
    """
    A group of the newest segment, or what ends them.

    Attributes:
        lsn: where it begins.
        end_lsn: where it ends.
        synced_lsn: up to where the log was synced when it was written.
        changes: the first of its changes.
        status: `ok`, or what is wrong.
    """

    lsn: int | None
    end_lsn: int | None
    synced_lsn: int | None
    changes: list[ChangeLine]
    status: str = "ok"


def inspect_segments(disk: Disk, directory: str) -> list[SegmentLine]:
    """
    Return a line for each segment file that exists.

    Raises:
        DiskError: they cannot be read.
    """
    lines = []
    newest = 0
    for slot, name in enumerate(SEGMENT_NAMES):
        path = f"{directory}/{name}"
        if not disk.exists(path):
            continue
        size = disk.size(path)
        try:
            segment = read_segment_header(disk, path, slot)
        except FormatError as error:
            lines.append(SegmentLine(name=name, size=size, status=error.what))
            continue
        if segment is None:
            lines.append(SegmentLine(name=name, size=size, status="unused or torn"))
            continue
        newest = max(newest, segment.sequence)
        lines.append(
            SegmentLine(
                name=name,
                size=size,
                status="older",
                sequence=segment.sequence,
                first_lsn=segment.first_lsn,
            )
        )
    return [
        SegmentLine(
            name=line.name,
            size=line.size,
            status="newest" if line.sequence == newest else line.status,
            sequence=line.sequence,
            first_lsn=line.first_lsn,
        )
        for line in lines
    ]


def inspect_groups(disk: Disk, directory: str) -> Iterator[RedoGroupLine]:
    """
    Yield the groups of the newest segment, those that recovery would apply.

    While a store has the directory open they end with the last one that it has synced.

    Raises:
        DiskError: the log cannot be read.
    """
    lsn = None
    try:
        segment = find_newest_segment(disk, directory)
        if segment is None:
            return
        lsn = segment.first_lsn
        certain = certain_lsn(disk, directory)
        for group in read_groups(disk, directory, segment, until=certain, grows=True):
            changes = [
                ChangeLine(
                    file=binlog_name(change.file_no),
                    page=change.page_no,
                    offset=change.offset,
                    length=len(change.data),
                )
                for change in islice(group.changes(), CHANGES_SHOWN_MAX)
            ]
            yield RedoGroupLine(
                lsn=group.lsn,
                end_lsn=group.end_lsn,
                synced_lsn=group.synced_lsn,
                changes=changes,
            )
            lsn = group.end_lsn
    except FormatError as error:
        yield RedoGroupLine(lsn=lsn, end_lsn=None, synced_lsn=None, changes=[], status=str(error))
