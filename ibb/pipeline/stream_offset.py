"""
Offsets of a stream: GTID positions, as JSON that a person can read in a checkpoint.

    {"gtid": "0-1-100,1-2-7", "file": 3, "mark": "5f3a9c1e"}

file and mark are of a file that the history had then: the mark is made from its header and its
first group, so a checkpoint that meets another history under the same path is noticed, also when
that one has groups of the same GTIDs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ibb.protocol.checksum import crc32
from ibb.protocol.errors import SqlError
from ibb.protocol.gtid import GtidPosition
from ibb.storage.group_reader import GroupReader
from ibb.storage.position import Position

from .errors import DataLossError

if TYPE_CHECKING:
    from ibb.storage.page_source import PageSource


class StreamOffset(NamedTuple):
    """
    How far a stream is.

    Attributes:
        gtid: the last GTID had in each domain, as text.
        file: number of the file that is marked; -1: none was there.
        mark: of that file, empty without one.
    """

    gtid: str
    file: int = -1
    mark: str = ""

    @classmethod
    def of(cls, offset: dict[str, Any]) -> StreamOffset:
        """
        Read what `as_dict` made.

        Raises:
            DataLossError: it is something else.
        """
        try:
            found = cls(offset["gtid"], offset["file"], offset["mark"])
            GtidPosition.parse(found.gtid)
        except (KeyError, TypeError, AttributeError, SqlError) as error:
            raise DataLossError(
                f"the checkpoint has an offset of another kind: {offset}"
            ) from error
        return found

    @property
    def position(self) -> GtidPosition:
        """The GTIDs."""
        return GtidPosition.parse(self.gtid)

    def as_dict(self) -> dict[str, Any]:
        """Return the offset as Spark keeps it."""
        return {"gtid": self.gtid, "file": self.file, "mark": self.mark}


def offset_at(pages: PageSource, position: GtidPosition, place: Position) -> StreamOffset:
    """
    Return the offset of who has all of *position*, which ends at *place*.

    Raises:
        FormatError: the pages that have to be read are damaged.
    """
    for file_no in range(min(place.file_no, pages.last_file()), pages.first_file() - 1, -1):
        mark = _mark(pages, file_no, place)
        if mark:
            return StreamOffset(str(position), file_no, mark)
    return StreamOffset(str(position))


def check_same_history(pages: PageSource, offset: StreamOffset) -> None:
    """
    Check that an offset is of this history, as far as what it marks is still there.

    Raises:
        DataLossError: another one is here.
        FormatError: the pages that have to be read are damaged.
    """
    if offset.file < pages.first_file():
        return  # nothing was marked, or it was purged
    if offset.file > pages.last_file() or _mark(pages, offset.file, None) != offset.mark:
        raise DataLossError(
            f"the history was begun anew (RESET MASTER), or is another one, since the stream was at"
            f" '{offset.gtid}': its file {offset.file} is not the same. Begin with a new checkpoint"
        )


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
