"""
From the bytes of a server's dump to event groups, one at a time.

Each event's checksum is verified and taken off. Of a group up to `HELD_BYTES_MAX` are in memory,
what is beyond goes through a temporary file. Source: dump-protocol 4.1, 4.2, 5.2.
"""

from __future__ import annotations

import struct
import tempfile
from collections import deque
from typing import IO, TYPE_CHECKING, Final

from ibb.protocol.checksum import CHECKSUM_SIZE, crc32
from ibb.protocol.errors import FormatError, ProtocolError
from ibb.protocol.event import HEADER_SIZE, LENGTH_OFFSET, EventType, type_name
from ibb.protocol.event_group import GroupStep, GroupTracker
from ibb.protocol.event_splitter import EventSplitter
from ibb.protocol.fields import U32
from ibb.protocol.format_description import CHECKSUM_CRC32, FormatDescription
from ibb.protocol.packet import PacketStream
from ibb.protocol.reply import EOF_BYTES_MAX, parse_err
from ibb.storage.position import NOWHERE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ibb.protocol.event_splitter import EventPart
    from ibb.protocol.gtid import Gtid
    from ibb.protocol.packet import PacketFragment

HELD_BYTES_MAX: Final = 8 << 20  # of a group that is all in memory
PIECE_BYTES: Final = 256 << 10  # of a group that is not
_EVENT, _EOF, _ERR = 0x00, 0xFE, 0xFF  # what a packet begins with
_TIMESTAMP: Final = struct.Struct("<I")


class ReceivedGroup:
    """
    One event group off a server, as it comes: an `EventGroup` that may be read more than once.

    Attributes:
        gtid: of the group.
        head: the GTID event, without checksum.
        position: nowhere in files of ours.
    """

    def __init__(self, gtid: Gtid, head: bytes) -> None:
        self.gtid: Gtid | None = gtid
        self.head = head
        self.position = NOWHERE
        self._held: list[bytes] = [head]
        self._size = len(head)
        self._file: IO[bytes] | None = None

    @property
    def timestamp(self) -> int:
        """Seconds since 1970 in the GTID event's header."""
        timestamp: int = _TIMESTAMP.unpack_from(self.head)[0]
        return timestamp

    def pieces(self) -> Iterator[bytes | memoryview]:
        """Yield every byte of the group, GTID event first, in bounded pieces."""
        if self._file is not None:
            self._file.seek(0)
            while piece := self._file.read(PIECE_BYTES):
                yield piece
        yield from self._held

    def add(self, data: bytes) -> None:
        """Append bytes of its events."""
        self._held.append(data)
        self._size += len(data)
        if self._size > HELD_BYTES_MAX:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="ibb-group-")  # noqa: SIM115 - close()
            self._file.writelines(self._held)
            self._held.clear()
            self._size = 0

    def kept(self) -> ReceivedGroup:
        """Return a group that has its bytes now, to be closed by the caller."""
        assert self.gtid is not None
        kept = ReceivedGroup(self.gtid, self.head)
        kept._held, kept._size, kept._file = self._held, self._size, self._file
        self._held, self._size, self._file = [], 0, None
        return kept

    def close(self) -> None:
        """Forget the bytes."""
        self._held.clear()
        if self._file is not None:
            self._file.close()
            self._file = None


class DumpedGroups:
    """Takes one dump apart; `ended` tells whether the server has ended it in order."""

    def __init__(self) -> None:
        self.ended = False
        self._packets = PacketStream(1)
        self._splitter = EventSplitter()
        self._tracker = GroupTracker()
        self._checksum_size = 0
        self._is_described = False  # events before that have nothing to say
        self._group: ReceivedGroup | None = None
        self._step = GroupStep.OUTSIDE  # of the event at hand
        self._left = 0  # bytes of the event at hand that are not its checksum
        self._crc = 0
        self._stored = b""  # the checksum of the event at hand, as far as it has come
        self._whole: deque[ReceivedGroup] = deque()

    def groups(self, data: Iterable[bytes]) -> Iterator[ReceivedGroup]:
        """
        Yield the groups of a dump; each is closed when the next is taken.

        Args:
            data: what comes from the server, cut anywhere.

        Raises:
            FormatError: a wrong checksum, events that are none, or what the server has lost.
            ProtocolError: packets that are none, or the connection ended before the dump.
            SqlError: the server refused the dump, or ended it by this.
        """
        for piece in data:
            for fragment in self._packets.feed(piece):
                self._take(fragment)
            while self._whole:
                group = self._whole.popleft()
                try:
                    yield group
                finally:
                    group.close()
            if self.ended:
                return
        raise ProtocolError("the server closed the connection in the middle of a dump")

    def close(self) -> None:
        """Forget what has come and was not taken."""
        for group in (*self._whole, self._group):
            if group is not None:
                group.close()

    def _take(self, fragment: PacketFragment) -> None:
        data = memoryview(fragment.data)
        if fragment.first:
            if not data:
                raise ProtocolError("the server sent an empty packet")
            if data[0] == _ERR:
                raise parse_err(data)
            if data[0] == _EOF and len(data) < EOF_BYTES_MAX:
                if self._tracker.gtid is not None:
                    raise FormatError(f"the dump ends inside group {self._tracker.gtid}")
                self.ended = True
                return
            if data[0] != _EVENT:
                raise ProtocolError(f"the server sent a packet that begins with {data[0]:02x}")
            data = data[1:]
        for part in self._splitter.feed(data):
            self._take_part(part)
        if fragment.last and not self._splitter.at_boundary:
            raise FormatError("an event says another length than its packet has")

    def _take_part(self, part: EventPart) -> None:
        header = part.header
        if header.type == EventType.FORMAT_DESCRIPTION and part.first and part.last:
            self._describe(part)
            return
        if not self._is_described:
            return
        data: bytes | memoryview = part.data
        if part.first:
            self._begin(part)
        body = bytes(data[: self._left])
        self._left -= len(body)
        self._check(part, body, bytes(data[len(body) :]))
        if self._step is GroupStep.OUTSIDE:
            return
        if part.first:
            patched = bytearray(body)
            U32.pack_into(patched, LENGTH_OFFSET, header.length - self._checksum_size)
            body = bytes(patched)
        if self._step is GroupStep.BEGIN:
            assert self._tracker.gtid is not None
            self._group = ReceivedGroup(self._tracker.gtid, body)
            return
        assert self._group is not None, "the tracker knows that a group is open"
        self._group.add(body)
        if part.last and self._step is GroupStep.END:
            self._whole.append(self._group)
            self._group = None

    def _begin(self, part: EventPart) -> None:
        """Look at an event by its beginning."""
        header = part.header
        self._left, self._crc, self._stored = header.length - self._checksum_size, 0, b""
        if self._left < HEADER_SIZE:
            raise FormatError(f"event of {header.length} bytes has no room for a checksum")
        prefix = memoryview(part.data)[HEADER_SIZE:]
        self._step = self._tracker.add(header, prefix, checksum_size=self._checksum_size)
        if self._step is GroupStep.OUTSIDE and header.type == EventType.INCIDENT:
            raise FormatError("the server says by an INCIDENT event that it has lost changes")
        if self._step is GroupStep.BEGIN and not part.last:
            raise FormatError(f"a GTID event of {header.length} bytes is impossible")

    def _check(self, part: EventPart, body: bytes, stored: bytes) -> None:
        if not self._checksum_size:
            return
        self._crc = crc32(body, self._crc)
        self._stored += stored
        if part.last and U32.unpack(self._stored)[0] != self._crc:
            raise FormatError(
                f"{type_name(part.header.type)} event has checksum {self._stored[::-1].hex()},"
                f" its bytes {self._crc:08x}"
            )

    def _describe(self, part: EventPart) -> None:
        body = memoryview(part.data)[HEADER_SIZE:]
        step = self._tracker.add(part.header, body, checksum_size=CHECKSUM_SIZE)
        if step is GroupStep.CUT_OFF and self._group is not None:
            self._group.close()
            self._group = None
        described = FormatDescription.parse(part.data, has_checksum=True)
        self._checksum_size = CHECKSUM_SIZE if described.checksum_alg == CHECKSUM_CRC32 else 0
        self._is_described = True
