"""
Fragments of a huge rows event (172), and how older clients get the event itself.

A fragment says how many there are, which one it is, and in the first one how long the event is that
their chunks make, one behind the other. Only MariaDB 12.3 and later know them; to all others an
unknown event is an error that ends replication.

    u32 number of fragments, u32 which one, from 1, u8 flags, [u64 size of the event,] chunk

Source: dump-protocol 4.7.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from .error_codes import MASTER_FATAL_ERROR_READING_BINLOG
from .errors import FormatError
from .event import HEADER_SIZE, EventHeader, type_name
from .event_group import ROWS
from .event_splitter import EventPart
from .fields import U64

if TYPE_CHECKING:
    from .fields import Buffer

JOINED_BYTES_MAX: Final = 1 << 30  # no client takes a larger packet
SIZE_FOLLOWS: Final = 1  # flag of the first fragment

_FIXED: Final = Struct("<IIB")


class FragmentJoiner:
    """
    Makes the parts of one event of the parts of its fragments; holds nothing back.

    `done` says whether the event is complete.
    """

    __slots__ = ("_header", "_left", "_number", "_total", "done")

    def __init__(self) -> None:
        self.done = False
        self._total = 0  # fragments
        self._number = 0  # of the fragment that is passing
        self._header: EventHeader | None = None  # of the event that comes of them
        self._left = 0  # bytes of it still to come

    def take(self, part: EventPart) -> EventPart:
        """
        Return what a part of the next fragment is in the event.

        Raises:
            FormatError: the fragments do not follow one another, or do not make a rows event.
            SqlError: 1236, the event is too large for any client.
        """
        chunk: Buffer = self._open(part.data) if part.first else part.data
        begins = self._header is None
        if self._header is None:
            self._header = self._inner_header(chunk)
        self._left -= len(chunk)
        if self._left < 0:
            raise FormatError("fragments of a rows event hold more than the first one says")
        ends = part.last and self._number == self._total
        if ends:
            if self._left:
                raise FormatError(f"fragments of a rows event lack {self._left} bytes")
            self.done = True
        return EventPart(self._header, bytes(chunk), begins, ends)

    def _open(self, fragment: Buffer) -> Buffer:
        """Check the beginning of a fragment; return what it has of its chunk."""
        if len(fragment) < HEADER_SIZE + _FIXED.size:
            raise FormatError(f"Partial_rows event of only {len(fragment)} bytes")
        total, number, flags = _FIXED.unpack_from(fragment, HEADER_SIZE)
        start = HEADER_SIZE + _FIXED.size
        if number != self._number + 1 or number > total or (self._number and total != self._total):
            raise FormatError(
                f"fragment {number} of {total} of a rows event behind {self._number} of "
                f"{self._total}"
            )
        self._number, self._total = number, total
        if number == 1:
            if not flags & SIZE_FOLLOWS or len(fragment) < start + U64.size:
                raise FormatError("the first fragment of a rows event does not say its size")
            (self._left,) = U64.unpack_from(fragment, start)
            start += U64.size
            if self._left > JOINED_BYTES_MAX:
                raise MASTER_FATAL_ERROR_READING_BINLOG.error(
                    "log event entry exceeded max_allowed_packet; Increase max_allowed_packet on "
                    f"master; a rows event of {self._left} bytes cannot be joined of its fragments"
                )
        return fragment[start:]

    def _inner_header(self, chunk: Buffer) -> EventHeader:
        if len(chunk) < HEADER_SIZE:
            raise FormatError("the first fragment of a rows event does not hold its header")
        header = EventHeader.unpack(chunk)
        if header.type not in ROWS:
            raise FormatError(f"fragments of a rows event make a {type_name(header.type)} event")
        return header._replace(length=self._left)
