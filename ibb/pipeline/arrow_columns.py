"""Columns of rows as Arrow arrays, without a copy of their buffers, and the types they have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from ibb.protocol.rows.column_form import Kind

if TYPE_CHECKING:
    from ibb.protocol.rows.column_form import Form
    from ibb.protocol.rows.column_reader import ColumnBuffers

_INTEGERS: Final = {1: pa.int8(), 2: pa.int16(), 4: pa.int32(), 8: pa.int64()}
_FLOATS: Final = {4: pa.float32(), 8: pa.float64()}
_OTHERS: Final = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.DATE: pa.date32(),
    Kind.DATETIME: pa.timestamp("us"),
    Kind.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    Kind.DURATION: pa.duration("us"),
    Kind.TEXT: pa.string(),
    Kind.BINARY: pa.binary(),
}


def arrow_type(form: Form) -> pa.DataType:
    """Return the Arrow type of a form; Spark knows each of them."""
    if form.kind is Kind.INTEGER:
        return _INTEGERS[form.size]
    if form.kind is Kind.FLOAT:
        return _FLOATS[form.size]
    if form.kind is Kind.DECIMAL:
        return pa.decimal128(form.digits, form.scale)
    return _OTHERS[form.kind]


def arrow_array(column: ColumnBuffers) -> pa.Array:
    """Return a column as an array that keeps the column's buffers alive."""
    buffers = [None if column.validity is None else pa.py_buffer(column.validity)]
    if column.offsets is not None:
        buffers.append(pa.py_buffer(column.offsets))
    buffers.append(pa.py_buffer(column.values))
    return pa.Array.from_buffers(arrow_type(column.form), column.rows, buffers, column.nulls)
