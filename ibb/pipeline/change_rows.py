"""
Row changes as Arrow batches: of all tables as texts (mode changes), of one with its own columns.

Rows of one version of a table are collected and decoded together. Inside a table they come in the
order of the binlog; columns position and row tell the order inside a group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ibb.protocol.event import TYPE_OFFSET
from ibb.protocol.rows.rows_event import OPS
from ibb.protocol.rows.table_layout import layout_of

from .columns import GROUP_KEY_COLUMNS, MICROSECONDS, TEXTS, TIMESTAMP, Column
from .group_rows import check_seq_no
from .row_batches import RowBatch, RowBatches
from .text_maps import TextImages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ibb.protocol.gtid_event import GtidEvent
    from ibb.protocol.rows.table_map import TableMap
    from ibb.protocol.rows.table_schema import TableSchema
    from ibb.protocol.rows.value_policy import ValuePolicy

    from .known_schemas import KnownSchemas
    from .row_events import TableRows

VERSIONS_MAX: Final = 64  # of tables that are collected at a time
HELD_BYTES_MAX: Final = 64 << 20  # of rows events, of all of them
TAGS_MAX: Final = 1 << 16  # of rows events, as small as these may be
TEXT_VALUES_MAX: Final = 1 << 18  # in a batch of mode changes, where each is an object for a while
TEXT_BATCH_BYTES: Final = 4 << 20  # of rows events, from which on such a batch is full

CHANGE_COLUMNS: Final = (
    *GROUP_KEY_COLUMNS,
    Column("position", pa.int32()),
    Column("row", pa.int32()),
    Column("database", pa.string()),
    Column("table", pa.string()),
    Column("op", pa.string()),
    Column("key", TEXTS),
    Column("before", TEXTS),
    Column("after", TEXTS),
    Column("thread", pa.int64()),
    Column("statement", pa.string()),
)
# Tells the order of groups, which neither their times nor their numbers do; only by option columns.
GROUP_COLUMN: Final = Column("_group", pa.int64())


class Tag(NamedTuple):
    """
    Where rows come from.

    Attributes:
        group: when and by which GTID they changed.
        position: of their event in the group.
        number: of the group, in its partition.
        statement: that changed them.
    """

    group: GtidEvent
    position: int
    number: int
    statement: bytes | None = None


class CollectedRows:
    """
    Rows events, collected by the version of their table.

    Args:
        schemas: what is known of tables besides what the binlog says.
        policy: for values without an exact counterpart.
        columns: by a table's columns, those that are wanted; None: all.
        ops: of the protocol's numbers, those that are wanted; empty: all.
        as_texts: the batches are for mode changes.
        check: is called with each rows event and the schema of its table, and refuses some.
    """

    def __init__(
        self,
        schemas: KnownSchemas,
        policy: ValuePolicy,
        columns: Callable[[Sequence[str]], list[str] | None],
        ops: frozenset[int],
        *,
        as_texts: bool = False,
        check: Callable[[TableRows, TableSchema | None], None] | None = None,
    ) -> None:
        self._check = check
        self._as_texts = as_texts
        self._schemas = schemas
        self._policy = policy
        self._columns = columns
        self._ops = ops
        self._batches: dict[tuple[bytes, TableSchema | None], RowBatches] = {}
        self._tags: list[Tag] = []
        self._bytes = 0

    def batches(self, events: Iterable[TableRows]) -> Iterator[tuple[RowBatch, list[Tag]]]:
        """
        Yield batches with the tags that they refer to.

        Raises:
            FormatError, ValueRefused, SchemaMissing, SchemaMismatch: rows cannot be decoded.
        """
        for rows in events:
            if self._ops and OPS.get(rows.event[TYPE_OFFSET]) not in self._ops:  # type: ignore[call-overload]
                continue
            schema = self._schemas.find(rows.table.database, rows.table.table, rows.group.gtid)
            if self._check is not None:
                self._check(rows, schema)
            version = rows.table.layout, schema
            batches = self._batches.get(version)
            if batches is None:
                if len(self._batches) >= VERSIONS_MAX:
                    yield from self._all()
                batches = self._batches[version] = self._made(rows.table, schema)
            check_seq_no(rows.group)
            batches.add(rows.event, len(self._tags))
            self._tags.append(Tag(rows.group, rows.position, rows.number, rows.statement))
            self._bytes += len(rows.event) + len(rows.statement or b"")
            del rows  # the event is staged, and may be large
            while batches.is_full:
                yield batches.take(), self._tags
            if self._bytes >= HELD_BYTES_MAX or len(self._tags) >= TAGS_MAX:
                yield from self._all()
        yield from self._all()

    def _made(self, table: TableMap, schema: TableSchema | None) -> RowBatches:
        layout = layout_of(table, schema)
        names = self._columns([column.name for column in layout.columns])
        if not self._as_texts:
            return RowBatches(layout, self._policy, names)
        rows = max(TEXT_VALUES_MAX // (2 * len(layout.columns)), 1)
        return RowBatches(
            layout, self._policy, names, batch_bytes=TEXT_BATCH_BYTES, batch_rows=rows
        )

    def _all(self) -> Iterator[tuple[RowBatch, list[Tag]]]:
        """Yield what is there and begin anew."""
        for batches in self._batches.values():
            while batches.rows:
                yield batches.take(), self._tags
        self._batches.clear()
        self._tags = []
        self._bytes = 0


def change_batch(batch: RowBatch, tags: list[Tag], columns: Sequence[Column]) -> pa.RecordBatch:
    """
    Return the rows of mode changes.

    Args:
        batch: changed rows of a version of a table.
        tags: of which its tags are the numbers.
        columns: of `CHANGE_COLUMNS`, and `GROUP_COLUMN`.

    Raises:
        FormatError: the texts are too long for one batch.
    """
    layout = batch.layout
    arrays = []
    images: TextImages | None = None
    for column in columns:
        name = column.name
        if name in ("database", "table"):
            value = layout.database if name == "database" else layout.table
            arrays.append(pa.array([value] * batch.rows, pa.string()))
        elif name in ("before", "after", "key"):
            images = images or TextImages(batch)
            arrays.append(images.column(name))
        else:
            arrays.append(metadata_array(batch, tags, name))
    schema = pa.schema([pa.field(column.name, column.type) for column in columns])
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def metadata_array(batch: RowBatch, tags: list[Tag], name: str) -> pa.Array:
    """Return a column that says where rows come from: gtid, op, and so on."""
    if name == "op":
        return batch.op
    if name == "row":
        return batch.number
    first, last = batch.tag[0].as_py(), batch.tag[-1].as_py()
    value, kind = _OF_TAGS[name]
    values = pa.array([value(tag) for tag in tags[first : last + 1]], kind)
    return values.take(pc.subtract(batch.tag, first))


def _statement(tag: Tag) -> str | None:
    return None if tag.statement is None else tag.statement.decode(errors="replace")


_OF_TAGS: Final[dict[str, tuple[Callable[[Tag], Any], Any]]] = {
    "gtid": (lambda tag: str(tag.group.gtid), pa.string()),
    "domain": (lambda tag: tag.group.gtid.domain, pa.int64()),
    "server": (lambda tag: tag.group.gtid.server, pa.int64()),
    "seq_no": (lambda tag: tag.group.gtid.seq, pa.int64()),
    "commit_time": (lambda tag: tag.group.timestamp * MICROSECONDS, TIMESTAMP),
    "position": (lambda tag: tag.position, pa.int32()),
    "thread": (lambda tag: tag.group.thread_id, pa.int64()),
    "statement": (_statement, pa.string()),
    "_group": (lambda tag: tag.number, pa.int64()),
}
