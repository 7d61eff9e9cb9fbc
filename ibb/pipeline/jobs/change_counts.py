"""
What the groups of a partition come to: rows, bytes and groups, by table, operation, day, server.

Rows are counted where they lie; none of their values is decoded. A group is in one partition, so
counts of partitions add up.
"""

from __future__ import annotations

import heapq
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.pipeline.errors import OptionError
from ibb.pipeline.rows import row_events
from ibb.protocol.event import EventType
from ibb.protocol.event_group import ROWS
from ibb.protocol.event_splitter import EventSplitter
from ibb.protocol.gtid_event import GtidEvent, GtidFlag
from ibb.protocol.rows.row_stage import DELETE, INSERT, UPDATE, RowStage
from ibb.protocol.rows.rows_event import open_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import date

    from ibb.pipeline.event_groups import EventGroup, ReadTask
    from ibb.pipeline.found_rows import TableRows
    from ibb.pipeline.options import SourceOptions
    from ibb.protocol.gtid import Gtid
    from ibb.protocol.rows.rows_event import RowsHead
    from ibb.protocol.rows.table_map import TableMap
    from ibb.storage.position import Position

DIMENSIONS: Final = ("day", "server", "domain", "database", "table", "op")
KEYS_MAX: Final = 100_000  # of a partition, in memory
STAGES_MAX: Final = 256  # versions of tables whose rows are counted without another look at them
STAGE_ROWS: Final = 1024
TABLES_NAMED_MAX: Final = 16  # of a large group
_OF_ROWS: Final = frozenset({*ROWS, EventType.PARTIAL_ROW_DATA})
_OP_NAMES: Final = {INSERT: "insert", UPDATE: "update", DELETE: "delete"}

Key = tuple[int | None, int | None, int | None, str | None, str | None, str | None]


class CountRow(NamedTuple):
    """
    A count, or one of the largest groups.

    Attributes:
        day: of the commit, in UTC; None, as others of these: not counted by it.
        server: that committed.
        domain: of the GTIDs.
        database: whose rows changed; None: what is not rows, too.
        table: likewise.
        op: likewise insert, update or delete.
        rows: that changed.
        bytes: of rows events, or of all else; of a group, all of it.
        groups: in which they are; without a table, those that changed no row.
        gtid: of a large group; None in counts.
        commit_time: of a large group.
        tables: that a large group changed, the first of them.
    """

    day: date | None
    server: int | None
    domain: int | None
    database: str | None
    table: str | None
    op: str | None
    rows: int
    bytes: int
    groups: int
    gtid: str | None = None
    commit_time: datetime | None = None
    tables: list[str] | None = None


def check_dimensions(names: Iterable[str]) -> None:
    """
    Check that there is something to count by of each name.

    Raises:
        OptionError: there is not.
    """
    for name in names:
        if name not in DIMENSIONS:
            raise OptionError("by", f"'{name}' is none of {', '.join(DIMENSIONS)}")


def count_rows(
    task: ReadTask, options: SourceOptions, by: Sequence[str], largest: int
) -> Iterator[CountRow]:
    """
    Yield the counts of a partition, each key at least once, and its largest groups.

    Args:
        task: the partition.
        options: of the read; with databases, tables or ops only what is of these counts.
        by: of `DIMENSIONS`.
        largest: how many groups.

    Raises:
        FormatError: something is damaged, or is gone since the read was planned.
        DiskError: a file cannot be read.
    """
    counts = _Counts(options, frozenset(by), largest)
    with task.open() as opened:
        events = row_events(opened, options)
        for group in opened.groups():
            measured = _MeasuredGroup(group)
            counts.add(measured, events.of(measured))
            if counts.keys >= KEYS_MAX:
                yield from counts.take()
    yield from counts.take()
    yield from counts.largest()


class _MeasuredGroup:
    """A group that knows its size once it was read."""

    def __init__(self, group: EventGroup) -> None:
        self._group = group
        self.gtid: Gtid | None = group.gtid
        self.head: bytes = group.head
        self.position: Position = group.position
        self.size = 0

    @property
    def timestamp(self) -> int:
        return self._group.timestamp

    def pieces(self) -> Iterator[bytes | memoryview]:
        size = 0
        for piece in self._group.pieces():
            size += len(piece)
            yield piece
        self.size = size


class _Counts:
    """
    Adds groups up.

    Args:
        options: of the read.
        by: names of dimensions.
        largest: how many groups to keep.
    """

    def __init__(self, options: SourceOptions, by: frozenset[str], largest: int) -> None:
        self._takes_all = not (options.databases or options.tables or options.ops)
        self._has = [name in by for name in DIMENSIONS]
        self._counts: dict[Key, list[int]] = {}
        self._largest_max = largest
        self._largest: list[tuple[int, str, CountRow]] = []  # a heap
        self._stages: dict[bytes, RowStage] = {}

    @property
    def keys(self) -> int:
        """How many counts there are by now."""
        return len(self._counts)

    def add(self, group: _MeasuredGroup, events: Iterable[TableRows]) -> None:
        """Count a group."""
        head = GtidEvent.parse(group.head)
        found: dict[Key, list[int]] = {}
        tables: dict[str, None] = {}
        rows = size = 0
        for event in events:
            opened = open_rows(event.event)
            counted = found.setdefault(self._key(head, event.table, opened.op), [0, 0, 1])
            number = self._rows_in(event.table, opened)
            rows, size = rows + number, size + len(event.event)
            counted[0] += number
            counted[1] += len(event.event)
            tables[f"{event.table.database}.{event.table.table}"] = None
        whole = group.size
        if head.flags2 & GtidFlag.PREPARED_XA:
            whole = _size_without_rows(group)  # they count where they are committed
        if head.flags2 & GtidFlag.COMPLETED_XA:
            whole += size  # its rows are those of another group
        if self._takes_all:
            rest = found.setdefault(self._key(head, None, None), [0, 0, 0])
            rest[1] += max(whole - size, 0)
            rest[2] = max(rest[2], int(not rows))
        for key, (more_rows, more_bytes, groups) in found.items():
            total = self._counts.setdefault(key, [0, 0, 0])
            total[0] += more_rows
            total[1] += more_bytes
            total[2] += groups
        if found:
            self._keep(head, rows, whole if self._takes_all else size, list(tables))

    def take(self) -> Iterator[CountRow]:
        """Yield the counts, and begin anew."""
        for key, (rows, size, groups) in self._counts.items():
            day, server, domain, database, table, op = key
            when = None if day is None else _moment(day).date()
            yield CountRow(when, server, domain, database, table, op, rows, size, groups)
        self._counts.clear()

    def largest(self) -> Iterator[CountRow]:
        """Yield the largest groups."""
        for _, _, row in self._largest:
            yield row

    def _key(self, head: GtidEvent, table: TableMap | None, op: int | None) -> Key:
        day, server, domain, database, name, operation = self._has
        return (
            head.timestamp - head.timestamp % 86400 if day else None,
            head.gtid.server if server else None,
            head.gtid.domain if domain else None,
            table.database if database and table is not None else None,
            table.table if name and table is not None else None,
            _OP_NAMES[op] if operation and op is not None else None,
        )

    def _rows_in(self, table: TableMap, head: RowsHead) -> int:
        stage = self._stages.get(table.layout)
        if stage is None:
            if len(self._stages) >= STAGES_MAX:
                self._stages.clear()
            skips = [column.skip for column in table.columns]
            stage = self._stages[table.layout] = RowStage(skips, STAGE_ROWS)
        number = stage.add(head.event, head.offset, head.op, 0)
        while stage.pending:
            stage.clear()
            number += stage.read_rows()
        stage.clear()
        return number

    def _keep(self, head: GtidEvent, rows: int, size: int, tables: list[str]) -> None:
        if not self._largest_max:
            return
        if len(self._largest) >= self._largest_max and size <= self._largest[0][0]:
            return
        gtid = head.gtid
        row = CountRow(
            day=None,
            server=gtid.server,
            domain=gtid.domain,
            database=None,
            table=None,
            op=None,
            rows=rows,
            bytes=size,
            groups=1,
            gtid=str(gtid),
            commit_time=_moment(head.timestamp),
            tables=tables[:TABLES_NAMED_MAX],
        )
        heapq.heappush(self._largest, (size, str(gtid), row))
        if len(self._largest) > self._largest_max:
            heapq.heappop(self._largest)


def _size_without_rows(group: _MeasuredGroup) -> int:
    """Return the bytes of a group that nobody has read yet, those of its rows events left out."""
    splitter = EventSplitter()
    parts = (part for piece in group.pieces() for part in splitter.feed(piece))
    return sum(len(part.data) for part in parts if part.header.type not in _OF_ROWS)


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
