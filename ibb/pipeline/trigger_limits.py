"""
How much a micro-batch takes: whole groups, up to a number of them or of their bytes.

A group that is larger than the limit comes alone. Source of the sizes: the files, between one
commit record and the next; of groups with out-of-band pieces, the pieces themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ibb.storage.group_runs import GroupBlock

from .cuts import just_behind
from .file_ranges import FileRange
from .group_choice import GroupChoice, chosen_groups

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ibb.protocol.gtid import GtidPosition
    from ibb.storage.directory import BinlogDirectory
    from ibb.storage.position import Position

    from .cuts import Cut
    from .event_groups import EventGroup


class Reached(NamedTuple):
    """
    Where a micro-batch ends.

    Attributes:
        position: the last GTID of each domain.
        place: just behind the last group; None: there was none.
    """

    position: GtidPosition
    place: Position | None


def limited_end(
    pages: BinlogDirectory,
    start: Cut,
    end: Cut,
    position: GtidPosition,
    *,
    groups_max: int | None,
    bytes_max: int | None,
) -> Reached:
    """
    Return where a batch from *start* ends that keeps within limits.

    Args:
        pages: the files.
        start: groups behind it.
        end: groups before it.
        position: the GTIDs at *start*.
        groups_max: at most so many groups; None: no limit.
        bytes_max: at most so many bytes, but one group at least; None: no limit.

    Raises:
        FormatError: the pages that have to be read are damaged.
    """
    taken = _Taken(position, groups_max, bytes_max)
    part = FileRange(start.place, end.end)
    for found in chosen_groups(pages, part, GroupChoice(start, end)):
        has_room = taken.add_block(found) if isinstance(found, GroupBlock) else taken.add(found)
        if not has_room:
            break
    return taken.reached()


def within_limits(
    groups: Iterable[EventGroup],
    position: GtidPosition,
    *,
    groups_max: int | None,
    bytes_max: int | None,
) -> Reached:
    """
    Return how far groups keep within limits; one at least, however large it is.

    Args:
        groups: in their order.
        position: the GTIDs before the first of them.
        groups_max: at most so many groups; None: no limit.
        bytes_max: at most so many bytes; None: no limit.

    Raises:
        FormatError: the groups that have to be read are damaged.
    """
    taken = _Taken(position, groups_max, bytes_max)
    for group in groups:
        if not taken.add(group):
            break
    return taken.reached()


class _Taken:
    """
    The groups of a batch so far.

    Args:
        position: the GTIDs before the first of them.
        groups_max: at most so many groups; None: no limit.
        bytes_max: at most so many bytes, but one group at least; None: no limit.
    """

    def __init__(
        self, position: GtidPosition, groups_max: int | None, bytes_max: int | None
    ) -> None:
        self._position = position.copy()
        self._place: Position | None = None
        self._groups_max, self._bytes_max = groups_max, bytes_max
        self._groups = self._bytes = 0

    def reached(self) -> Reached:
        """Return where they end."""
        return Reached(self._position, self._place)

    def add(self, group: EventGroup) -> bool:
        """Take a group; False: it is too many."""
        size = 0 if self._bytes_max is None else sum(len(piece) for piece in group.pieces())
        if not self._has_room(size):
            return False
        assert group.gtid is not None
        self._position.set(group.gtid)
        self._place = just_behind(group.position)
        return True

    def add_block(self, block: GroupBlock) -> bool:
        """Take the groups of a block, as many as there is room for; False: not all."""
        copied, stop = block.copied, block.stop
        if self._bytes_max is not None:
            stop = block.first
            while stop < block.stop and self._has_room(copied.ends[stop] - copied.starts[stop]):
                stop += 1
        elif self._groups_max is not None:
            stop = min(stop, block.first + self._groups_max - self._groups)
            self._groups += stop - block.first
        if stop > block.first:
            self._place = just_behind(block.position(stop - 1))
            for gtid in block.part(block.first, stop).newest():
                self._position.set(gtid)
        return stop == block.stop

    def _has_room(self, size: int) -> bool:
        """Count a group if there is room for it; there is for the first."""
        if self._groups_max is not None and self._groups >= self._groups_max:
            return False
        if self._bytes_max is not None and self._groups and self._bytes + size > self._bytes_max:
            return False
        self._groups += 1
        self._bytes += size
        return True
