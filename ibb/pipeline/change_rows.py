"""
Row changes as Arrow batches: of all tables as texts (mode changes), of one with its own columns.

Rows of one version of a table are collected and decoded together. Inside a table they come in the
order of the binlog; columns position and row tell the order inside a group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import pyarrow as pa

from ibb.protocol.errors import FormatError
from ibb.protocol.rows.table_layout import layout_of

from .columns import GROUP_KEY_COLUMNS, TEXTS, Column
from .found_rows import BlockRows, refuse
from .group_rows import check_seq_no
from .row_batches import RowBatch, RowBatches
from .row_tags import RowTags
from .text_maps import TextImages

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from ibb.protocol.gtid import Gtid
    from ibb.protocol.rows.table_map import TableMap
    from ibb.protocol.rows.table_schema import TableSchema
    from ibb.protocol.rows.value_policy import ValuePolicy

    from .found_rows import TableRows
    from .known_schemas import KnownSchemas

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


class RowCheck(Protocol):
    """Refuses rows of some versions of a table."""

    def has_passed(self, table: TableMap, schema: TableSchema | None) -> bool:
        """Tell whether all rows of a version pass."""

    def check(self, table: TableMap, schema: TableSchema | None, gtid: Gtid) -> None:
        """
        Look at rows of a version in a group.

        Raises:
            FormatError: they are refused.
        """


class CollectedRows:
    """
    Rows events, collected by the version of their table.

    Args:
        schemas: what is known of tables besides what the binlog says.
        policy: for values without an exact counterpart.
        columns: by a table's columns, those that are wanted; None: all.
        as_texts: the batches are for mode changes.
        check: refuses rows of some versions of a table.
    """

    def __init__(
        self,
        schemas: KnownSchemas,
        policy: ValuePolicy,
        columns: Callable[[Sequence[str]], list[str] | None],
        *,
        as_texts: bool = False,
        check: RowCheck | None = None,
    ) -> None:
        self._check = check
        self._as_texts = as_texts
        self._schemas = schemas
        self._policy = policy
        self._columns = columns
        self._batches: dict[tuple[bytes, TableSchema | None], RowBatches] = {}
        self._tags = RowTags()
        self._bytes = 0

    def batches(
        self, events: Iterable[TableRows | BlockRows]
    ) -> Iterator[tuple[RowBatch, RowTags]]:
        """
        Yield batches with the tags that they refer to.

        Raises:
            FormatError, ValueRefused, SchemaMissing, SchemaMismatch: rows cannot be decoded.
        """
        for rows in events:
            if isinstance(rows, BlockRows):
                yield from self._take_block(rows)
            else:
                table, gtid = rows.table, rows.group.gtid
                schema = self._schemas.find(table.database, table.table, gtid)
                if self._check is not None:
                    self._check.check(table, schema, gtid)
                batches = yield from self._of(table, schema)
                self._take(rows, batches)
                del rows  # the event is staged, and may be large
                while batches.is_full:
                    yield batches.take(), self._tags
            if self._bytes >= HELD_BYTES_MAX or len(self._tags) >= TAGS_MAX:
                yield from self._all()
                self._tags = RowTags()
        yield from self._all()

    def _take(self, rows: TableRows, batches: RowBatches) -> None:
        """Stage a rows event."""
        check_seq_no(rows.group)
        try:
            batches.add(rows.event, len(self._tags))
        except FormatError as error:
            refuse(error, rows.group.gtid)
        self._tags.add(rows.group, rows.position, rows.number, rows.statement)
        self._bytes += len(rows.event) + len(rows.statement or b"")

    def _take_block(self, rows: BlockRows) -> Iterator[tuple[RowBatch, RowTags]]:
        """Stage many rows events of a table."""
        table, tag = rows.table, len(self._tags)
        self._tags.extend(rows.tags)
        self._bytes += rows.size
        for first, last, schema in self._versions(rows, tag):
            batches = yield from self._of(table, schema)
            events, at = rows.events.up_to(last), first
            while at < last:
                try:
                    at = batches.add_found(events, at, tag + at)
                except FormatError as error:
                    refuse(error, self._tags.gtid(tag + batches.failed))
                while batches.is_full:
                    yield batches.take(), self._tags

    def _versions(self, rows: BlockRows, tag: int) -> Iterator[tuple[int, int, TableSchema | None]]:
        """Yield first and last, and the schema, of stretches of events that have the same one."""
        table = rows.table
        is_same, schema = self._schemas.always(table.database, table.table)
        if is_same and (self._check is None or self._check.has_passed(table, schema)):
            yield 0, rows.number, schema
            return
        first = 0
        for number in range(rows.number):
            gtid = self._tags.gtid(tag + number)
            found = schema if is_same else self._schemas.find(table.database, table.table, gtid)
            if self._check is not None:
                self._check.check(table, found, gtid)
            if found is not schema and found != schema:
                if number > first:
                    yield first, number, schema
                first, schema = number, found
        yield first, rows.number, schema

    def _of(
        self, table: TableMap, schema: TableSchema | None
    ) -> Generator[tuple[RowBatch, RowTags], None, RowBatches]:
        """Return what collects the rows of a version; yield others if there are too many."""
        version = table.layout, schema
        batches = self._batches.get(version)
        if batches is None:
            if len(self._batches) >= VERSIONS_MAX:
                yield from self._all()
            batches = self._batches[version] = self._made(table, schema)
        return batches

    def _made(self, table: TableMap, schema: TableSchema | None) -> RowBatches:
        layout = layout_of(table, schema)
        names = self._columns([column.name for column in layout.columns])
        if not self._as_texts:
            return RowBatches(layout, self._policy, names)
        rows = max(TEXT_VALUES_MAX // (2 * len(layout.columns)), 1)
        return RowBatches(
            layout, self._policy, names, batch_bytes=TEXT_BATCH_BYTES, batch_rows=rows
        )

    def _all(self) -> Iterator[tuple[RowBatch, RowTags]]:
        """Yield what is there and begin anew, but for the tags: there may be others."""
        for batches in self._batches.values():
            while batches.rows:
                yield batches.take(), self._tags
        self._batches.clear()
        self._bytes = 0


def change_batch(batch: RowBatch, tags: RowTags, columns: Sequence[Column]) -> pa.RecordBatch:
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
    schema = pa.schema([column.field for column in columns])
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def metadata_array(batch: RowBatch, tags: RowTags, name: str) -> pa.Array:
    """Return a column that says where rows come from: gtid, op, and so on."""
    if name == "op":
        return batch.op
    return batch.number if name == "row" else tags.column(name, batch.tag)
