"""
Whether the events of groups fit together, told from their lengths alone: a kernel.

It does what `EventWalk` does, for several groups at a time, and never says what is wrong: whatever
no group has behind its GTID event is odd. Runs as plain Python, too; `event_lengths.pxd` gives it C
types. Source: ibb-format 5.1; dump-protocol 4.1.
"""

from __future__ import annotations

from typing import Final

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython

from ibb.protocol.event import HEADER_SIZE, EventType

WALKS: Final = 9  # groups at a time

_header_size, _gtid = HEADER_SIZE, int(EventType.GTID)


class EventLengths:
    """Walks over groups, each by its number, in pieces cut anywhere."""

    def __init__(self) -> None:
        if not cython.compiled:
            self._left, self._held = [0] * WALKS, [0] * WALKS
            self._heads = bytearray(WALKS * HEADER_SIZE)

    def begin(self, walk: int, left: int) -> None:
        """Begin with what is behind *left* bytes of an event."""
        self._left[walk] = left
        self._held[walk] = 0

    def feed(self, walk: int, data: memoryview, at: int, end: int) -> bool:
        """Take the next bytes of a group; False: they are odd."""
        left = self._left[walk]
        if self._held[walk]:
            left = self._join(walk, data, at, end)
            if left < 0 or self._held[walk]:
                return left >= 0
        at += left
        while end - at >= _header_size:
            length = _u32(data, at + 9)
            if length < _header_size or data[at + 4] == _gtid:
                return False
            at += length
        self._left[walk] = at - end if at > end else 0
        while at < end:
            self._heads[walk * _header_size + self._held[walk]] = data[at]
            self._held[walk] += 1
            at += 1
        return True

    def is_done(self, walk: int) -> bool:
        """Tell whether the last event has ended."""
        return self._left[walk] == 0 and self._held[walk] == 0

    def _join(self, walk: int, data: memoryview, at: int, end: int) -> int:
        """Put a header together that was cut; return how far off the next event is; -1: odd."""
        base, known = walk * _header_size, self._held[walk]
        while self._held[walk] < _header_size:
            if at == end:
                return 0
            self._heads[base + self._held[walk]] = data[at]
            self._held[walk] += 1
            at += 1
        self._held[walk] = 0
        length = self._heads[base + 12]
        for place in range(11, 8, -1):
            length = length << 8 | self._heads[base + place]
        if length < _header_size or self._heads[base + 4] == _gtid:
            return -1
        return length - known


def _u32(data: memoryview, at: int) -> int:
    value = data[at + 3]
    value = value << 8 | data[at + 2]
    value = value << 8 | data[at + 1]
    return value << 8 | data[at]
