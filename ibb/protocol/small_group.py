"""
The rows events of a small transaction, found without an object for any other event: a kernel.

What most histories consist of are transactions of a few rows that end with an XID event, so that
all of their rows stand. Of these the places of rows events and their table maps are all that is
wanted. Any other group, damage too, is left to who reads its events one by one. Runs as plain
Python, too; `small_group.pxd` gives it C types.

Source: dump-protocol 5.2, 4.9b.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from .event import HEADER_SIZE, EventType
from .event_group import ROWS

if TYPE_CHECKING:
    from .fields import Buffer

SMALL_BYTES_MAX: Final = 1 << 16  # of a group that is looked at so
MAPS_MAX: Final = 16  # that are looked through for each rows event

_OTHER, _BEGIN, _MAP, _ROWS, _END = 1, 2, 3, 4, 5  # kinds of events; 0: not for here


class FoundRows(NamedTuple):
    """
    A rows event.

    Attributes:
        position: of the event in its group, the GTID event being 0.
        map_start, map_end: where its table map is in the bytes of the group.
        start, end: where it is itself.
    """

    position: int
    map_start: int
    map_end: int
    start: int
    end: int


def _kinds() -> bytes:
    kinds = bytearray(256)
    for code in (EventType.INTVAR, EventType.RAND, EventType.USER_VAR, EventType.ANNOTATE_ROWS):
        kinds[code] = _OTHER
    for code in ROWS:
        kinds[code] = _ROWS
    kinds[EventType.GTID], kinds[EventType.XID] = _BEGIN, _END
    kinds[EventType.TABLE_MAP] = _MAP
    return bytes(kinds)


_kind_of = memoryview(_kinds())
_header_size = HEADER_SIZE
_begin, _map, _end = _BEGIN, _MAP, _END
_maps_max = MAPS_MAX


def find_rows(data: Buffer) -> list[FoundRows] | None:
    """
    Return the rows events of a whole transaction that ends with an XID event.

    Args:
        data: all bytes of the group, without checksums.

    Returns:
        The events in their order; None: it is no such transaction, or not surely one.
    """
    view, size = data, len(data)
    found: list[FoundRows] = []
    maps: list[tuple[int, int]] = []
    at = position = 0
    while size - at >= _header_size:
        length = _length(view, at)
        if length < _header_size or length > size - at:
            return None
        kind = _kind_of[view[at + 4]]
        if kind == 0 or (kind == _begin) != (position == 0):
            return None
        if kind == _end:
            return found if at + length == size else None
        if kind >= _map:
            if length < _header_size + 8:
                return None
            if kind == _map:
                maps.append((at, at + length))
                if len(maps) > _maps_max:
                    return None
            else:
                place = _find_map(view, maps, at)
                if place < 0:
                    return None
                start, end = maps[place]
                found.append(FoundRows(position, start, end, at, at + length))
        at += length
        position += 1
    return None


def _find_map(view: Buffer, maps: list[tuple[int, int]], at: int) -> int:
    """Return which is the last table map with the number that the event at *at* has; -1: none."""
    for place in range(len(maps) - 1, -1, -1):
        start = maps[place][0]
        same = 0
        while same < 6 and view[start + _header_size + same] == view[at + _header_size + same]:
            same += 1
        if same == 6:
            return place
    return -1


def _length(view: Buffer, at: int) -> int:
    length = view[at + 12]
    length = length << 8 | view[at + 11]
    length = length << 8 | view[at + 10]
    return length << 8 | view[at + 9]
