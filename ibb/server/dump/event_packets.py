"""
From events as stored to packets in a buffer, without an object for an event: a kernel.

Takes the contents of one record after another from a `RecordWalker`; an event may be cut anywhere.
Bytes are copied once, from the page to their place in a packet; length, position and checksum are
put right there. What it does not make is `ODD`, and can be taken back from the group's beginning
on, as far as it has not been handed out. Runs as plain Python, too; `event_packets.pxd` gives it C
types. Every length is checked against what holds it. Source: ibb-format 5.1; dump-protocol 4.2.
"""

from __future__ import annotations

import errno
import os
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

    def lend(self, out: memoryview, wanted: int, seq: int) -> None:
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

    def offer(self, descriptor: int) -> int:
        """Return how much a socket that does not block takes of what lies ready, or an error."""
        return self.offer_from(descriptor, self._out, 0, self.used)

    def offer_rest(self, descriptor: int, at: int) -> int:
        """Do as `offer`, for what lies ready from *at* on."""
        return self.offer_from(descriptor, self._out, at, self.used - at)

    def offer_from(self, descriptor: int, memory: memoryview, at: int, size: int) -> int:
        """Do as `offer`, for *size* bytes that lie somewhere else as well."""
        if cython.compiled:
            size = write(descriptor, cython.address(memory[at]), size)  # noqa: F821
            if size >= 0:
                return size
            return 0 if last_error == EAGAIN else -last_error  # noqa: F821
        return _write(descriptor, memory[at : at + size])

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
                code = self._take_whole(walker) if self.in_event == 0 else _ok
                if code == _ok and walker.left > 0:
                    code = self._take_part(walker)
                if code != _ok:
                    return code
            if walker.ends:
                return _ok
            code = walker.next_part()
            if code != _ok:
                return code

    def _take_whole(self, walker: RecordWalker) -> int:
        """Take the events that lie whole in the present chunk, up to one that is odd."""
        if cython.compiled:
            data, out = cython.address(walker.data[0]), cython.address(self._out[0])
        else:
            data, out = walker.data, self._out
        part, left, code = walker.part, walker.left, _ok
        while left >= _header_size and self.used < self.wanted and code == _ok:
            size = _u32(data, part + 9)
            if size > left or not self._is_usual(data, part, size):
                break
            if self.is_first:
                self._note_head(data, part)
                code = _head
            if self._fate == _send:
                at = self.used + 5
                if cython.compiled:
                    memcpy(cython.address(out[at]), cython.address(data[part]), size)  # noqa: F821
                else:
                    out[at : at + size] = data[part : part + size]
                self._frame(out, at, size, data, part)
            part += size
            left -= size
        walker.part, walker.left = part, left
        return code

    def _take_part(self, walker: RecordWalker) -> int:
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
        return self._end_event(at) if self.in_event == self._event_size else _ok

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
        out = cython.address(self._out[0]) if cython.compiled else self._out
        self._event_size = _u32(out, at + 9)
        return _ok if self._is_usual(out, at, self._event_size) else _odd

    def _end_event(self, at: int) -> int:
        """Put the packet of an event right that came in parts."""
        out, code = cython.address(self._out[0]) if cython.compiled else self._out, _ok
        self.in_event = 0
        if self.is_first:
            self._note_head(out, at)
            code = _head
        if self._fate == _send:
            self._frame(out, at, self._event_size, out, at)
        return code

    def _is_usual(self, data: memoryview, at: int, size: int) -> bool:
        """Tell whether an event of *size* bytes is for here; note what becomes of it."""
        kind, flags = data[at + 4], data[at + 18] << 8 | data[at + 17]
        self._fate = _drop if flags & self._marked else self._fates[kind]
        if self.is_first and (kind != _gtid or size < _gtid_size_min or size > _gtid_size_max):
            return False
        return _header_size <= size <= _event_bytes_max and self._fate <= _drop

    def _note_head(self, data: memoryview, at: int) -> None:
        """Note whose group it is that begins with an event."""
        self.is_first = 0
        self.server, self.domain = _u32(data, at + 5), _u32(data, at + 27)
        self.number = _u32(data, at + 23)
        self.number = self.number << 32 | _u32(data, at + 19)

    def _frame(self, out: memoryview, at: int, size: int, data: memoryview, source: int) -> None:
        """Make a packet of an event that was copied from *source* in *data*, or lies there."""
        wire = size + self._checksum_size
        checksum, flags = 0, data[source + 18] & 0xBF  # ACCEPT_OWN is for inside a replica only
        if cython.compiled and self._checksum_size:
            first, second = _u32(data, source + 4), wire
            first = first << 32 | _u32(data, source)
            second = second << 8 | data[source + 8]
            checksum = crc32_behind(  # noqa: F821
                first,
                second,
                flags << 16 | data[source + 17] << 8,
                cython.address(data[source + 19]),
                size - 19,
            )
        _put_u32(out, at + 9, wire)
        _put_u32(out, at + 13, 0)
        out[at + 18] = flags
        if self._checksum_size:
            if not cython.compiled:
                checksum = crc32(out[at : at + size])
            _put_u32(out, at + size, checksum)
        _put_u32(out, at - 5, wire + 1 | self.seq << 24)
        out[at - 1] = 0  # the status byte
        self.seq = (self.seq + 1) & 255
        self.used += 5 + wire
        self.event_bytes += wire


def _write(descriptor: int, data: memoryview) -> int:
    try:
        return os.write(descriptor, data)
    except BlockingIOError:
        return 0
    except OSError as error:
        return -(error.errno or errno.EIO)


def _u32(data: memoryview, at: int) -> int:
    top = data[at + 3]
    return top << 24 | data[at + 2] << 16 | data[at + 1] << 8 | data[at]


def _put_u32(out: memoryview, at: int, value: int) -> None:
    out[at], out[at + 1] = value & 255, value >> 8 & 255
    out[at + 2], out[at + 3] = value >> 16 & 255, value >> 24
