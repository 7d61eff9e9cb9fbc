"""
How much a micro-batch takes: whole groups, up to a number of them or of their bytes.

A group that is larger than the limit comes alone. Source of the sizes: the files, between one
commit record and the next; of groups with out-of-band pieces, the pieces themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ibb.storage.position import Position

from .cuts import groups_behind, just_behind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ibb.protocol.gtid import GtidPosition
    from ibb.storage.page_source import PageSource

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
    pages: PageSource,
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
    return within_limits(
        _groups_between(pages, start, end), position, groups_max=groups_max, bytes_max=bytes_max
    )


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
    reached, place = position.copy(), None
    size = 0
    for number, group in enumerate(groups, 1):
        assert group.gtid is not None
        if bytes_max is not None:
            size += _size(group)
        too_many = groups_max is not None and number > groups_max
        if too_many or (bytes_max is not None and size > bytes_max and number > 1):
            break
        reached.set(group.gtid)
        place = just_behind(group.position)
    return Reached(reached, place)


def _groups_between(pages: PageSource, start: Cut, end: Cut) -> Iterator[EventGroup]:
    for group in groups_behind(pages, start):
        if group.position >= end.end:
            return
        assert group.gtid is not None
        if end.is_before(group.gtid.domain, group.position):
            yield group


def _size(group: EventGroup) -> int:
    """Return the bytes of a group; it is read, a piece at a time."""
    return sum(len(piece) for piece in group.pieces())
