"""
What a column's values are given as: the few forms that other systems know.

Source: docs/spark.md, "Types".
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from .column import INTEGER_BYTES, STRINGS, ColumnType
from .value_policy import NoDates, Times

if TYPE_CHECKING:
    from .table_layout import ColumnLayout
    from .value_policy import ValuePolicy

DECIMAL128_DIGITS_MAX: Final = 38
_UINT64_DIGITS: Final = 20


class Kind(Enum):
    """The forms by name."""

    BOOLEAN = "boolean"
    INTEGER = "integer"  # little-endian with sign, of `size` bytes
    FLOAT = "float"  # of `size` bytes
    DECIMAL = "decimal"  # 16 bytes, times 10 ** -`scale`
    DATE = "date"  # days since 1970, 4 bytes
    DATETIME = "datetime"  # microseconds since 1970 without time zone, 8 bytes
    TIMESTAMP = "timestamp"  # microseconds since 1970 in UTC, 8 bytes
    DURATION = "duration"  # microseconds, 8 bytes
    TEXT = "text"  # UTF-8
    BINARY = "binary"


class Form(NamedTuple):
    """
    One column's form.

    Args:
        kind: which.
        size: bytes of a value; 0 for those that differ, and for booleans.
        digits: of decimals.
        scale: of decimals.
    """

    kind: Kind
    size: int = 0
    digits: int = 0
    scale: int = 0


TEXT: Final = Form(Kind.TEXT)
BINARY: Final = Form(Kind.BINARY)
BIGINT: Final = Form(Kind.INTEGER, 8)
UINT64: Final = Form(Kind.DECIMAL, 16, _UINT64_DIGITS, 0)

_MOMENTS: Final = {
    ColumnType.DATE: Form(Kind.DATE, 4),
    ColumnType.NEWDATE: Form(Kind.DATE, 4),
    ColumnType.DATETIME: Form(Kind.DATETIME, 8),
    ColumnType.DATETIME2: Form(Kind.DATETIME, 8),
    ColumnType.TIMESTAMP: Form(Kind.TIMESTAMP, 8),
    ColumnType.TIMESTAMP2: Form(Kind.TIMESTAMP, 8),
}
_WIDER: Final = {1: 2, 2: 4, 3: 4, 4: 8}  # bytes that hold an integer without sign


def form_of(layout: ColumnLayout, policy: ValuePolicy) -> Form:
    """
    Return what the values of a column are given as.

    Unsigned integers take the next wider type with sign, as Spark has no others; those of 64 bits
    are decimals. Decimals of more than 38 digits are texts. ENUM and SET are texts where their
    labels are known, else numbers.
    """
    column = layout.column
    kind = column.type
    if kind in INTEGER_BYTES:
        size = INTEGER_BYTES[kind]
        if not layout.unsigned:
            return Form(Kind.INTEGER, 4 if size == 3 else size)
        return Form(Kind.INTEGER, _WIDER[size]) if size in _WIDER else UINT64
    if kind in _MOMENTS:
        return TEXT if policy.no_dates is NoDates.TEXT else _MOMENTS[kind]
    if kind in (ColumnType.TIME, ColumnType.TIME2):
        if policy.times is Times.TEXT:
            return TEXT
        return Form(Kind.DURATION, 8) if policy.times is Times.DURATION else BIGINT
    if kind in (ColumnType.FLOAT, ColumnType.DOUBLE):
        return Form(Kind.FLOAT, column.size)
    if kind is ColumnType.NEWDECIMAL:
        if column.length > DECIMAL128_DIGITS_MAX:
            return TEXT
        return Form(Kind.DECIMAL, 16, column.length, column.scale)
    if kind is ColumnType.YEAR:
        return Form(Kind.INTEGER, 2)
    if kind is ColumnType.BIT:
        if column.length == 1:
            return Form(Kind.BOOLEAN)
        return UINT64 if column.length == 64 else BIGINT
    if kind in (ColumnType.ENUM, ColumnType.SET):
        if layout.labels is not None:
            return TEXT
        return Form(Kind.INTEGER, 4) if kind is ColumnType.ENUM else UINT64
    is_text = layout.special or (kind in STRINGS and layout.charset not in (None, "binary"))
    return TEXT if is_text else BINARY
