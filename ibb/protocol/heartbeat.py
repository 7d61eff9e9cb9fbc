"""
Heartbeat event (27): the sender is alive and nothing came after this position.

The header's log_pos is the position and the body the file name. A log_pos of 0 says that the body
begins with the position as u64, which positions from 4 GiB on need.
Source: dump-protocol 4.8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .errors import FormatError
from .event import HEADER_SIZE, EventType, build_event, expect_event
from .fields import U64, Buffer
from .rotate import FIRST_POSITION, encode_file_name, parse_file_name

NARROW_POSITION_MAX: Final = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """
    One sign of life.

    Args:
        file_name: that of the last Rotate.
        position: end of the last event sent, at least 4; replicas stop at one below their own.
        server_id: of the sender.
        wide: write the position as u64 even where log_pos could hold it.
    """

    file_name: str
    position: int
    server_id: int
    wide: bool = False

    @classmethod
    def parse(cls, event: Buffer) -> Heartbeat:
        """
        Read one whole event without checksum.

        Raises:
            FormatError: wrong type or length, a position below 4, or no proper file name.
        """
        header = expect_event(event, EventType.HEARTBEAT, 1)
        position, name_offset, wide = header.log_pos, HEADER_SIZE, header.log_pos == 0
        if wide:
            expect_event(event, EventType.HEARTBEAT, U64.size + 1)
            (position,) = U64.unpack_from(event, HEADER_SIZE)
            name_offset += U64.size
        if position < FIRST_POSITION:
            raise FormatError(f"Heartbeat event with position {position}")
        name = parse_file_name(event[name_offset:], "Heartbeat event")
        return cls(name, position, header.server_id, wide)

    def encode(self) -> bytes:
        """Return the event without checksum."""
        assert self.position >= FIRST_POSITION
        wide = self.wide or self.position > NARROW_POSITION_MAX
        name = encode_file_name(self.file_name)
        return build_event(
            EventType.HEARTBEAT,
            U64.pack(self.position) + name if wide else name,
            timestamp=0,
            server_id=self.server_id,
            log_pos=0 if wide else self.position,
        )
