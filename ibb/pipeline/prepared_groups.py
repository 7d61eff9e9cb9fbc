"""
Where XA transactions were prepared: their rows are there, and count when they are committed.

A transaction may be committed long after it was prepared, files later. Each file is looked through
once, however many transactions of it are asked for.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from ibb.protocol.gtid_event import GtidEvent, GtidFlag
from ibb.storage.group_reader import GroupReader
from ibb.storage.position import Position

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ibb.protocol.gtid_event import XaId
    from ibb.storage.group_reader import StoredGroup
    from ibb.storage.page_source import PageSource

PLACES_MAX: Final = 200_000  # remembered, of all files


class PreparedGroups:
    """
    The groups that prepared XA transactions.

    Args:
        pages: where they are.
        end: nothing from there on is asked for.
    """

    def __init__(self, pages: PageSource, end: Position) -> None:
        self._pages = pages
        self._end = end
        self._files: dict[int, dict[XaId, list[Position]]] = {}
        self._remembered = 0  # places

    def last(self, xa_id: XaId, before: Position) -> StoredGroup | None:
        """
        Return the last group before a place that prepared a transaction; None: it is gone.

        Raises:
            FormatError: what has to be read is damaged.
        """
        for file_no in range(before.file_no, self._pages.first_file() - 1, -1):
            places = self._places(file_no, xa_id)
            at = bisect_left(places, before)
            if at:
                return GroupReader(self._pages, places[at - 1]).next()
        return None

    def _places(self, file_no: int, xa_id: XaId) -> Sequence[Position]:
        """Return where a transaction of this name was prepared in a file, in order."""
        known = self._files.get(file_no)
        if known is not None:
            return known.get(xa_id, ())
        found: dict[XaId, list[Position]] = {}
        wanted: list[Position] = []
        count = 0
        for name, place in self._prepared_in(file_no):
            count += 1
            if count <= PLACES_MAX:
                found.setdefault(name, []).append(place)
            if name == xa_id:
                wanted.append(place)
        if count <= PLACES_MAX:  # else it is looked through again
            if self._remembered + count > PLACES_MAX:
                self._files.clear()
                self._remembered = 0
            self._files[file_no] = found
            self._remembered += count
        return wanted

    def _prepared_in(self, file_no: int) -> Iterator[tuple[XaId, Position]]:
        reader = GroupReader(self._pages, Position(file_no, 0))
        while (group := reader.next()) is not None:
            if group.position.file_no != file_no or group.position >= self._end:
                return
            if group.gtid is None:
                continue
            event = GtidEvent.parse(group.head)
            if event.flags2 & GtidFlag.PREPARED_XA and event.xa_id is not None:
                yield event.xa_id, group.position
