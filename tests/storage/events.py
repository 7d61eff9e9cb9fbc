"""Events for tests that publish: small, valid, told apart by their text."""

import struct

from ibb.protocol.event import EventType, build_event

TIMESTAMP = 1_700_000_000


def query(text: str, *, database: bytes = b"test", server: int = 1) -> bytes:
    body = struct.pack("<IIBHH", 4, 0, len(database), 0, 0) + database + b"\0" + text.encode()
    return build_event(EventType.QUERY, body, timestamp=TIMESTAMP, server_id=server)


def xid(number: int, *, server: int = 1) -> bytes:
    return build_event(
        EventType.XID, struct.pack("<Q", number), timestamp=TIMESTAMP, server_id=server
    )


def transaction(text: str, size: int = 0) -> bytes:
    """Return the events of a transaction without its GTID event, about *size* bytes if larger."""
    return query(text) + (query("x" * size) if size else b"") + xid(7)
