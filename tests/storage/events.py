"""Events for tests that publish: small, valid, told apart by their text."""

import struct

from ibb.protocol.event import EventType, build_event

TIMESTAMP = 1_700_000_000


def query(text: str, *, database: bytes = b"test", server: int = 1) -> bytes:
    body = struct.pack("<IIBHH", 4, 0, len(database), 0, 0) + database + b"\0" + text.encode()
    return build_event(EventType.QUERY, body, timestamp=TIMESTAMP, server_id=server)


def annotation(text: str) -> bytes:
    """Return the statement that rows come from, an event that changes nothing for its group."""
    body = text.encode()
    return build_event(EventType.ANNOTATE_ROWS, body, timestamp=TIMESTAMP, server_id=1)


def xid(number: int, *, server: int = 1) -> bytes:
    return build_event(
        EventType.XID, struct.pack("<Q", number), timestamp=TIMESTAMP, server_id=server
    )


def transaction(text: str, size: int = 0) -> bytes:
    """Return the events of a transaction without its GTID event, about *size* bytes if larger."""
    return query(text) + (query("x" * size) if size else b"") + xid(7)


def rows_event(size: int) -> bytes:
    """Return a rows event with about *size* bytes of rows."""
    body = struct.pack("<IHH", 31, 0, 1) + bytes(number % 251 for number in range(size))
    return build_event(EventType.WRITE_ROWS_V1, body, timestamp=TIMESTAMP, server_id=1)


def fragments(event: bytes, chunk_size: int, *, size: int | None = None) -> list[bytes]:
    """Return the events that a rows event is written as; *size* is what the first one says."""
    chunks = [event[at : at + chunk_size] for at in range(0, len(event), chunk_size)]
    stored = []
    for number, chunk in enumerate(chunks, 1):
        head = struct.pack("<IIB", len(chunks), number, number == 1)
        if number == 1:
            head += struct.pack("<Q", len(event) if size is None else size)
        stored.append(
            build_event(EventType.PARTIAL_ROW_DATA, head + chunk, timestamp=TIMESTAMP, server_id=1)
        )
    return stored
