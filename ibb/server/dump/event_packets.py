"""
From events as stored to packets in a buffer, without an object for an event: a kernel.

Takes the contents of one record after another from a `RecordWalker`; an event may be cut anywhere.
Bytes are copied once, from the page to their place in a packet; length, position and checksum are
put right there. What it does not make is `ODD`, and can be taken back from the group's beginning
on, as far as it has not been handed out. Runs as plain Python, too; `event_packets.pxd` gives it C
types. Every length is checked against what holds it. Source: ibb-format 5.1; dump-protocol 4.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython

from ibb.protocol.checksum import crc32

if TYPE_CHECKING:
    from ibb.storage.record_walker import RecordWalker

OK: Final = 0
NEED: Final = 1  # the page that the walker wants, or more of it
ODD: Final = 2  # what comes is not for here; `skip` bytes of it were handed out
FULL: Final = 3  # there is as much as was wanted
HEAD: Final = 4  # the first event of a group was made: whose it is, is known

EVENT_BYTES_MAX: Final = 128 << 10  # larger ones are odd
FRAME_BYTES: Final = 5 + 4  # around an event: length, sequence id, status; checksum
SEND: Final = 0  # fates of events, by their type
DROP: Final = 1
LEAVE: Final = 2  # is odd

_ok, _odd, _full, _head = OK, ODD, FULL, HEAD
_event_bytes_max = EVENT_BYTES_MAX
_send, _drop = SEND, DROP
_header_size, _gtid, _gtid_size_min, _gtid_size_max = 19, 162, 32, 4096


class EventPackets:
    """
    Makes packets of one kind.

    Args:
        checksum: events carry a CRC-32.
        fates: a byte for each type of event: SEND, DROP or LEAVE.
        marked: flags of events that are dropped whatever their type.

    Attributes:
        used: bytes of packets that lie ready.
        event_bytes: of the events in them.
        seq: sequence id of the next packet.
        wanted: bytes, at which no other event is begun.
        is_first: the next event is the first one of its group.
        in_event: bytes of the present event that were taken.
        domain, server, number: of the group, once its first event was made.
        skip: with ODD, bytes of the odd group's events that were handed out before.
    """

    def __init__(self, *, checksum: bool, fates: bytes, marked: int) -> None:
        if len(fates) != 256:
            raise ValueError(f"fates of {len(fates)} types")
        self._fates = memoryview(fates)
        self._marked = marked
        self._checksum_size = 4 if checksum else 0
        self._out = memoryview(bytearray(1))
        self._event_size = self._fate = 0
        self.wanted = self.used = self.event_bytes = self.seq = self.in_event = self.skip = 0
        self.domain = self.server = self.number = self.is_first = 0
        self._group_used = self._group_bytes = self._group_seq = self._group_sent = 0

    def clear(self) -> None:
        """Forget everything that was made."""
        self.used = self.event_bytes = self.skip = self._group_sent = 0
        self.end_group()

    def lend(self, out: bytearray, wanted: int, seq: int) -> None:
        """
        Make packets in *out* until there are *wanted* bytes.

        Args:
            out: the same until `take`.
            wanted: bytes; *out* has room for another event behind them.
            seq: sequence id of the first packet in *out*.
        """
        if wanted < 0 or len(out) < wanted + EVENT_BYTES_MAX + FRAME_BYTES:
            raise ValueError(f"{len(out)} bytes for {wanted} and an event")
        if not self.used:
            self.seq = self._group_seq = seq
        self._out = memoryview(out)
        self.wanted = wanted

    def give_back(self) -> None:
        """Touch no more what was lent."""
        self._out = memoryview(bytearray(1))

    def take(self) -> None:
        """Hand out what lies ready."""
        self._group_sent += self.event_bytes - self._group_bytes
        self.used = self.event_bytes = 0
        self._group_used = self._group_bytes = 0
        self._group_seq = self.seq

    def begin_group(self) -> None:
        """Expect the first event of a group."""
        self.is_first = 1

    def end_group(self) -> None:
        """Take back nothing of what was made up to here."""
        self.is_first = self.in_event = 0
        self._group_used, self._group_bytes = self.used, self.event_bytes
        self._group_seq = self.seq
        self._group_sent = 0

    def take_back(self) -> None:
        """Forget what was made of the present group, if any, and not handed out."""
        self.skip = 0
        if self._group_sent == 0:
            self.used, self.event_bytes = self._group_used, self._group_bytes
            self.seq = self._group_seq
        else:
            self.skip = self._group_sent + self.event_bytes - self._group_bytes
        self.in_event = 0

    def feed(self, walker: RecordWalker) -> int:
        """Take the rest of the walker's record as events; after HEAD it is called again."""
        while True:
            while walker.left > 0:
                code = self._take_event(walker)
                if code != _ok:
                    return code
            if walker.ends:
                return _ok
            code = walker.next_part()
            if code != _ok:
                return code

    def _take_event(self, walker: RecordWalker) -> int:
        """Copy as much of the present event as its chunk has."""
        at = self.used + 5
        if self.in_event < _header_size:
            if self.in_event == 0 and self.used >= self.wanted:
                return _full
            self._copy(walker, at + self.in_event, min(_header_size - self.in_event, walker.left))
            if self.in_event < _header_size:
                return _ok
            code = self._begin_event(at)
            if code != _ok:
                return code
        size = min(self._event_size - self.in_event, walker.left)
        if size > 0:
            self._copy(walker, at + self.in_event, size)
        if self.in_event == self._event_size:
            return self._end_event(at)
        return _ok

    def _copy(self, walker: RecordWalker, to: int, size: int) -> None:
        part = walker.part
        if cython.compiled:
            memcpy(  # noqa: F821
                cython.address(self._out[to]), cython.address(walker.data[part]), size
            )
        else:
            self._out[to : to + size] = walker.data[part : part + size]
        walker.part = part + size
        walker.left -= size
        self.in_event += size

    def _begin_event(self, at: int) -> int:
        """Look at an event's header."""
        kind = self._out[at + 4]
        flags = self._read(at + 17, 2)
        size = self._read(at + 9, 4)
        if size < _header_size or size > _event_bytes_max:
            return _odd
        if self.is_first and (kind != _gtid or size < _gtid_size_min or size > _gtid_size_max):
            return _odd
        self._event_size = size
        self._fate = _drop if flags & self._marked else self._fates[kind]
        return _ok if self._fate == _send or self._fate == _drop else _odd  # noqa: PLR1714

    def _end_event(self, at: int) -> int:
        """Put the event's packet right."""
        code, size = _ok, self._event_size
        if self.is_first:
            self.is_first = 0
            self.server = self._read(at + 5, 4)
            self.domain = self._read(at + 27, 4)
            self.number = self._read(at + 19, 8)
            code = _head
        self.in_event = 0
        if self._fate == _drop:
            return code
        wire = size + self._checksum_size
        self._write(at + 9, wire, 4)
        self._write(at + 13, 0, 4)
        self._out[at + 18] &= 0xBF  # ACCEPT_OWN means something inside a replica only
        if self._checksum_size:
            if cython.compiled:
                checksum = crc32_at(cython.address(self._out[at]), size)  # noqa: F821
            else:
                checksum = crc32(self._out[at : at + size])
            self._write(at + size, checksum, 4)
        self._write(at - 5, wire + 1, 3)
        self._write(at - 2, self.seq, 2)  # the status byte is 0
        self.seq = (self.seq + 1) & 255
        self.used += 5 + wire
        self.event_bytes += wire
        return code

    def _read(self, at: int, size: int) -> int:
        value, place = 0, at + size
        while place > at:
            place -= 1
            value = value << 8 | self._out[place]
        return value

    def _write(self, at: int, value: int, size: int) -> None:
        for place in range(at, at + size):
            self._out[place] = value & 255
            value >>= 8
