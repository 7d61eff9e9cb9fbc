"""
Rotate event (4): the name of the file that what follows is said to come from.

    0 u64   position in that file, normally 4
    8 ..    file name, to the end of the event

A fake one (timestamp 0) begins every stream, before any format description.
Source: dump-protocol 4.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .errors import FormatError
from .event import HEADER_SIZE, EventFlag, EventType, build_event, expect_event
from .fields import U64, Buffer

FILE_NAME_BYTES_MAX: Final = 511
FIRST_POSITION: Final = 4  # behind the magic number of a traditional binlog file


@dataclass(frozen=True, slots=True)
class Rotate:
    """
    Where the stream goes on.

    Args:
        file_name: 1 to 511 bytes of UTF-8.
        position: byte offset in that file.
        timestamp: seconds; 0 in a fake event.
        server_id: of the sender, or of the writer of a real one.
        log_pos: offset behind this event; 0 in a fake one.
        flags: of the event header.
    """

    file_name: str
    position: int
    timestamp: int
    server_id: int
    log_pos: int = 0
    flags: int = 0

    @classmethod
    def fake(cls, file_name: str, server_id: int, position: int = FIRST_POSITION) -> Rotate:
        """Return one made for the stream alone."""
        return cls(file_name, position, 0, server_id, flags=EventFlag.ARTIFICIAL)

    @classmethod
    def parse(cls, event: Buffer) -> Rotate:
        """
        Read one whole event without checksum.

        Raises:
            FormatError: wrong type or length; a file name that is empty, too long or not UTF-8.
        """
        header = expect_event(event, EventType.ROTATE, U64.size + 1)
        (position,) = U64.unpack_from(event, HEADER_SIZE)
        return cls(
            parse_file_name(event[HEADER_SIZE + U64.size :], "Rotate event"),
            position,
            header.timestamp,
            header.server_id,
            header.log_pos,
            header.flags,
        )

    def encode(self) -> bytes:
        """Return the event without checksum."""
        return build_event(
            EventType.ROTATE,
            U64.pack(self.position) + encode_file_name(self.file_name),
            timestamp=self.timestamp,
            server_id=self.server_id,
            log_pos=self.log_pos,
            flags=self.flags,
        )


def parse_file_name(data: Buffer, what: str) -> str:
    """
    Return the binlog file name that *data* consists of.

    Raises:
        FormatError: empty, longer than `FILE_NAME_BYTES_MAX`, or not UTF-8; *what* holds it.
    """
    if not 0 < len(data) <= FILE_NAME_BYTES_MAX:
        raise FormatError(f"{what} with a file name of {len(data)} bytes")
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(f"{what} with a file name that is not UTF-8") from error


def encode_file_name(name: str) -> bytes:
    """Return the bytes of *name*, which must be 1 to `FILE_NAME_BYTES_MAX` of them."""
    data = name.encode()
    assert 0 < len(data) <= FILE_NAME_BYTES_MAX
    return data
