"""
The first bytes of a record, put together from its chunks, and what they mean: a kernel.

Only what is usual is read, numbers far below those of 64 bits. Runs as plain Python, too;
`record_head.pxd` gives it C types. Source: ibb-format 2, 5.1, 6.
"""

from __future__ import annotations

from typing import Final

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython

from ibb.protocol.event import HEAD_BYTES_MAX, EventType
from ibb.storage.group_head import GTID_EVENT_SIZE_MIN

HELD_BYTES: Final = 512
NUMBERS_MAX: Final = 10

_held_bytes = HELD_BYTES
_gtid, _gtid_size_min, _gtid_size_max = int(EventType.GTID), GTID_EVENT_SIZE_MIN, HEAD_BYTES_MAX
_shift_max = 45  # bits; what is shifted by more must be zero


class RecordHead:
    """
    Bytes that are held.

    Attributes:
        size: how many.
        numbers: what `read_numbers` has read.
        domain, server, number: of the GTID that `read_gtid` has read.
    """

    def __init__(self) -> None:
        self.size = self.domain = self.server = self.number = 0
        if not cython.compiled:
            self._held, self.numbers = bytearray(HELD_BYTES), [0] * NUMBERS_MAX

    def hold(self, data: memoryview, at: int, end: int, wanted: int) -> int:
        """Add bytes until *wanted* are held, or `HELD_BYTES`; return where the others begin."""
        wanted = min(wanted, _held_bytes)
        if end - at > wanted - self.size:
            end = at + wanted - self.size
        if cython.compiled:
            for place in range(end - at):
                self._held[self.size + place] = data[at + place]
        else:
            self._held[self.size : self.size + end - at] = data[at:end]
        self.size += end - at
        return end

    def read_numbers(self, at: int, first: int, count: int) -> int:
        """
        Read compressed integers; return where they end, 0 if not all are held, -1 if one is odd.

        Args:
            at: where they begin.
            first: of `numbers`, the one to begin with.
            count: how many.
        """
        for which in range(first, first + count):
            if at >= self.size:
                return 0
            value = self._held[at]
            more = value & 7
            if more == 7:
                more = 8
            if at + more >= self.size:
                return 0
            value >>= 3
            for place in range(more):
                byte = self._held[at + 1 + place]
                if 5 + 8 * place <= _shift_max:
                    value |= byte << (5 + 8 * place)
                elif byte != 0:
                    return -1
            at += 1 + more
            self.numbers[which] = value
        return at

    def read_gtid(self, at: int) -> int:
        """Read the start of a GTID event, which is held; return the event's length; 0: odd."""
        length = self._read(at + 9, 4)
        if self._held[at + 4] != _gtid or not _gtid_size_min <= length <= _gtid_size_max:
            return 0
        self.server = self._read(at + 5, 4)
        self.number = self._read(at + 19, 8)
        self.domain = self._read(at + 27, 4)
        return 0 if self.number == 0 else length

    def _read(self, at: int, size: int) -> int:
        value = 0
        for place in range(at + size - 1, at - 1, -1):
            value = value << 8 | self._held[place]
        return value
