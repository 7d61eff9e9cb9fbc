"""
Events that a transaction goes on with, many at a time: a kernel.

What a large transaction consists of, rows and what belongs to them, neither begins nor ends
anything. Whoever keeps such events needs none of them by itself: how many bytes of them lie whole
one behind the other is enough. All else, damage too, is left to who takes events one by one. Runs
as plain Python, too; `plain_events.pxd` gives it C types.

Source: dump-protocol 5.2; ibb-format 5.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .event import HEADER_SIZE, EventType
from .event_group import ROWS

if TYPE_CHECKING:
    from .fields import Buffer

PLAIN: Final = (
    *(*ROWS, EventType.TABLE_MAP, EventType.ANNOTATE_ROWS),
    *(EventType.INTVAR, EventType.RAND, EventType.USER_VAR),
)  # types of events that are in every transaction what they are in any

_plain = memoryview(bytes(code in PLAIN for code in range(256)))
_header_size = HEADER_SIZE


def count_plain(events: Buffer) -> int:
    """
    Return how many bytes of plain events lie whole at the beginning.

    Args:
        events: without checksums, beginning where an event does.
    """
    return _count(events, 1)


def count_others(events: Buffer) -> int:
    """
    Return how many bytes of events that are not plain lie whole at the beginning.

    Args:
        events: as for `count_plain`.
    """
    return _count(events, 0)


def clear_positions(events: bytearray, start: int) -> None:
    """
    Set the log positions of events to 0.

    Args:
        events: from *start* on whole ones, as `count_plain` has found them.
        start: where the first begins.
    """
    data, at, size = events, start, len(events)
    while size - at >= _header_size:
        data[at + 13] = data[at + 14] = data[at + 15] = data[at + 16] = 0
        at += max(_length(data, at), _header_size)


def _count(data: Buffer, is_plain: int) -> int:
    at, size = 0, len(data)
    while size - at >= _header_size:
        length = _length(data, at)
        if length < _header_size or length > size - at or _plain[data[at + 4]] != is_plain:
            break
        at += length
    return at


def _length(data: Buffer, at: int) -> int:
    length = data[at + 12]
    length = length << 8 | data[at + 11]
    length = length << 8 | data[at + 10]
    return length << 8 | data[at + 9]
