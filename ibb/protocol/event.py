"""
What all replication events share: types, the 19-byte header, the checksum at the end.

    0  u32 timestamp    seconds; 0 in artificial events
    4  u8  type
    5  u32 server id    of the server where the event was first written
    9  u32 length       header, body, and the checksum if there is one
    13 u32 log_pos      offset of the next event in the writer's file; 0 = not counted
    17 u16 flags

Source: dump-protocol 4.1, 4.2 and 4.7.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from struct import Struct
from typing import Final, NamedTuple

from .checksum import CHECKSUM_SIZE, crc32
from .errors import FormatError, Truncated
from .fields import U32, Buffer

HEADER_SIZE: Final = 19  # bytes
EVENT_BYTES_MAX: Final = 2**32 - 1  # what the length field can say
HEAD_BYTES_MAX: Final = 4096  # of a GTID event or a format description that is stored

TYPE_OFFSET: Final = 4
LENGTH_OFFSET: Final = 9
LOG_POS_OFFSET: Final = 13
FLAGS_OFFSET: Final = 17

_HEADER: Final = Struct("<IBIIIH")

# Behind the header of a QUERY event: thread, seconds, size of db, error, size of status variables.
QUERY_POST_HEADER: Final = Struct("<IIBHH")
QUERY_SIZES: Final = Struct("<8xB2xH")  # the two sizes in it


class EventType(IntEnum):
    """Type codes of events, by their names in MariaDB."""

    UNKNOWN = 0
    START_V3 = 1
    QUERY = 2
    STOP = 3
    ROTATE = 4
    INTVAR = 5
    LOAD = 6
    SLAVE = 7
    CREATE_FILE = 8
    APPEND_BLOCK = 9
    EXEC_LOAD = 10
    DELETE_FILE = 11
    NEW_LOAD = 12
    RAND = 13
    USER_VAR = 14
    FORMAT_DESCRIPTION = 15
    XID = 16
    BEGIN_LOAD_QUERY = 17
    EXECUTE_LOAD_QUERY = 18
    TABLE_MAP = 19
    PRE_GA_WRITE_ROWS = 20
    PRE_GA_UPDATE_ROWS = 21
    PRE_GA_DELETE_ROWS = 22
    WRITE_ROWS_V1 = 23
    UPDATE_ROWS_V1 = 24
    DELETE_ROWS_V1 = 25
    INCIDENT = 26
    HEARTBEAT = 27
    IGNORABLE = 28
    ROWS_QUERY = 29
    WRITE_ROWS = 30
    UPDATE_ROWS = 31
    DELETE_ROWS = 32
    MYSQL_GTID = 33
    ANONYMOUS_GTID = 34
    PREVIOUS_GTIDS = 35
    TRANSACTION_CONTEXT = 36
    VIEW_CHANGE = 37
    XA_PREPARE = 38
    PARTIAL_UPDATE_ROWS = 39
    TRANSACTION_PAYLOAD = 40
    HEARTBEAT_V2 = 41
    ANNOTATE_ROWS = 160
    BINLOG_CHECKPOINT = 161
    GTID = 162
    GTID_LIST = 163
    START_ENCRYPTION = 164
    QUERY_COMPRESSED = 165
    WRITE_ROWS_COMPRESSED_V1 = 166
    UPDATE_ROWS_COMPRESSED_V1 = 167
    DELETE_ROWS_COMPRESSED_V1 = 168
    WRITE_ROWS_COMPRESSED = 169
    UPDATE_ROWS_COMPRESSED = 170
    DELETE_ROWS_COMPRESSED = 171
    PARTIAL_ROW_DATA = 172


# Words of SHOW BINLOG EVENTS that are not just the type's name with one capital letter.
_IRREGULAR_NAMES: Final = {
    EventType.RAND: "RAND",
    EventType.USER_VAR: "User var",
    EventType.FORMAT_DESCRIPTION: "Format_desc",
    EventType.XA_PREPARE: "XA_prepare",
}
_NAMES: Final = {
    int(code): _IRREGULAR_NAMES.get(code, code.name.capitalize()) for code in EventType
}


class EventFlag(IntFlag):
    """Flags of the event header."""

    BINLOG_IN_USE = 0x1  # format description of a file that is being written
    THREAD_SPECIFIC = 0x4  # depends on temporary tables
    SUPPRESS_USE = 0x8
    ARTIFICIAL = 0x20  # made for the stream, in no file
    RELAY_LOG = 0x40
    IGNORABLE = 0x80
    ACCEPT_OWN = 0x4000  # only inside a replica
    SKIP_REPLICATION = 0x8000


class EventHeader(NamedTuple):
    """The 19 bytes in front of every event, field by field; see the module's table."""

    timestamp: int
    type: int
    server_id: int
    length: int
    log_pos: int
    flags: int

    @classmethod
    def unpack(cls, data: Buffer, offset: int = 0) -> EventHeader:
        """
        Read the header at byte *offset*; its values are not judged.

        Raises:
            Truncated: *data* ends inside the header.
        """
        assert offset >= 0
        if len(data) - offset < HEADER_SIZE:
            raise Truncated(
                f"event header of {HEADER_SIZE} bytes has only {len(data) - offset}", offset=offset
            )
        return tuple.__new__(cls, _HEADER.unpack_from(data, offset))  # `_make` takes twice the time

    def pack(self) -> bytes:
        """Return the 19 bytes."""
        return _HEADER.pack(*self)


def type_name(code: int) -> str:
    """Return the word that SHOW BINLOG EVENTS has for the type, or `Unknown`."""
    return _NAMES.get(code, "Unknown")


def build_event(
    code: EventType,
    body: bytes,
    *,
    timestamp: int,
    server_id: int,
    log_pos: int = 0,
    flags: int = 0,
) -> bytes:
    """Return an event without checksum: *body* behind a header with the right length."""
    length = HEADER_SIZE + len(body)
    return _HEADER.pack(timestamp, code, server_id, length, log_pos, flags) + body


def check_event(event: Buffer) -> EventHeader:
    """
    Return the header of *event*, which must be one whole event.

    Raises:
        FormatError: the length in the header is not the number of bytes.
    """
    header = EventHeader.unpack(event)
    if header.length != len(event):
        raise FormatError(
            f"{type_name(header.type)} event says {header.length} bytes and has {len(event)}"
        )
    return header


def expect_event(event: Buffer, code: EventType, body_size_min: int) -> EventHeader:
    """
    Return the header of *event*, which must be one whole event of type *code*.

    The body, all that is behind the header, must have *body_size_min* bytes or more.

    Raises:
        FormatError: another type, a wrong length, or a shorter body.
    """
    header = check_event(event)
    if header.type != code:
        raise FormatError(f"{type_name(code)} event wanted, found {type_name(header.type)}")
    if len(event) - HEADER_SIZE < body_size_min:
        raise FormatError(
            f"{type_name(code)} event of {len(event)} bytes wants at least "
            f"{HEADER_SIZE + body_size_min}"
        )
    return header


def with_checksum(event: Buffer) -> bytes:
    """
    Return *event* with its CRC-32 at the end and the length raised by 4.

    Args:
        event: one whole event without a checksum.
    """
    assert HEADER_SIZE <= len(event) <= EVENT_BYTES_MAX - CHECKSUM_SIZE
    out = bytearray(event)
    U32.pack_into(out, LENGTH_OFFSET, len(out) + CHECKSUM_SIZE)
    out += U32.pack(crc32(out))
    return bytes(out)


def without_checksum(event: Buffer) -> bytes:
    """
    Return *event* without the CRC-32 at its end, and the length lowered by 4.

    Raises:
        FormatError: too short for a checksum, length not the number of bytes, or a wrong CRC.
    """
    header = check_event(event)
    size = len(event) - CHECKSUM_SIZE
    if size < HEADER_SIZE:
        raise FormatError(f"event of {len(event)} bytes has no room for a checksum")
    out = bytearray(event)
    (stored,) = U32.unpack_from(out, size)
    del out[size:]
    computed = crc32(out)
    if stored != computed:
        raise FormatError(
            f"{type_name(header.type)} event has checksum {stored:08x}, its bytes {computed:08x}"
        )
    U32.pack_into(out, LENGTH_OFFSET, size)
    return bytes(out)
