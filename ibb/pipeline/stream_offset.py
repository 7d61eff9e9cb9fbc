"""
Offsets of a stream: GTID positions, as JSON that a person can read in a checkpoint.

    {"gtid": "0-1-100,1-2-7", "file": 3, "mark": "5f3a9c1e"}

file and mark are a `HistoryMark`: a checkpoint that meets another history under the same path is
noticed, also when that one has groups of the same GTIDs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ibb.protocol.errors import SqlError
from ibb.protocol.gtid import GtidPosition

from .errors import DataLossError
from .history_mark import HistoryMark, is_marked, mark_before

if TYPE_CHECKING:
    from ibb.storage.page_source import PageSource
    from ibb.storage.position import Position


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
    marked = mark_before(pages, place)
    return StreamOffset(str(position), marked.file, marked.mark)


def check_same_history(pages: PageSource, offset: StreamOffset) -> None:
    """
    Check that an offset is of this history, as far as what it marks is still there.

    Raises:
        DataLossError: another one is here.
        FormatError: the pages that have to be read are damaged.
    """
    if not is_marked(pages, HistoryMark(offset.file, offset.mark)):
        raise DataLossError(
            f"the history was begun anew (RESET MASTER), or is another one, since the stream was at"
            f" '{offset.gtid}': its file {offset.file} is not the same. Begin with a new checkpoint"
        )
