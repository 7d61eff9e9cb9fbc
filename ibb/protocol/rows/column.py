"""
One column as a table map describes it: its type, and how many bytes a value takes.

A value is of a fixed size, or stands behind its length in 1 to 4 bytes; nothing else is needed
to find one's way through a row. CHAR, ENUM and SET share one type code in the table map and are
told apart here.
Source: dump-protocol 4.9b, and what MariaDB 10.11 and 11.8 write.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.errors import FormatError

if TYPE_CHECKING:
    from ibb.protocol.fields import FieldReader

DECIMAL_DIGITS_MAX: Final = 65
DECIMAL_SCALE_MAX: Final = 38
FRACTION_DIGITS_MAX: Final = 6  # of a second
BIT_LENGTH_MAX: Final = 64

# Bytes that so many digits take in a decimal.
DIGIT_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


class ColumnType(IntEnum):
    """Type codes of columns, by their names in MariaDB."""

    DECIMAL = 0
    TINY = 1
    SHORT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    NULL = 6
    TIMESTAMP = 7
    LONGLONG = 8
    INT24 = 9
    DATE = 10
    TIME = 11
    DATETIME = 12
    YEAR = 13
    NEWDATE = 14
    VARCHAR = 15
    BIT = 16
    TIMESTAMP2 = 17
    DATETIME2 = 18
    TIME2 = 19
    BLOB_COMPRESSED = 140
    VARCHAR_COMPRESSED = 141
    JSON = 245  # MySQL's own; JSON of MariaDB is a text
    NEWDECIMAL = 246
    ENUM = 247
    SET = 248
    TINY_BLOB = 249
    MEDIUM_BLOB = 250
    LONG_BLOB = 251
    BLOB = 252
    VAR_STRING = 253
    STRING = 254
    GEOMETRY = 255


INTEGER_BYTES: Final = {
    ColumnType.TINY: 1,
    ColumnType.SHORT: 2,
    ColumnType.INT24: 3,
    ColumnType.LONG: 4,
    ColumnType.LONGLONG: 8,
}
# Moments of before MariaDB 10.1, or with mysql56_temporal_format=OFF: with a fraction they are
# longer, and the table map does not say it.
OLD_MOMENTS: Final = frozenset({ColumnType.TIMESTAMP, ColumnType.DATETIME, ColumnType.TIME})
COMPRESSED: Final = frozenset({ColumnType.BLOB_COMPRESSED, ColumnType.VARCHAR_COMPRESSED})
# Types whose values are bytes of a character set, or just bytes, in the order of optional metadata.
STRINGS: Final = COMPRESSED | {
    ColumnType.VARCHAR,
    ColumnType.VAR_STRING,
    ColumnType.STRING,
    ColumnType.TINY_BLOB,
    ColumnType.MEDIUM_BLOB,
    ColumnType.LONG_BLOB,
    ColumnType.BLOB,
}
_WITHOUT_METADATA: Final = {
    **INTEGER_BYTES,
    ColumnType.NULL: 0,
    ColumnType.TIMESTAMP: 4,
    ColumnType.DATE: 3,
    ColumnType.TIME: 3,
    ColumnType.DATETIME: 8,
    ColumnType.YEAR: 1,
    ColumnType.NEWDATE: 3,
}
_WHOLE_BYTES: Final = {  # of moments with a fraction, without it
    ColumnType.TIMESTAMP2: 4,
    ColumnType.DATETIME2: 5,
    ColumnType.TIME2: 3,
}
_BLOBS: Final = frozenset(
    {ColumnType.BLOB, ColumnType.GEOMETRY, ColumnType.BLOB_COMPRESSED}
    | {ColumnType.TINY_BLOB, ColumnType.MEDIUM_BLOB, ColumnType.LONG_BLOB}
)
_STRING_TYPES: Final = frozenset({ColumnType.STRING, ColumnType.ENUM, ColumnType.SET})


class Column(NamedTuple):
    """
    What the type byte and the metadata of a column say.

    Args:
        type: STRING only where it is neither ENUM nor SET.
        size: bytes of a value; 0 where `prefix` is not.
        prefix: bytes of the length in front of a value, 0 to 4.
        length: of strings the most bytes, of decimals the digits, of BIT the bits.
        scale: of decimals the digits behind the point, of moments those of the second.
    """

    type: ColumnType
    size: int
    prefix: int
    length: int
    scale: int

    @property
    def skip(self) -> int:
        """Bytes of a value if not negative; else minus the bytes of its length."""
        return -self.prefix if self.prefix else self.size


def read_column(code: int, metadata: FieldReader) -> Column:
    """
    Read what *metadata* has of the next column, which has the type byte *code*.

    Raises:
        FormatError: an unknown type, or metadata that no server writes.
    """
    start = metadata.offset
    try:
        kind = ColumnType(code)
    except ValueError:
        raise FormatError(f"column type {code} is unknown") from None
    if kind is ColumnType.JSON:
        raise FormatError("a column of MySQL's binary JSON, which MariaDB does not know")
    if kind in _WITHOUT_METADATA:
        return Column(kind, _WITHOUT_METADATA[kind], 0, 0, 0)
    if kind in _BLOBS:
        column = _with_prefix(kind, metadata.u8(), 0)
    elif kind in (ColumnType.VARCHAR, ColumnType.VARCHAR_COMPRESSED):
        length = metadata.u16()
        column = _with_prefix(kind, 1 if length < 1 << 8 else 2, length)
    elif kind in (ColumnType.FLOAT, ColumnType.DOUBLE):
        column = Column(kind, metadata.u8(), 0, 0, 0)
        if column.size != (4 if kind is ColumnType.FLOAT else 8):
            column = None
    elif kind in _WHOLE_BYTES:
        column = _moment(kind, metadata.u8())
    elif kind is ColumnType.NEWDECIMAL:
        column = _decimal(metadata.u8(), metadata.u8())
    elif kind is ColumnType.BIT:
        bits = metadata.u8() + 8 * metadata.u8()
        ok = 0 < bits <= BIT_LENGTH_MAX
        column = Column(kind, (bits + 7) // 8, 0, bits, 0) if ok else None
    elif kind is ColumnType.STRING:
        column = _string(metadata.u8(), metadata.u8())
    else:  # DECIMAL of MySQL 4, VAR_STRING, ENUM and SET, which come as STRING
        raise FormatError(f"column type {kind.name} does not occur in table maps of MariaDB")
    if column is None:
        raise FormatError(f"metadata of a {kind.name} column makes no sense", offset=start)
    return column


def _with_prefix(kind: ColumnType, prefix: int, length: int) -> Column | None:
    return Column(kind, 0, prefix, length, 0) if 1 <= prefix <= 4 else None


def _moment(kind: ColumnType, digits: int) -> Column | None:
    if digits > FRACTION_DIGITS_MAX:
        return None
    return Column(kind, _WHOLE_BYTES[kind] + (digits + 1) // 2, 0, 0, digits)


def _decimal(digits: int, scale: int) -> Column | None:
    if not (0 < digits <= DECIMAL_DIGITS_MAX and scale <= min(digits, DECIMAL_SCALE_MAX)):
        return None
    whole = digits - scale
    size = 4 * (whole // 9 + scale // 9) + DIGIT_BYTES[whole % 9] + DIGIT_BYTES[scale % 9]
    return Column(ColumnType.NEWDECIMAL, size, 0, digits, scale)


def _string(first: int, second: int) -> Column | None:
    """Tell CHAR, ENUM and SET apart: the length has two more bits, turned, in the type's byte."""
    code, length = first | 0x30, second | ((first & 0x30) ^ 0x30) << 4
    if code not in _STRING_TYPES:
        return None
    kind = ColumnType(code)
    if kind is ColumnType.STRING:
        return Column(kind, 0, 1 if length < 1 << 8 else 2, length, 0)
    if not 1 <= length <= (2 if kind is ColumnType.ENUM else 8):
        return None
    return Column(kind, length, 0, 0, 0)
