"""Rows of mode events: one for each event of each group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from ibb.protocol.errors import FormatError
from ibb.protocol.event import HEADER_SIZE, QUERY_SIZES, EventType, type_name
from ibb.protocol.event_group import ROWS
from ibb.protocol.event_info import event_info
from ibb.protocol.event_splitter import EventSplitter
from ibb.protocol.fields import FieldReader
from ibb.protocol.gtid_event import GtidEvent

from .columns import GROUP_KEY_COLUMNS, MICROSECONDS, TIMESTAMP, Column, WeighedRow
from .group_rows import check_seq_no, commit_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ibb.protocol.event import EventHeader

    from .event_groups import EventGroup

EVENT_COLUMNS: Final = (
    *GROUP_KEY_COLUMNS,
    Column("position", pa.int32()),
    Column("type", pa.string()),
    Column("type_code", pa.int32()),
    Column("event_time", TIMESTAMP),
    Column("event_server", pa.int64()),
    Column("bytes", pa.int64()),
    Column("database", pa.string()),
    Column("table", pa.string()),
    Column("info", pa.string()),
    Column("data", pa.binary()),
)
_OF_WHOLE_EVENTS: Final = frozenset(("info", "data"))
_ROW_BYTES: Final = 300  # about, without info and data
_TABLE_ID_BYTES: Final = 6
_QUERIES: Final = frozenset((EventType.QUERY, EventType.QUERY_COMPRESSED))


class TableName(NamedTuple):
    """Whose rows an event has; of a statement only the database is known, the default one."""

    database: str | None
    table: str | None


_NO_TABLE: Final = TableName(None, None)


class _Event(NamedTuple):
    """An event on its way into a row."""

    group: GtidEvent
    header: EventHeader
    position: int
    named: TableName
    whole: bytes | None


class EventFilter(NamedTuple):
    """
    Which events are wanted by whose they are.

    Attributes:
        databases: empty: of all, and those that belong to none.
        tables: pairs; empty: of all, and those that belong to none.
    """

    databases: frozenset[str]
    tables: frozenset[tuple[str, str]]

    def wants(self, named: TableName) -> bool:
        """Tell whether an event is wanted."""
        if self.databases and named.database not in self.databases:
            return False
        return not self.tables or (named.database, named.table) in self.tables


def event_rows(
    groups: Iterable[EventGroup], columns: Sequence[Column], wanted: EventFilter, bytes_max: int
) -> Iterator[WeighedRow]:
    """
    Yield a row for each event, in order.

    Args:
        groups: each is used before the next is taken.
        columns: of `EVENT_COLUMNS`.
        wanted: which events.
        bytes_max: of larger events columns info and data stay empty.

    Raises:
        FormatError: a group is damaged, or its number does not fit into a bigint.
    """
    names = [column.name for column in columns]
    limit = bytes_max if _OF_WHOLE_EVENTS & set(names) else 0
    getters = [_VALUES[name] for name in names]
    for group in groups:
        for event in _events_of(group, limit):
            if wanted.wants(event.named):
                values = tuple(get(event) for get in getters)
                held = 0 if event.whole is None else 2 * len(event.whole)
                yield WeighedRow(values, _ROW_BYTES + held)


def _events_of(group: EventGroup, whole_bytes_max: int) -> Iterator[_Event]:
    """Yield the events of a group; those up to a size with all their bytes."""
    head = GtidEvent.parse(group.head)
    check_seq_no(head)
    splitter, names = EventSplitter(), _TableNames()
    position, named = -1, _NO_TABLE
    whole: bytearray | None = None
    for piece in group.pieces():
        for part in splitter.feed(piece):
            if part.first:
                position += 1
                named = names.of(part.header.type, part.data)
                whole = bytearray() if part.header.length <= whole_bytes_max else None
            if whole is not None:
                whole += part.data
            if part.last:
                held = None if whole is None else bytes(whole)
                yield _Event(head, part.header, position, named, held)
    if not splitter.at_boundary:
        raise FormatError(f"group {group.gtid} at {group.position} ends inside an event")


class _TableNames:
    """Whose events are, by the table maps before them."""

    def __init__(self) -> None:
        self._by_id: dict[int, TableName] = {}

    def of(self, code: int, beginning: bytes | memoryview) -> TableName:
        """Return whose an event is of which at least the *beginning* is there."""
        if code in _QUERIES:
            reader = FieldReader(beginning, HEADER_SIZE, what="Query event")
            name_bytes, status_bytes = QUERY_SIZES.unpack(reader.take(QUERY_SIZES.size))
            if reader.remaining < status_bytes + name_bytes:
                return _NO_TABLE  # a long statement, of which not all is here
            reader.take(status_bytes)
            return TableName(_text(reader.take(name_bytes)) or None, None)
        if code != EventType.TABLE_MAP and code not in ROWS:
            return _NO_TABLE
        reader = FieldReader(beginning, HEADER_SIZE, what="event of a table")
        number = int.from_bytes(reader.take(_TABLE_ID_BYTES), "little")
        if code == EventType.TABLE_MAP:
            reader.take(2)
            self._by_id[number] = TableName(_name(reader), _name(reader))
        return self._by_id.get(number, _NO_TABLE)


def _name(reader: FieldReader) -> str:
    """Read a name with its length before and NUL behind. Source: dump-protocol 4.9b."""
    name = _text(reader.take(reader.u8()))
    reader.take(1)
    return name


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _info(event: _Event) -> str | None:
    return None if event.whole is None else event_info(event.header.type, event.whole)


_VALUES: Final[dict[str, Callable[[_Event], Any]]] = {
    "gtid": lambda event: str(event.group.gtid),
    "domain": lambda event: event.group.gtid.domain,
    "server": lambda event: event.group.gtid.server,
    "seq_no": lambda event: event.group.gtid.seq,
    "commit_time": lambda event: commit_time(event.group),
    "position": lambda event: event.position,
    "type": lambda event: type_name(event.header.type),
    "type_code": lambda event: event.header.type,
    "event_time": lambda event: event.header.timestamp * MICROSECONDS,
    "event_server": lambda event: event.header.server_id,
    "bytes": lambda event: event.header.length,
    "database": lambda event: event.named.database,
    "table": lambda event: event.named.table,
    "info": _info,
    "data": lambda event: event.whole,
}
