"""
Arrow types as Delta tables can hold them.

Delta has no unsigned numbers, no time of day and no decimal of more than 38 digits. The value
stays exact: BIGINT UNSIGNED becomes decimal(20,0), TIME microseconds in a long, and a wider
decimal its text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from .errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Iterable

DELTA_DIGITS_MAX: Final = 38  # of a decimal
HIDDEN_PREFIX: Final = "_ibb_"  # of columns that are ours

_AS: Final = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.float16(): pa.float32(),
    pa.null(): pa.string(),
}


def storable_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that a Delta table has for values of the Arrow type *kind*."""
    if pa.types.is_dictionary(kind):
        return storable_type(kind.value_type)
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        return pa.int64()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_decimal(kind):
        precision: int = kind.precision
        if precision > DELTA_DIGITS_MAX:
            return pa.string()
        return pa.decimal128(precision, kind.scale)
    return _AS.get(kind, kind)


def storable_schema(schema: pa.Schema) -> pa.Schema:
    """
    Return *schema* as a Delta table has it; every column may be null there.

    Raises:
        PipelineError: two names differ in their case alone, or a name is kept for our own columns.
    """
    check_names(schema.names)
    return pa.schema([(field.name, storable_type(field.type)) for field in schema])


def check_names(names: Iterable[str]) -> None:
    """
    Check that a Delta table can have columns of these *names*.

    Raises:
        PipelineError: it cannot.
    """
    seen: set[str] = set()
    for name in names:
        if name.lower().startswith(HIDDEN_PREFIX):
            raise PipelineError(f"column {name}: names with {HIDDEN_PREFIX} are kept for ibb")
        if name.lower() in seen:
            raise PipelineError(f"column {name}: another one differs in its case alone")
        seen.add(name.lower())


def storable(rows: pa.Table) -> pa.Table:
    """Return *rows* with every column as a Delta table has it."""
    arrays = [_converted(rows.column(field.name), field.type) for field in rows.schema]
    return pa.table(arrays, names=rows.schema.names) if arrays else rows


def _converted(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    wanted = storable_type(kind)
    if kind == wanted:
        return column
    if pa.types.is_dictionary(kind):
        return _converted(column.cast(kind.value_type), kind.value_type)
    if pa.types.is_time(kind):
        kind = pa.time64("us")
        return column.cast(kind).cast(pa.int64())
    if pa.types.is_duration(kind):
        return column.cast(pa.duration("us")).cast(pa.int64())
    if pa.types.is_uint64(kind):
        return pc.cast(column, pa.decimal128(20, 0))
    return column.cast(wanted)
