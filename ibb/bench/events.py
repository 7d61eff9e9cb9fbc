"""
Event groups as a MariaDB server writes them for a table of two columns, to be made by the million.

    CREATE TABLE bench.orders (id INT NOT NULL, note VARCHAR(8000) CHARACTER SET latin1 NOT NULL)

A group is a template whose numbers are changed in place, since a database would take an hour for
what a file takes a minute.
"""

from __future__ import annotations

import itertools
import random
import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.event import HEADER_SIZE, EventType, build_event
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent, GtidFlag

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVER_ID: Final = 1
DOMAIN: Final = 0
TIMESTAMP: Final = 1_700_000_000
NOTE_BYTES_MAX: Final = 8000  # of the column's type
ROWS_EVENT_BYTES: Final = 8192  # as `binlog_row_event_max_size` has it
BULK_GROUP_BYTES: Final = 1 << 20
_TABLE_ID: Final = 31
_STATEMENT_END: Final = 1  # flag of a statement's last rows event
_ROW_NOTE: Final = 100  # bytes of a note in a bulk row
_ONE_ROW_NOTE: Final = 142
_U64: Final = struct.Struct("<Q")
_U32: Final = struct.Struct("<I")


class Piece(NamedTuple):
    """
    Whole events in the stored form, one behind the other.

    Attributes:
        data: the bytes.
        ends: where each event ends.
    """

    data: bytes
    ends: tuple[int, ...]


class GroupTemplate:
    """
    A group whose numbers change.

    Args:
        events: of the group, GTID event first, in the stored form.
        rows: numbers of those events in whose first row the number is written as well.
    """

    def __init__(self, events: list[bytes], rows: tuple[int, ...] = ()) -> None:
        self._data = bytearray(b"".join(events))
        self.ends = tuple(itertools.accumulate(map(len, events)))
        starts = [0, *self.ends[:-1]]
        self._seq_at = HEADER_SIZE
        self._xid_at = starts[-1] + HEADER_SIZE
        self._ids_at = [starts[number] + _ROW_AT for number in rows]

    def piece(self, seq: int) -> Piece:
        """Return the group as the one with number *seq*."""
        _U64.pack_into(self._data, self._seq_at, seq)
        _U64.pack_into(self._data, self._xid_at, seq)
        for at in self._ids_at:
            _U32.pack_into(self._data, at, seq & 0x7FFFFFFF)
        return Piece(bytes(self._data), self.ends)


# Behind the header of a rows event: table id, flags, number of columns, which, and the null bits.
_ROWS_HEAD: Final = struct.Struct("<IHHBBB")
_ROW_AT: Final = HEADER_SIZE + _ROWS_HEAD.size


def gtid_event(seq: int) -> bytes:
    """Return the event that begins a transaction."""
    flags = GtidFlag.TRANSACTIONAL | GtidFlag.ALLOW_PARALLEL
    return GtidEvent(Gtid(DOMAIN, SERVER_ID, seq), TIMESTAMP, flags).encode()


def table_map() -> bytes:
    """Return the event that says what rows events are about."""
    names = b"\x05bench\0" + b"\x06orders\0"
    types = b"\x02" + bytes((3, 15))  # INT, VARCHAR
    metadata = b"\x02" + struct.pack("<H", NOTE_BYTES_MAX)
    return _event(
        EventType.TABLE_MAP, struct.pack("<IHH", _TABLE_ID, 0, 1) + names + types + metadata + b"\0"
    )


def rows_event(notes: list[bytes], *, last: bool) -> bytes:
    """Return an event that inserts a row for each note."""
    head = struct.pack("<IHH", _TABLE_ID, 0, _STATEMENT_END if last else 0) + b"\x02\x03"
    rows = (
        b"\xfc" + _U32.pack(number) + struct.pack("<H", len(note)) + note
        for number, note in enumerate(notes)
    )
    return _event(EventType.WRITE_ROWS_V1, head + b"".join(rows))


def one_row_group() -> GroupTemplate:
    """Return a transaction that inserts one row: 5 events, with checksum 104 bytes on average."""
    note = b"n" * _ONE_ROW_NOTE
    events = [
        gtid_event(1),
        _event(EventType.ANNOTATE_ROWS, b"INSERT INTO bench.orders VALUES (12345678, '%s')" % note),
        table_map(),
        rows_event([note], last=True),
        _event(EventType.XID, bytes(8)),
    ]
    return GroupTemplate(events, rows=(3,))


def bulk_group(size: int = BULK_GROUP_BYTES) -> GroupTemplate:
    """Return a transaction of about *size* bytes whose rows fill events of 8 KB."""
    events = [
        gtid_event(1),
        table_map(),
        *_bulk_events(size, last=True),
        _event(EventType.XID, bytes(8)),
    ]
    return GroupTemplate(events, rows=(2,))


def huge_group(seq: int, size: int) -> Iterator[Piece]:
    """Yield a transaction of about *size* bytes in pieces of a MiB."""
    first = [gtid_event(seq), table_map()]
    body = _whole(_bulk_events(BULK_GROUP_BYTES, last=False))
    yield _whole(first)
    for _ in range(max(1, size // BULK_GROUP_BYTES) - 1):
        yield body
    yield _whole(
        [*_bulk_events(BULK_GROUP_BYTES, last=True), _event(EventType.XID, _U64.pack(seq))]
    )


def _whole(events: list[bytes]) -> Piece:
    return Piece(b"".join(events), tuple(itertools.accumulate(map(len, events))))


def _bulk_events(size: int, *, last: bool) -> list[bytes]:
    source = random.Random(2)  # noqa: S311 - as above
    rows = ROWS_EVENT_BYTES // (_ROW_NOTE + 7)
    events = []
    count = max(1, size // ROWS_EVENT_BYTES)
    for number in range(count):
        notes = [source.randbytes(_ROW_NOTE) for _ in range(rows)]
        events.append(rows_event(notes, last=last and number == count - 1))
    return events


def _event(code: EventType, body: bytes) -> bytes:
    return build_event(code, body, timestamp=TIMESTAMP, server_id=SERVER_ID)
