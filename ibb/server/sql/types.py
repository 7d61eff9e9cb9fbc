"""
What kind of value an expression has, and how a result set declares it.

Lengths are in characters or digits as MariaDB derives them: clients size their buffers by them.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from enum import Enum
from math import isinf
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from ibb.protocol.character_sets import decoded
from ibb.protocol.error_codes import ILLEGAL_VALUE_FOR_TYPE
from ibb.protocol.result_set import DECIMALS_NOT_FIXED, Column, ColumnFlag, ColumnType

if TYPE_CHECKING:
    from collections.abc import Iterable

_LENGTH_MAX: Final = (1 << 30) - 1  # in characters, of up to four bytes
_DOUBLE_MAX: Final = sys.float_info.max
_NUMBER: Final = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)", re.ASCII)

SqlValue: TypeAlias = int | Decimal | float | str | bytes | datetime | date | timedelta | None

LONG_DIGITS_MAX: Final = 9  # a wider integer is a LONGLONG
DOUBLE_DIGITS: Final = 23
DOUBLE_DECIMALS: Final = 31  # "not fixed" of a floating-point number
NUMBER_DIGITS: Final = 21
DATETIME_CHARS: Final = 19
DATE_CHARS: Final = 10
TIME_CHARS: Final = 10
MICROSECOND_DECIMALS: Final = 6
DIVISION_DECIMALS: Final = 4  # div_precision_increment
DECIMALS_MAX: Final = 38
PRECISION_MAX: Final = 65
EXACT: Final = Context(prec=4 * PRECISION_MAX)  # room for what is rounded to fewer digits behind


class Kind(Enum):
    """The kinds of values, the later winning over the earlier where numbers meet."""

    NULL = 0
    INTEGER = 1
    DECIMAL = 2
    DOUBLE = 3
    TEXT = 4
    BINARY = 5
    DATETIME = 6
    DATE = 7
    TIME = 8


_TEMPORAL: Final = {
    Kind.DATETIME: (ColumnType.DATETIME, DATETIME_CHARS),
    Kind.DATE: (ColumnType.DATE, DATE_CHARS),
    Kind.TIME: (ColumnType.TIME, TIME_CHARS),
}


@dataclass(frozen=True, slots=True)
class SqlType:
    """
    A type.

    Attributes:
        length: characters, or digits with sign and point.
        decimals: digits behind the point.
        wire: type on the wire where it does not follow from the kind.
        signed_digits: of an integer: *length* counts a sign.
    """

    kind: Kind
    length: int
    decimals: int = 0
    nullable: bool = False
    unsigned: bool = False
    wire: ColumnType | None = None
    signed_digits: bool = True

    @property
    def precision(self) -> int:
        """Digits without sign and point."""
        if self.kind is Kind.DECIMAL:
            return self.length - (not self.unsigned) - (self.decimals > 0)
        if self.kind is Kind.INTEGER:
            return max(1, self.length - (self.signed_digits and not self.unsigned))
        return self.length

    @property
    def whole_digits(self) -> int:
        """Digits before the point."""
        return self.precision - self.decimals

    def or_null(self, nullable: bool = True) -> SqlType:
        """Return the type with NULL allowed if *nullable*."""
        return replace(self, nullable=self.nullable or nullable)

    def column(self, name: str, collation: int) -> Column:
        """Return the definition of a column of this type; texts are in *collation*."""
        if self.length > _LENGTH_MAX:
            return replace(self, length=_LENGTH_MAX).column(name, collation)
        not_null = ColumnFlag(0) if self.nullable else ColumnFlag.NOT_NULL_FLAG
        number = not_null | ColumnFlag.BINARY_FLAG
        if self.unsigned:
            number |= ColumnFlag.UNSIGNED_FLAG
        match self.kind:
            case Kind.NULL:
                return Column(name, self.wire or ColumnType.NULL, self.length, 0x80)
            case Kind.INTEGER:
                wide = self.length > LONG_DIGITS_MAX + self.signed_digits
                type_ = self.wire or (ColumnType.LONGLONG if wide else ColumnType.LONG)
                return Column(name, type_, self.length, number)
            case Kind.DECIMAL:
                type_ = ColumnType.NEWDECIMAL
                return Column(name, type_, self.length, number, decimals=self.decimals)
            case Kind.DOUBLE:
                type_ = ColumnType.DOUBLE
                return Column(name, type_, self.length, number, decimals=self.decimals)
            case Kind.BINARY:
                type_ = self.wire or ColumnType.VAR_STRING
                return Column(name, type_, self.length, number, decimals=self.decimals)
            case Kind.TEXT:
                made = Column.text(name, self.length, collation=collation, nullable=self.nullable)
                decimals = DECIMALS_NOT_FIXED if self.decimals == 0 else self.decimals - 1
                return replace(made, type=self.wire or ColumnType.VAR_STRING, decimals=decimals)
        type_, length = _TEMPORAL[self.kind]
        length += self.decimals + 1 if self.decimals else 0
        return Column(name, type_, length, number, decimals=self.decimals)


class Typed(NamedTuple):
    """A value and its type."""

    value: SqlValue
    type: SqlType


NULL_TYPE: Final = SqlType(Kind.NULL, 0, nullable=True)
NULL: Final = Typed(None, NULL_TYPE)
BOOLEAN: Final = SqlType(Kind.INTEGER, 1, signed_digits=False)
DOUBLE: Final = SqlType(Kind.DOUBLE, DOUBLE_DIGITS, DOUBLE_DECIMALS)
UNSIGNED_WORD: Final = SqlType(Kind.INTEGER, NUMBER_DIGITS, unsigned=True)
PLAIN_DECIMALS: Final = 1  # of a TEXT type: declared as 0 decimals instead of "not fixed"


def text_type(characters: int, *, nullable: bool = True) -> SqlType:
    """Return the type of a text of at most so many characters."""
    return SqlType(Kind.TEXT, characters, nullable=nullable)


def integer_type(digits: int, *, nullable: bool = False) -> SqlType:
    """Return the type of a signed integer of so many digits, its sign not counted."""
    return SqlType(Kind.INTEGER, digits + 1, nullable=nullable)


def decimal_type(precision: int, decimals: int, *, nullable: bool = False) -> SqlType:
    """Return the type of a signed decimal number."""
    decimals = min(decimals, DECIMALS_MAX)
    precision = min(max(precision, decimals, 1), PRECISION_MAX)
    return SqlType(Kind.DECIMAL, precision + 1 + (decimals > 0), decimals, nullable)


def merged(types: Iterable[SqlType], *, nullable: bool | None = None) -> SqlType:
    """
    Return the type of whichever of several values it will be: IF, COALESCE, CASE, GREATEST.

    Args:
        types: of the values.
        nullable: whether it may be NULL; None: if one of them may.
    """
    every = list(types)
    null = any(one.nullable for one in every) if nullable is None else nullable
    known = [one for one in every if one.kind is not Kind.NULL]
    if not known:
        return NULL_TYPE
    kinds = {one.kind for one in known}
    if kinds == {Kind.INTEGER}:
        if len(known) == 1 and len(every) == 1:
            return replace(known[0], nullable=null)
        if all(one.unsigned for one in known):
            longest = max(known, key=lambda one: one.length)
            return replace(longest, nullable=null)
        if any(one.unsigned for one in known):  # no integer holds both
            return decimal_type(max(one.precision for one in known), 0, nullable=null)
        return integer_type(max(one.precision for one in known), nullable=null)
    if kinds <= {Kind.INTEGER, Kind.DECIMAL}:
        decimals = max(one.decimals for one in known)
        return decimal_type(
            max(one.whole_digits for one in known) + decimals, decimals, nullable=null
        )
    if kinds <= {Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE}:
        return replace(DOUBLE, nullable=null)
    if len(kinds) == 1 and Kind.TEXT not in kinds:
        return replace(known[0], nullable=null)
    return text_type(max(one.length for one in known), nullable=null)


def as_text(value: SqlValue, decimals: int = 0) -> str | None:
    """Return *value* as SQL writes it, with *decimals* of a moment, and of a DOUBLE below 31."""
    match value:
        case None | str():
            return value
        case bytes():
            return decoded(value, "utf8mb4")
        case datetime():
            return f"{value:%Y-%m-%d %H:%M:%S}{_fraction(value.microsecond, decimals)}"
        case date():
            return value.isoformat()
        case timedelta():
            seconds, micros = divmod(abs(value), timedelta(seconds=1))
            sign = "-" if value < timedelta() else ""
            text = f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
            return text + _fraction(micros.microseconds, decimals)
        case float():
            if 0 < decimals < DOUBLE_DECIMALS:
                return f"{value:.{decimals}f}"
            whole = value.is_integer() and abs(value) < 1e15
            return str(int(value)) if whole else repr(value).replace("e+", "e")
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _fraction(microseconds: int, decimals: int) -> str:
    """Return the digits behind a moment's seconds: *decimals*, or all where there are some."""
    if not decimals:
        return f".{microseconds:06}" if microseconds else ""
    return f".{microseconds:06}"[: decimals + 1]


def as_number(value: SqlValue) -> int | Decimal | float | None:
    """Return *value* as a number as SQL does: a text counts as far as it is one, else as 0."""
    match value:
        case None | int() | Decimal() | float():
            return value
        case datetime():
            whole = f"{value:%Y%m%d%H%M%S}"
            return Decimal(f"{whole}.{value.microsecond:06}") if value.microsecond else int(whole)
        case date():
            return int(value.strftime("%Y%m%d"))
        case timedelta():
            seconds = int(value.total_seconds())
            return seconds // 3600 * 10000 + seconds // 60 % 60 * 100 + seconds % 60
    text = as_text(value)
    assert text is not None
    return leading_number(text)[0]


def leading_number(text: str) -> tuple[float, bool]:
    """Return the number that *text* begins with, and whether that is all of it."""
    found = _NUMBER.match(text)
    if found is None:
        return 0.0, False
    number = max(-_DOUBLE_MAX, min(_DOUBLE_MAX, float(found[1])))
    return number, not text[found.end() :].strip()


def quantized(number: Decimal, decimals: int, rounding: str) -> Decimal:
    """Return *number* with so many decimals; raises decimal.InvalidOperation far out of range."""
    return number.quantize(Decimal(1).scaleb(-decimals), rounding, EXACT)


def number_as_written(text: str, *, negative: bool = False) -> Typed:
    """Return a number as written, with the type that MariaDB gives it."""
    if "e" in text.lower():
        value = float(text) * (-1 if negative else 1)
        if isinf(value):
            raise ILLEGAL_VALUE_FOR_TYPE.error("double", text)
        return Typed(value, SqlType(Kind.DOUBLE, len(text) + negative, DOUBLE_DECIMALS))
    if "." in text or len(text) > 20 or int(text) >= 1 << 64:
        whole, _, fraction = text.partition(".")
        whole = whole if len(whole) < PRECISION_MAX else whole.lstrip("0") or "0"
        fraction = fraction[:DECIMALS_MAX]
        if len(whole) > PRECISION_MAX:  # MariaDB takes its greatest number, too
            whole, fraction = "9" * PRECISION_MAX, ""
        exact = Decimal(f"{'-' * negative}{whole or 0}.{fraction}")
        return Typed(exact, decimal_type(len(whole) + len(fraction), len(fraction)))
    if negative:
        return Typed(-int(text), SqlType(Kind.INTEGER, len(text) + 1))
    unsigned = int(text) >= 1 << 63
    type_ = SqlType(Kind.INTEGER, len(text), unsigned=unsigned, signed_digits=False)
    return Typed(int(text), type_)
