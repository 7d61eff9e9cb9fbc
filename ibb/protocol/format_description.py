"""
Format description event (15): which server wrote the stream, and whether events have checksums.

    0  u16      binlog version, 4
    2  50 bytes server version, NUL-padded
    52 u32      created: seconds, not 0 only where the server (re)started
    56 u8       header size, 19
    57 N bytes  post-header length of each type, at index type - 1
    .. u8       checksum algorithm: 0 none, 1 CRC-32, 255 undefined
    .. u32      CRC-32 of this event: on the wire with either algorithm, in the store never

N is not written down; it follows from the length of the event.
Source: dump-protocol 4.3, ibb-format 5.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Final

from .errors import FormatError
from .event import (
    HEADER_SIZE,
    EventFlag,
    EventType,
    build_event,
    expect_event,
    with_checksum,
    without_checksum,
)

if TYPE_CHECKING:
    from .fields import Buffer

CHECKSUM_NONE: Final = 0
CHECKSUM_CRC32: Final = 1
CHECKSUM_UNDEFINED: Final = 255

BINLOG_VERSION: Final = 4
SERVER_VERSION_SIZE: Final = 50  # bytes

CREATED_OFFSET: Final = 52  # of the event's body

# Types 1 to 171, as MariaDB 10.11 and 11.8 declare them.
POST_HEADER_LENGTHS: Final = (
    bytes.fromhex("38 0d 00 08 00 12 00 04 04 04 04 12 00 00 e4 00 04 1a 08 00 00 00 08 08 08 02")
    + bytes.fromhex("00 00 00 0a 0a 0a 00 00 00 00 00 00 0a 0a 0a")
    + bytes(159 - 41)
    + bytes.fromhex("00 04 13 04 00 0d 08 08 08 0a 0a 0a")
)

_FIXED: Final = Struct(f"<H{SERVER_VERSION_SIZE}sIB")
_ALGORITHMS: Final = frozenset((CHECKSUM_NONE, CHECKSUM_CRC32, CHECKSUM_UNDEFINED))
_STREAM_FLAGS: Final = int(EventFlag.BINLOG_IN_USE | EventFlag.ARTIFICIAL)


@dataclass(frozen=True, slots=True)
class FormatDescription:
    """
    What a format description event says.

    Args:
        timestamp: seconds, from the event header.
        server_id: of the server that wrote the event.
        flags: of the event header.
        binlog_version: always 4.
        server_version: text such as `10.11.19-MariaDB-log`; readers decide by it what flags mean.
        created: seconds; not 0 tells replicas that the server restarted.
        post_header_lengths: one byte a type, the first being that of type 1.
        checksum_alg: one of the `CHECKSUM_` constants.
    """

    timestamp: int
    server_id: int
    flags: int
    binlog_version: int
    server_version: str
    created: int
    post_header_lengths: bytes
    checksum_alg: int

    @classmethod
    def parse(cls, event: Buffer, has_checksum: bool) -> FormatDescription:
        """
        Read one whole event.

        With *has_checksum* it is one off the wire, and its CRC-32 is checked; else one out of the
        store.

        Raises:
            FormatError: wrong type, length, checksum, version, header size or algorithm.
        """
        if has_checksum:
            event = without_checksum(event)
        header = expect_event(event, EventType.FORMAT_DESCRIPTION, _FIXED.size + 1)
        binlog_version, server_version, created, header_size = _FIXED.unpack_from(
            event, HEADER_SIZE
        )
        if binlog_version != BINLOG_VERSION or header_size != HEADER_SIZE:
            raise FormatError(
                f"binlog version {binlog_version} with event headers of {header_size} bytes; "
                f"only version {BINLOG_VERSION} with {HEADER_SIZE} is known"
            )
        checksum_alg = event[-1]
        if checksum_alg not in _ALGORITHMS:
            raise FormatError(f"unknown event checksum algorithm {checksum_alg}")
        return cls(
            timestamp=header.timestamp,
            server_id=header.server_id,
            flags=header.flags,
            binlog_version=binlog_version,
            server_version=server_version.partition(b"\0")[0].decode("latin-1"),
            created=created,
            post_header_lengths=bytes(event[HEADER_SIZE + _FIXED.size : -1]),
            checksum_alg=checksum_alg,
        )

    @classmethod
    def default(cls, server_version: str, server_id: int, timestamp: int) -> FormatDescription:
        """Return that of a server which started at *timestamp* and writes the types 1 to 171."""
        return cls(
            timestamp=timestamp,
            server_id=server_id,
            flags=0,
            binlog_version=BINLOG_VERSION,
            server_version=server_version,
            created=timestamp,
            post_header_lengths=POST_HEADER_LENGTHS,
            checksum_alg=CHECKSUM_NONE,
        )

    def to_wire(self, checksum_alg: int, created: int = 0) -> bytes:
        """
        Return the event for a client: log_pos 0, and a valid CRC-32 whatever *checksum_alg* says.

        Args:
            checksum_alg: of the events that follow.
            created: 0, unless the client shall drop its temporary tables here.
        """
        return with_checksum(self._encode(checksum_alg, created))

    def to_store(self) -> bytes:
        """Return the event as it is stored: algorithm 0, no CRC-32, log_pos 0, created kept."""
        return self._encode(CHECKSUM_NONE, self.created)

    def _encode(self, checksum_alg: int, created: int) -> bytes:
        assert checksum_alg in _ALGORITHMS
        server_version = self.server_version.encode("latin-1")
        assert len(server_version) <= SERVER_VERSION_SIZE
        body = b"".join(
            (
                _FIXED.pack(self.binlog_version, server_version, created, HEADER_SIZE),
                self.post_header_lengths,
                bytes((checksum_alg,)),
            )
        )
        return build_event(
            EventType.FORMAT_DESCRIPTION,
            body,
            timestamp=self.timestamp,
            server_id=self.server_id,
            flags=self.flags & ~_STREAM_FLAGS,
        )
