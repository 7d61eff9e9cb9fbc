"""
Whole groups off the wire, many at a time: a kernel.

Most of what a primary sends are transactions of a few small events. A run takes them out of their
packets and puts their events, checked and freed of checksums and log positions, side by side as a
store keeps them; no object is made for an event. What is unusual in any way it leaves where it is,
damage too: whoever takes events one by one finds the same and says what it is. Runs as plain
Python, too; `group_run.pxd` gives it C types.

    packet := length(3) sequence id(1) 00 event
    event  := timestamp(4) type(1) server(4) length(4) log_pos(4) flags(2) body [CRC-32]

Source: dump-protocol 4.1, 4.2, 5.2; ibb-format 5.1.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython

from .binlog_state import BinlogState
from .checksum import crc32
from .event import HEAD_BYTES_MAX, EventType
from .event_group import ROWS
from .gtid import Gtid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .fields import Buffer
if not cython.compiled:  # else the .pxd names it
    from .little_endian import number_at

RUN_BYTES_MAX: Final = 256 << 10  # of the groups of one run
GROUPS_MAX: Final = RUN_BYTES_MAX // 64  # of one run: none is as small as that
EVENTS_BYTES_MAX: Final = 1 << 20  # of a run of events inside a group

_run_bytes_max, _groups_max, _events_bytes_max = RUN_BYTES_MAX, GROUPS_MAX, EVENTS_BYTES_MAX
_INSIDE: Final = 1  # kinds of events
_END: Final = 2
_QUERY: Final = 3
_BEGIN: Final = 4


def _kinds() -> bytes:
    kinds = bytearray(256)
    for code in (*ROWS, EventType.TABLE_MAP, EventType.ANNOTATE_ROWS, EventType.INTVAR,
                 EventType.RAND, EventType.USER_VAR):  # fmt: skip
        kinds[code] = _INSIDE
    kinds[EventType.XID] = _END
    kinds[EventType.QUERY] = _QUERY
    kinds[EventType.GTID] = _BEGIN
    return bytes(kinds)


class GroupRun:
    """
    Groups of events one behind the other.

    Group i is `data[bounds[i]:bounds[i + 1]]`, and its sequence number `seqs[i]`. `origins` says
    from which group on they are of which domain and server; within one, numbers ascend.

    Attributes:
        count: groups in the run.
        used: bytes in `data`.
        seq: the sequence id that the packet behind them must carry.
        timestamp: of the newest group, seconds since 1970.
    """

    def __init__(self) -> None:
        self.count = 0
        self.used = 0
        self.seq = 0
        self.timestamp = 0
        self.data = memoryview(bytearray(EVENTS_BYTES_MAX))
        self.bounds = array("q", bytes(8 * (GROUPS_MAX + 1)))
        self.seqs = array("Q", bytes(8 * GROUPS_MAX))
        self.origins: list[tuple[int, int, int]] = []
        self._out = self.data
        self._kinds = _kinds()
        self._bounds = memoryview(self.bounds)
        self._seqs = memoryview(self.seqs)

    def stretches(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield first group, group behind the last, domain and server of each of `origins`."""
        stops = [start for start, _, _ in self.origins[1:]]
        if not self.origins:
            return
        for (start, domain, server), stop in zip(self.origins, (*stops, self.count), strict=True):
            yield start, stop, domain, server

    def gtid(self, index: int) -> Gtid:
        """Return the GTID of a group."""
        at = bisect_right([start for start, _, _ in self.origins], index) - 1
        _, domain, server = self.origins[at]
        return Gtid(domain, server, self.seqs[index])

    def newest(self, first: int, end: int) -> BinlogState:
        """Return the newest GTIDs of the groups from *first* up to *end*, of each pair."""
        state = BinlogState()
        for start, stop, domain, server in self.stretches():
            if start < end and stop > first:
                state.update(Gtid(domain, server, self.seqs[min(stop, end) - 1]))
        return state

    def take(
        self, packets: Buffer, offset: int, seq: int, checksum: int, group_bytes_max: int
    ) -> int:
        """
        Take whole groups from *offset* on, in place of those before.

        Args:
            packets: as they were received.
            offset: where a packet begins that is outside of groups.
            seq: the sequence id that it must carry.
            checksum: bytes of it behind each event, 4 or 0.
            group_bytes_max: of the events of a group; a larger one is left.

        Returns:
            The offset behind the last packet that was taken: what follows is unusual, or not whole.
        """
        self.count = self.used = 0
        self.origins = []
        self.seq = seq
        domain = server = newest = 0
        at = offset
        self._limit, self._room = group_bytes_max, _run_bytes_max
        while self.count < _groups_max:
            end = self._take_group(packets, at, checksum)
            if end == at:
                break
            at = end
            number = self._number
            is_same = domain == self._domain and server == self._server
            if not self.count or number <= newest or not is_same:
                domain, server = self._domain, self._server
                self.origins.append((self.count, domain, server))
            newest = number
            self._seqs[self.count] = number
            self.count += 1
            self._bounds[self.count] = self.used
        return at

    def take_events(self, packets: Buffer, offset: int, seq: int, checksum: int) -> int:
        """
        Take events that neither end nor begin a transaction, in place of what was there.

        Args:
            packets: as they were received.
            offset: where a packet begins that is inside a transaction.
            seq: the sequence id that it must carry.
            checksum: bytes of it behind each event, 4 or 0.

        Returns:
            The offset behind the last packet that was taken.
        """
        self.count = self.used = 0
        self.origins = []
        self.seq = seq
        self._limit = self._room = _events_bytes_max
        at = offset
        while True:
            end = self._take_event(packets, at, checksum, 0)
            if end == at or self._kind not in (1, 3):
                break
            at = end
            self.used += self._size
            self.seq = self.seq + 1 & 255
        return at

    def _take_group(self, packets: Buffer, offset: int, checksum: int) -> int:
        """Take one group; return the offset behind it, or *offset* if it is left."""
        start, seq, at = self.used, self.seq, offset
        while True:
            end = self._take_event(packets, at, checksum, start)
            if end == at or (self._kind == 4) != (at == offset):
                break
            at = end
            self.used += self._size
            self.seq = self.seq + 1 & 255
            if self._kind == 2:
                return at
        self.used, self.seq = start, seq
        return offset

    def _take_event(self, packets: Buffer, offset: int, checksum: int, start: int) -> int:
        """
        Copy one event behind `used`, note `_kind` and `_size`; return the offset behind its packet.

        It returns *offset* itself if the packet is not whole or not an ordinary one, or if there is
        no room for it, the group having begun at *start*.
        """
        data = packets
        if len(data) - offset < 24:
            return offset
        length = data[offset] | data[offset + 1] << 8 | data[offset + 2] << 16
        at = offset + 5
        size = length - 1 - checksum
        if data[offset + 3] != self.seq or data[offset + 4] or size < 19:
            return offset
        if length > 65536 or len(data) - offset - 4 < length:
            return offset
        said = data[at + 9] | data[at + 10] << 8 | data[at + 11] << 16
        if data[at + 12] or said != size + checksum:
            return offset
        kind = self._kinds[data[at + 4]]
        if not kind or self.used + size > self._room or self.used + size - start > self._limit:
            return offset
        if kind == 4 and not self._read_gtid(data, at, size):
            return offset
        if kind == 2 and size < 27:
            return offset
        if kind == 3 and not self._goes_on(data, at, size):
            return offset
        if checksum and not self._is_sound(data, at, size):
            return offset
        out, used = self._out, self.used
        out[used : used + size] = data[at : at + size]
        out[used + 9] = size & 255
        out[used + 10] = size >> 8 & 255
        out[used + 11] = size >> 16
        out[used + 13] = out[used + 14] = out[used + 15] = out[used + 16] = 0
        self._kind, self._size = kind, size
        return offset + 4 + length

    def _is_sound(self, data: Buffer, at: int, size: int) -> bool:
        """Tell whether an event has the checksum that stands behind it."""
        end = at + size
        said = data[end + 3]
        said = said << 8 | data[end + 2]
        said = said << 8 | data[end + 1]
        said = said << 8 | data[end]
        if cython.compiled:
            return crc32_at(cython.address(data[at]), size) == said  # noqa: F821
        return crc32(memoryview(data)[at:end]) == said

    def _read_gtid(self, data: Buffer, at: int, size: int) -> bool:
        """Note a GTID; tell whether its event is that of an ordinary transaction."""
        if size < 38 or size > HEAD_BYTES_MAX:
            return False
        flags2 = data[at + 31]
        if flags2 & 193:  # STANDALONE, PREPARED_XA, COMPLETED_XA
            return False
        rest = at + 32 + (8 if flags2 & 2 else 0)
        end = at + size
        extra = data[rest] if rest < end else 0
        if extra & 238 or rest > end:  # all but MULTI_ENGINE and THREAD_ID
            return False
        if extra and rest + 1 + (1 if extra & 1 else 0) + (4 if extra & 16 else 0) > end:
            return False
        self._number = number_at(data, at + 19, 8)
        self._domain = number_at(data, at + 27, 4)
        self._server = number_at(data, at + 5, 4)
        self.timestamp = number_at(data, at, 4)
        return self._number != 0

    def _goes_on(self, data: Buffer, at: int, size: int) -> bool:
        """Tell whether a QUERY event is whole and surely does not end its transaction."""
        if size < 32:
            return False
        text = 19 + 13 + data[at + 27] + (data[at + 30] | data[at + 31] << 8) + 1
        if text > size or (size - text != 6 and size - text != 8):
            return text <= size
        letter = data[at + text] | 32
        return letter not in (99, 114)  # c and r: COMMIT, ROLLBACK
