"""
Incident event (26): the primary has lost events, and whoever follows it must not go on.

    0 u16   kind: 0 none, 1 LOST_EVENTS
    2 lestr message, its length in one byte

Primaries write it between groups, without a GTID. Source: dump-protocol 4.7.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from .event import HEADER_SIZE, EventType, build_event, expect_event
from .fields import U16, Buffer, FieldReader

_MESSAGE_BYTES_MAX = 255


class IncidentKind(IntEnum):
    """What has happened, by MariaDB's names."""

    NONE = 0
    LOST_EVENTS = 1


@dataclass(frozen=True, slots=True)
class Incident:
    """
    One incident.

    Args:
        kind: what has happened; numbers that have no name stay numbers.
        message: the primary's words, at most 255 bytes of UTF-8.
        timestamp: seconds since 1970.
        server_id: of the primary.
    """

    kind: int
    message: str
    timestamp: int
    server_id: int

    @property
    def name(self) -> str:
        """MariaDB's name of the kind."""
        known = self.kind in IncidentKind.__members__.values()
        return IncidentKind(self.kind).name if known else str(self.kind)

    @classmethod
    def parse(cls, event: Buffer) -> Incident:
        """
        Read one whole event without checksum.

        Raises:
            FormatError: wrong type or length.
        """
        header = expect_event(event, EventType.INCIDENT, U16.size)
        reader = FieldReader(event, HEADER_SIZE, what="Incident event")
        kind = reader.u16()
        message = reader.u8str() if reader.remaining else b""
        return cls(kind, message.decode(errors="replace"), header.timestamp, header.server_id)

    def encode(self) -> bytes:
        """Return the event without checksum."""
        message = self.message.encode()
        assert len(message) <= _MESSAGE_BYTES_MAX
        body = U16.pack(self.kind) + bytes([len(message)]) + message
        return build_event(
            EventType.INCIDENT, body, timestamp=self.timestamp, server_id=self.server_id
        )
