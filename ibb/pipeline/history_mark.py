"""
Marks of a history, by which another one under the same path is told, whatever its GTIDs are.

A mark is of a file that the history had then, and made from its header, which holds the position
of the redo log when the file was begun, and its first group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.checksum import crc32
from ibb.storage.group_reader import GroupReader
from ibb.storage.position import Position

if TYPE_CHECKING:
    from ibb.storage.page_source import PageSource


class HistoryMark(NamedTuple):
    """
    One mark.

    Attributes:
        file: number of the file that is marked; -1: none was there.
        mark: of that file, empty without one.
        offset: of the last group before the place, in that file; 0: it is not known.
    """

    file: int = -1
    mark: str = ""
    offset: int = 0


NO_MARK: Final = HistoryMark()


def mark_before(pages: PageSource, place: Position) -> HistoryMark:
    """
    Return the mark of a history up to *place*: of the newest file that has a group before it.

    Raises:
        FormatError: the pages that have to be read are damaged.
    """
    for file_no in range(min(place.file_no, pages.last_file()), pages.first_file() - 1, -1):
        mark = _mark(pages, file_no, place)
        if mark:
            return HistoryMark(file_no, mark)
    return NO_MARK


def is_marked(pages: PageSource, mark: HistoryMark) -> bool:
    """
    Tell whether a history is the one of *mark*; yes if nothing was marked, or it was purged.

    Raises:
        FormatError: the pages that have to be read are damaged.
    """
    if mark.file < pages.first_file():
        return True
    return mark.file <= pages.last_file() and _mark(pages, mark.file, None) == mark.mark


def _mark(pages: PageSource, file_no: int, before: Position | None) -> str:
    """Return the mark of a file; empty: it has no group whose record begins in it, *before*."""
    header = pages.header(file_no)
    reader = GroupReader(pages, Position(file_no, 0))
    while header is not None and (group := reader.next()) is not None:
        if group.position.file_no != file_no or (before is not None and group.position >= before):
            break
        if group.gtid is not None:
            return f"{crc32(group.head, header.lsn & 0xFFFFFFFF):08x}"
    return ""
