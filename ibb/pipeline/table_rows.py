"""Changes of one table with its own typed columns, and columns that say where a row comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ibb.protocol.errors import FormatError
from ibb.protocol.rows.row_stage import DELETE, INSERT, UPDATE
from ibb.protocol.rows.table_layout import layout_of

from .change_rows import metadata_array
from .column_origin import origin_of
from .columns import GROUP_KEY_COLUMNS, STRINGS, Column, ddl_of
from .errors import OptionError
from .exact_cast import exact_cast
from .row_batches import RowBatch, RowBatches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ibb.protocol.gtid import Gtid, GtidPosition
    from ibb.protocol.rows.table_map import TableMap
    from ibb.protocol.rows.table_schema import TableSchema
    from ibb.protocol.rows.value_policy import ValuePolicy

    from .known_schemas import KnownSchemas
    from .newest_map import FoundMap
    from .row_tags import RowTags

METADATA_COLUMNS: Final = (
    *(Column(f"_{column.name}", column.type, nullable=False) for column in GROUP_KEY_COLUMNS),
    Column("_position", pa.int32(), nullable=False),
    Column("_row", pa.int32(), nullable=False),
    Column("_op", pa.string(), nullable=False),
    Column("_image", pa.string(), nullable=False),
    Column("_missing", STRINGS),
)
_METADATA: Final = frozenset(column.name for column in METADATA_COLUMNS)
NEVER_NULL: Final = frozenset(column.name for column in METADATA_COLUMNS if not column.nullable)


def table_columns(
    found: FoundMap | None, name: tuple[str, str], schemas: KnownSchemas, policy: ValuePolicy
) -> tuple[Column, ...]:
    """
    Return the columns of a table as its last rows have them.

    Args:
        found: the table map of its last rows, or None.
        name: database and table.
        schemas: what is known besides.
        policy: for values without an exact counterpart.

    Raises:
        OptionError: there is no row of it, or a column has a name of ours.
        SchemaMissing, SchemaMismatch: it is not known what its columns are.
    """
    if found is None:
        raise OptionError(
            "table", f"the history has no row of {'.'.join(name)}; give the columns by schema()"
        )
    known = schemas.find(*name, found.gtid)
    layout = layout_of(found.table, known)
    schema = RowBatches(layout, policy).schema
    ours = _METADATA & {field.name.lower() for field in schema}
    if ours:
        raise OptionError(
            "table", f"{'.'.join(name)} has a column {min(ours)}, which is a name here"
        )
    own = (
        Column(field.name, field.type, origin_of(column))
        for field, column in zip(schema, layout.columns, strict=True)
    )
    return (*own, *METADATA_COLUMNS)


def wanted_columns(columns: Sequence[Column]) -> Callable[[Sequence[str]], list[str]]:
    """
    Return what tells which columns of a version of the table are to be decoded.

    Args:
        columns: that a read has.
    """
    wanted = {column.name.lower() for column in columns} - _METADATA
    return lambda names: [name for name in names if name.lower() in wanted]


class NewRowsCheck:
    """
    Stops a stream at rows whose columns are not those that it has.

    Args:
        columns: of the stream.
        begun: where the history ended when the stream was started; up to there rows may have been
            of other columns.
        chosen: the columns are some of the table's.
    """

    def __init__(self, columns: Sequence[Column], begun: GtidPosition, *, chosen: bool) -> None:
        own = {column.name.lower(): column for column in columns}
        self._own = {name: column for name, column in own.items() if name not in _METADATA}
        self._begun = begun
        self._chosen = chosen
        self._passed: set[tuple[bytes, TableSchema | None]] = set()

    def has_passed(self, table: TableMap, schema: TableSchema | None) -> bool:
        """Tell whether a version of the table was found to be right."""
        return (table.layout, schema) in self._passed

    def check(self, table: TableMap, schema: TableSchema | None, gtid: Gtid) -> None:
        """
        Look at the columns that a table has in a group.

        Raises:
            FormatError: they are not those of the stream.
        """
        known = self._begun.get(gtid.domain)
        if (known is not None and gtid.seq <= known.seq) or self.has_passed(table, schema):
            return
        layout = layout_of(table, schema)
        found = {column.name.lower(): origin_of(column) for column in layout.columns}
        where = f"group {gtid}: {layout.database}.{layout.table}"
        again = "since the query was started. Start it again"
        for name, column in self._own.items():
            if name not in found:
                raise FormatError(f"{where} has no column {column.name} any more {again}")
            if column.origin not in ("", found[name]):
                raise FormatError(
                    f"{where}: column {column.name} was changed from {column.origin} to"
                    f" {found[name]} {again}"
                )
        others = [] if self._chosen else [name for name in found if name not in self._own]
        if others:
            raise FormatError(
                f"{where}: the table has a column {others[0]} that the query has not: it was added"
                f" or renamed {again}, or name by option columns those that it has"
            )
        self._passed.add((table.layout, schema))


def table_batch(
    batch: RowBatch, tags: RowTags, columns: Sequence[Column], *, both: bool
) -> pa.RecordBatch:
    """
    Return the rows of option table.

    Args:
        batch: changed rows of a version of the table.
        tags: of which its tags are the numbers.
        columns: of the table as the read has it, and of `METADATA_COLUMNS`.
        both: an update gives a row before and one after.

    Raises:
        FormatError: a value does not fit the column's type.
    """
    chosen = _chosen(batch, both=both)
    arrays = [_array(batch, tags, column, chosen) for column in columns]
    schema = pa.schema([column.field for column in columns])
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


class _Chosen(NamedTuple):
    """
    Which images of which rows come out, one behind the other.

    Attributes:
        number: how many.
        only: of each row the image after, and no others; False: before; None: neither.
        rows: if neither, the number in the batch of each one's row.
        after: likewise, whether it is the image after.
    """

    number: int
    only: bool | None
    rows: pa.Int64Array | None = None
    after: pa.BooleanArray | None = None

    def pairs(self) -> Iterator[tuple[int, bool]]:
        """Return (row, after) of each."""
        if self.only is not None:
            return ((row, self.only) for row in range(self.number))
        assert self.rows is not None
        assert self.after is not None
        return zip(self.rows.to_pylist(), self.after.to_pylist(), strict=True)


def _chosen(batch: RowBatch, *, both: bool) -> _Chosen:
    """Choose images after, and before where there is no other, or of updates too if *both*."""
    op = batch.only_op
    if op is not None and not (both and op == UPDATE):
        return _Chosen(batch.rows, op != DELETE)
    goes = pc.equal(batch.op_code, DELETE)
    befores = _places(pc.not_equal(batch.op_code, INSERT) if both else goes, 0)
    afters = _places(pc.invert(goes), 1)
    if not len(befores):
        return _Chosen(batch.rows, only=True)
    places = pa.concat_arrays([befores, afters])
    places = places.take(pc.array_sort_indices(places))
    after = pc.equal(pc.bit_wise_and(places, 1), 1)
    return _Chosen(len(places), None, pc.shift_right(places, 1), after)


def _places(rows: pa.BooleanArray, after: int) -> pa.Int64Array:
    """Return a number for one image of each of some *rows*, by which all are in their order."""
    return pc.bit_wise_or(pc.shift_left(pc.indices_nonzero(rows).cast(pa.int64()), 1), after)


def _array(batch: RowBatch, tags: RowTags, column: Column, chosen: _Chosen) -> pa.Array:
    name = column.name.lower()  # MariaDB's names, and Spark's, are the same in any case
    if name == "_image":
        if chosen.only is not None:
            return pa.repeat("after" if chosen.only else "before", chosen.number)
        return pc.if_else(chosen.after, "after", "before")
    if name == "_missing":
        return _missing(batch, chosen)
    if name in _METADATA:
        values = metadata_array(batch, tags, name.removeprefix("_"))
        return values.take(chosen.rows) if chosen.only is None else values
    number = {field.name.lower(): at for at, field in enumerate(batch.image_schema)}.get(name)
    if number is None:
        return pa.nulls(chosen.number, column.type)
    kind = batch.image_schema.field(number).type
    images = [
        pa.nulls(batch.rows, kind) if image is None else image.column(number)
        for image in (batch.before, batch.after)
    ]
    if chosen.only is not None:  # all of it, without a copy
        return _cast(batch, tags, column, images[chosen.only])
    assert chosen.after is not None
    places = pc.add(chosen.rows, pc.multiply(chosen.after.cast(pa.int64()), batch.rows))
    return _cast(batch, tags, column, pa.concat_arrays(images).take(places))


def _cast(batch: RowBatch, tags: RowTags, column: Column, values: pa.Array) -> pa.Array:
    name = column.name.lower()
    layout = next(one for one in batch.layout.columns if one.name.lower() == name)
    origin = origin_of(layout)
    if values.null_count == len(values) and not batch.left_out:
        return pa.nulls(len(values), column.type)
    try:
        return exact_cast(values, origin, column.type, column.origin)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        table, first = batch.layout, tags.gtid(batch.tag[0].as_py())
        now = column.origin or ddl_of(column.type)
        raise FormatError(
            f"{table.database}.{table.table}: in group {first} column {column.name} is of type"
            f" {origin}, and the query has it as {now}: {error}. Read the rows of each type by"
            " themselves (options startingGtid and endingGtid), or leave the column out of option"
            " columns"
        ) from error


def _missing(batch: RowBatch, chosen: _Chosen) -> pa.Array:
    """Return the columns that each image lacks (binlog_row_image); null: it is whole."""
    if batch.before_present is None and batch.after_present is None:
        return pa.nulls(chosen.number, STRINGS)
    names = [column.name for column in batch.layout.columns]
    there: dict[bool, list[list[Any]]] = {}
    for after, image in ((False, "before"), (True, "after")):
        there[after] = [batch.has_column(image, number).to_pylist() for number in range(len(names))]
    lacking = (
        [name for name, rows in zip(names, there[after], strict=True) if not rows[row]]
        for row, after in chosen.pairs()
    )
    return pa.array([found or None for found in lacking], STRINGS)
