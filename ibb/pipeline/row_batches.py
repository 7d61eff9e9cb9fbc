"""
Rows events of one version of a table as Arrow batches: what the sources of Spark are built on.

    layout = layout_of(TableMap.parse(event), schema)       # ibb.protocol.rows
    batches = RowBatches(layout)
    for event in rows_events:                               # whole, without checksum
        batches.add(event, tag=group_number)
        while batches.is_full:
            yield batches.take().to_batch()
    if batches.rows:
        yield batches.take().to_batch()

A batch has a row for each changed row. `before` and `after` are images of it: an INSERT has none
before, a DELETE none after. With binlog_row_image=MINIMAL or NOBLOB an image lacks columns; these
are null in it as NULL is, and `before_present`, `after_present` tell them apart.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ibb.protocol.errors import FormatError
from ibb.protocol.event import TYPE_OFFSET
from ibb.protocol.rows.column import COMPRESSED
from ibb.protocol.rows.column_reader import ColumnReader
from ibb.protocol.rows.number_values import take_presence
from ibb.protocol.rows.row_stage import DELETE, INSERT, PLAIN_OFFSET, RowStage, zeros
from ibb.protocol.rows.rows_event import PLAIN, open_rows
from ibb.protocol.rows.value_policy import SchemaMissing, Unknown, ValuePolicy

from .arrow_columns import arrow_array, arrow_type
from .inflated_sizes import InflatedSizes

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ibb.protocol.fields import Buffer
    from ibb.protocol.rows.table_layout import TableLayout

    from .found_rows import FoundEvents

BATCH_BYTES: Final = 16 << 20  # of rows events, from which on a batch is full
BATCH_ROWS: Final = 1 << 16
ROOM_MAX: Final = 2 * BATCH_BYTES  # of a column's texts that may lie in a heap which keeps memory
DEFAULT_POLICY: Final = ValuePolicy()

_OPS: Final = pa.array(["", "insert", "update", "delete"])  # by INSERT, UPDATE, DELETE


class RowBatch(NamedTuple):
    """
    Some changed rows of one version of a table, in the order of the binlog.

    Args:
        layout: the table, with all of its columns.
        image_schema: the columns that were asked for.
        op_code: `INSERT`, `UPDATE` or `DELETE` of `ibb.protocol.rows.row_stage`.
        tag: what was given with the event of each row.
        number: of each row in its event, from 0.
        before: the images before, null where a column is not in them; None: there are none at all.
        after: the images after.
        before_present: for each row the bits of the columns (of the whole table, from the lowest of
            the first byte) that its image has, none in an INSERT; None: where there is an image, it
            has all columns.
        after_present: the same of the images after; none in a DELETE.
        left_out: dates that no calendar has and that are null therefore.
    """

    layout: TableLayout
    image_schema: pa.Schema
    op_code: pa.Int8Array
    tag: pa.Int64Array
    number: pa.Int32Array
    before: pa.RecordBatch | None
    after: pa.RecordBatch | None
    before_present: pa.FixedSizeBinaryArray | None
    after_present: pa.FixedSizeBinaryArray | None
    left_out: int

    @property
    def rows(self) -> int:
        """How many changed rows there are."""
        return len(self.op_code)

    @property
    def op(self) -> pa.StringArray:
        """What happened to each row: "insert", "update" or "delete"."""
        only = self.only_op
        return _OPS.take(self.op_code) if only is None else pa.repeat(_OPS[only], self.rows)

    @property
    def only_op(self) -> int | None:
        """What happened to all of the rows; None: not the same, or there are none."""
        least, most = pc.min_max(self.op_code).as_py().values()
        return least if least == most else None

    def has_column(self, image: str, column: int) -> pa.BooleanArray:
        """
        Return for each row whether its image has a column: where not, null does not mean NULL.

        Args:
            image: "before" or "after".
            column: number of the column in the table, from 0.
        """
        present = self.before_present if image == "before" else self.after_present
        if present is None:
            return pc.not_equal(self.op_code, INSERT if image == "before" else DELETE)
        byte, bit = divmod(column, 8)
        size = present.type.byte_width
        data = memoryview(present.buffers()[1])[byte : size * self.rows : size]
        return pa.array([bool(value >> bit & 1) for value in data.tolist()])

    def struct(self, image: str) -> pa.StructArray:
        """
        Return the images as structs, null for rows without one.

        Args:
            image: "before" or "after".
        """
        batch = self.before if image == "before" else self.after
        fields = list(self.image_schema)
        if batch is None:
            return pa.nulls(self.rows, pa.struct(fields))
        missing = pc.equal(self.op_code, INSERT if image == "before" else DELETE)
        return pa.StructArray.from_arrays(batch.columns, fields=fields, mask=missing)

    def to_batch(self) -> pa.RecordBatch:
        """Return one batch: op, tag, number, before, after, before_present and after_present."""
        size = (len(self.layout.columns) + 7) // 8
        presence = [
            pa.nulls(self.rows, pa.binary(size)) if present is None else present
            for present in (self.before_present, self.after_present)
        ]
        return pa.RecordBatch.from_arrays(
            [
                self.op,
                self.tag,
                self.number,
                self.struct("before"),
                self.struct("after"),
                *presence,
            ],
            names=["op", "tag", "number", "before", "after", "before_present", "after_present"],
        )


class _Part(NamedTuple):
    """The rows from *first* up to *last* of those that are staged in *data*."""

    data: memoryview
    width: int
    first: int
    last: int

    @property
    def rows(self) -> int:
        return self.last - self.first

    def places(self, of_all: memoryview) -> memoryview:
        return of_all[self.first * self.width : self.last * self.width]


class RowBatches:
    """
    Collects rows events of one version of a table and gives their rows as batches.

    Memory: the events of a batch (`batch_bytes`, or one event if that is larger), 4 bytes a value,
    and what the batch itself takes. An event with more rows or bytes than a batch takes several.

    Args:
        layout: the table.
        policy: what becomes of values without an exact counterpart.
        columns: names of the columns that are wanted; None is all.
        batch_bytes: of rows events, and of what COMPRESSED columns have in them, from which on a
            batch is full.
        batch_rows: the most rows of a batch.

    Raises:
        SchemaMissing: of a wanted column it is not known what it is, and the policy wants it known.
        ValueError: the table has no column of a name that is asked for.
    """

    def __init__(
        self,
        layout: TableLayout,
        policy: ValuePolicy = DEFAULT_POLICY,
        columns: Collection[str] | None = None,
        *,
        batch_bytes: int = BATCH_BYTES,
        batch_rows: int = BATCH_ROWS,
    ) -> None:
        self.layout = layout
        self.failed = 0  # of the events that `add_found` was given
        self._batch_bytes, self._batch_rows = batch_bytes, batch_rows
        self._stage = RowStage(
            [column.column.skip for column in layout.columns], batch_rows, _make_room
        )
        self._taken = 0  # of the rows that are staged
        where = f"{layout.database}.{layout.table}"
        numbers = _wanted(layout, columns, where)
        columns_wanted = [layout.columns[number] for number in numbers]
        unknown = [column.name for column in columns_wanted if not column.is_known]
        if unknown and policy.unknown is Unknown.ERROR:
            raise SchemaMissing(
                f"{where}: the binlog does not say enough of {', '.join(unknown[:5])}"
                f"{', ...' if len(unknown) > 5 else ''} to read it; set "
                "binlog_row_metadata=FULL (or MINIMAL) on the primary, or give the table's schema"
            )
        self._readers = [
            ColumnReader(layout.columns[number], number, policy, where, _make_room)
            for number in numbers
        ]
        self.schema = pa.schema(
            [
                pa.field(reader.layout.name, arrow_type(reader.form), nullable=True)
                for reader in self._readers
            ]
        )
        kinds = [(number, layout.columns[number].column) for number in numbers]
        compressed = [(number, kind.prefix) for number, kind in kinds if kind.type in COMPRESSED]
        self._inflated = InflatedSizes(self._stage, compressed)

    @property
    def rows(self) -> int:
        """How many rows wait for `take`."""
        return self._stage.rows - self._taken

    @property
    def is_full(self) -> bool:
        """Whether `take` must be called before the next event is added."""
        stage = self._stage
        large = max(stage.used, self._inflated.total)
        enough = large >= self._batch_bytes or stage.rows >= self._batch_rows
        return stage.pending or self._taken > 0 or (enough and stage.rows > 0)

    def add(self, event: Buffer, tag: int = 0) -> int:
        """
        Take the rows of an event; return how many it has in this batch.

        Args:
            event: a whole rows event of this table, without checksum; compressed or not.
            tag: kept with its rows: a number by which the caller knows the event again.

        Raises:
            FormatError: the event is damaged or of another table; no row of it is taken.
        """
        op = PLAIN.get(event[TYPE_OFFSET]) if len(event) > PLAIN_OFFSET else None
        if op is not None:
            rows = self._stage.add(event, PLAIN_OFFSET, op, tag)
        else:
            head = open_rows(event)
            rows = self._stage.add(head.event, head.offset, head.op, tag)
        self._inflated.read()
        return rows

    def add_found(self, events: FoundEvents, first: int, tag: int) -> int:
        """
        Take the rows of many events until there are enough for a batch; return which comes next.

        Args:
            events: whole rows events of this table.
            first: of them, to be taken; `is_full` has said no.
            tag: kept with the rows of the first one, of the next one more, and so on.

        Raises:
            FormatError: event `failed` is damaged or of another table; no row of it is taken.
        """
        stage = self._stage
        try:
            if not self._inflated.is_needed:
                columns = events.starts, events.ends, events.ops
                following = stage.add_plain(events.data, columns, first, tag, self._batch_bytes)
                if following > first:
                    return following
            self.add(events.data[events.starts[first] : events.ends[first]], tag)
        except FormatError:
            self.failed = max(first, stage.next_event)
            raise
        return first + 1

    def take(self) -> RowBatch:
        """
        Return the rows so far as a batch, and begin the next one; after an error `drop` does.

        Raises:
            FormatError: bytes that no server writes as a value of their type, or further rows of a
                large event are damaged.
            ValueRefused: a value that the policy does not let pass.
        """
        stage = self._stage
        if stage.pending and not stage.rows:
            stage.read_rows()
            self._inflated.read()
        part = self._next_part()
        before, left_out = self._image(part, stage.before) if stage.has_before else (None, 0)
        after, more_left_out = self._image(part, stage.after) if stage.has_after else (None, 0)
        batch = RowBatch(
            self.layout,
            self.schema,
            _array(pa.int8(), stage.ops, part),
            _array(pa.int64(), stage.tags, part),
            _array(pa.int32(), stage.numbers, part),
            before,
            after,
            self._presence(part, stage.before) if stage.has_before else None,
            self._presence(part, stage.after) if stage.has_after else None,
            left_out + more_left_out,
        )
        self._taken = part.last
        if self._taken == stage.rows:
            self.drop()
        return batch

    def drop(self) -> None:
        """Forget the rows that wait, of a large event only those that have been read."""
        self._stage.clear()
        self._taken = 0
        self._inflated.clear()

    def _next_part(self) -> _Part:
        """Return the rows that the next batch has: of a large event as many as fill one."""
        stage, first = self._stage, self._taken
        last = stage.rows
        if stage.used > 2 * self._batch_bytes and last > first:
            full = self._place(first) + self._batch_bytes
            last = bisect_left(range(last), full, first + 1, key=self._place)
        if self._inflated.total > self._batch_bytes:
            last = min(last, self._inflated.end_of(first, self._batch_bytes))
        return _Part(stage.data, stage.width, first, last)

    def _place(self, row: int) -> int:
        """Return about where a row begins in the bytes of its events, one behind the other."""
        stage = self._stage
        images = [stage.before] * stage.has_before + [stage.after] * stage.has_after
        for number in range(row, -1, -1):  # one that is all NULL is where the one before it is
            for places in images:
                for place in places[number * stage.width : (number + 1) * stage.width]:
                    if place >= 0:
                        return place
        return 0

    def _image(self, part: _Part, places: memoryview) -> tuple[pa.RecordBatch, int]:
        chosen = part.places(places)
        columns = [reader.read(part, chosen) for reader in self._readers]
        arrays = [arrow_array(column) for column in columns]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        return batch, sum(column.left_out for column in columns)

    def _presence(self, part: _Part, places: memoryview) -> pa.FixedSizeBinaryArray | None:
        if not self._stage.is_partial:
            return None
        size = (part.width + 7) // 8
        out = bytearray(size * part.rows)
        take_presence(part.places(places), part.width, part.rows, size, memoryview(out))
        return pa.Array.from_buffers(pa.binary(size), part.rows, [None, pa.py_buffer(out)])


def _wanted(layout: TableLayout, columns: Collection[str] | None, where: str) -> Sequence[int]:
    """Return the numbers of the columns by their names, in the table's order."""
    if columns is None:
        return range(len(layout.columns))
    by_name = {column.name: number for number, column in enumerate(layout.columns)}
    if missing := [name for name in columns if name not in by_name]:
        raise ValueError(f"{where} has no column {missing[0]!r}")
    return sorted(by_name[name] for name in columns)


def _make_room(size: int) -> memoryview:
    """Return so many bytes: of Arrow's heap, which has them ready, but for what is very large."""
    return memoryview(pa.allocate_buffer(size)).cast("B") if size <= ROOM_MAX else zeros(size)


def _array(kind: pa.DataType, values: memoryview, part: _Part) -> pa.Array:
    """Return the values of some rows as an array of its own: the stage goes on using them."""
    own = bytes(values[part.first : part.last])
    return pa.Array.from_buffers(kind, part.rows, [None, pa.py_buffer(own)])
