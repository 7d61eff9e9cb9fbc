"""
Where a history is cut into partitions: at the pages on which GTID states are due.

A group belongs to the range in which its commit record begins, wherever its pieces are. A reader
that starts at the beginning of a page skips what is left of the record before; one that stops at
a border has read the last record of its range to the end.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.storage.group_reader import GroupReader
from ibb.storage.position import Position

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ibb.storage.page_source import PageSource

RANGES_MAX: Final = 100_000


class FileRange(NamedTuple):
    """
    A part of the files.

    Attributes:
        start: where reading begins.
        end: groups from there on belong to the next range.
    """

    start: Position
    end: Position


def cut_into_ranges(
    pages: PageSource, whole: FileRange, *, bytes_max: int, count_min: int
) -> list[FileRange]:
    """
    Cut a part of the files into ranges of about one size that follow each other.

    There are a multiple of *count_min*, so that as many who read them in turns all end together.

    Args:
        pages: the files.
        whole: what to cut.
        bytes_max: a range has at most so many, and what is left to the next border.
        count_min: cut into so many ranges, if there are borders for it.

    Raises:
        FormatError: a header is damaged.
    """
    start, end = whole
    if end <= start:
        return []
    size = max(distance(pages, start, end), 1)
    count = min(-(-size // (bytes_max * count_min)) * count_min, RANGES_MAX)
    borders, since, passed = [start], start, 0
    for border in _borders(pages, start, end):
        if border.file_no != since.file_no:
            passed += max(_size(pages, since.file_no) - since.offset, 0)
            since = Position(border.file_no, 0)
        passed += border.offset - since.offset
        since = border
        if passed * count >= len(borders) * size:
            borders.append(border)
    borders.append(end)
    return [FileRange(first, last) for first, last in itertools.pairwise(borders)]


def within_times(
    pages: PageSource, whole: FileRange, since: float | None, before: float | None
) -> FileRange:
    """
    Leave out files that hold no group between two times, as far as their first groups tell.

    Groups are about in the order of their times: one more file is read on each side.

    Args:
        pages: the files.
        whole: what to read otherwise.
        since: seconds since 1970.
        before: seconds since 1970.

    Raises:
        FormatError: the pages that have to be read are damaged.
    """
    start, end = whole
    if since is not None:
        for file_no in range(end.file_no, start.file_no, -1):
            first = _first_time(pages, file_no)
            if first is not None and first < since:
                start = max(start, Position(file_no - 1, 0))
                break
    if before is not None:
        for file_no in range(start.file_no + 1, end.file_no):
            first = _first_time(pages, file_no)
            if first is not None and first >= before:
                end = min(end, Position(file_no + 1, 0))
                break
    return FileRange(start, end)


def _first_time(pages: PageSource, file_no: int) -> int | None:
    """Return the time of the first group in a file, seconds since 1970; None without any."""
    reader = GroupReader(pages, Position(file_no, 0))
    while (group := reader.next()) is not None and group.position.file_no == file_no:
        if group.gtid is not None:
            return group.timestamp
    return None


def _borders(pages: PageSource, start: Position, end: Position) -> Iterator[Position]:
    for file_no in range(start.file_no, end.file_no + 1):
        header = pages.header(file_no)
        if header is None:
            continue
        step = header.state_interval or 1
        for page_no in (1, *range(max(step, 2), header.page_count, step)):
            border = Position(file_no, page_no * header.page_size)
            if start < border < end:
                yield border


def distance(pages: PageSource, start: Position, end: Position) -> int:
    """Return how many bytes of files lie between two places."""
    whole = sum(_size(pages, file_no) for file_no in range(start.file_no, end.file_no))
    return max(whole + end.offset - start.offset, 0)


def _size(pages: PageSource, file_no: int) -> int:
    """Return a file's size in bytes, as it was allocated."""
    header = pages.header(file_no)
    return 0 if header is None else header.page_count * header.page_size
