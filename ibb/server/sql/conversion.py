"""Values of one type as another: CAST, and moments moved by an interval."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Final

from ibb.protocol.character_sets import BYTE_OF_NONE, decoded, encoded
from ibb.protocol.error_codes import INVALID_CHARACTER_STRING
from ibb.protocol.result_set import DECIMALS_NOT_FIXED, ColumnType

from .functions_time import moment_of
from .types import (
    DATE_CHARS,
    DOUBLE,
    PLAIN_DECIMALS,
    Kind,
    SqlType,
    Typed,
    as_number,
    as_text,
    decimal_type,
    quantized,
    text_type,
)

if TYPE_CHECKING:
    from .context import Context
    from .expressions import Cast
    from .types import SqlValue

_WORD: Final = 1 << 64
_WRONG_BYTES_SHOWN: Final = 6
_DAYS: Final = {"DAY": 1, "WEEK": 7}
_SECONDS: Final = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600}
_MONTHS: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def moved(start: Typed, amount: SqlValue, unit: str) -> Typed:
    """Return a moment plus so many units of time; NULL where that is none."""
    number = as_number(amount)
    kind = start.type.kind if start.type.kind in (Kind.DATETIME, Kind.DATE) else Kind.TEXT
    decimals = start.type.decimals if kind is Kind.DATETIME else 0
    type_ = SqlType(kind, 19, decimals, nullable=True)
    if kind is Kind.TEXT:
        type_ = replace(type_, decimals=PLAIN_DECIMALS, wire=ColumnType.STRING)
    moment = moment_of(start.value)
    if moment is None or number is None:
        return Typed(None, type_)
    try:
        later = _shifted(moment, int(number), unit)
    except (OverflowError, ValueError):
        return Typed(None, type_)
    if kind is Kind.DATETIME:
        return Typed(later, type_)
    whole_days = unit in _DAYS or unit in _MONTHS
    is_day = whole_days and kind is Kind.TEXT and len(as_text(start.value) or "") <= DATE_CHARS
    return Typed(as_text(later.date() if is_day else later), type_)


def _shifted(moment: datetime, count: int, unit: str) -> datetime:
    if unit in _DAYS:
        return moment + timedelta(days=count * _DAYS[unit])
    if unit in _SECONDS:
        return moment + timedelta(seconds=count * _SECONDS[unit])
    if unit == "MICROSECOND":
        return moment + timedelta(microseconds=count)
    months = moment.year * 12 + moment.month - 1 + count * _MONTHS[unit]
    for day in (moment.day, 30, 29, 28):
        try:
            return moment.replace(year=months // 12, month=months % 12 + 1, day=day)
        except ValueError:
            if day == 28:
                raise
    return moment


def as_bytes(data: bytes) -> Typed:
    """Return bytes as a literal in the character set binary."""
    return Typed(data, SqlType(Kind.BINARY, len(data), DECIMALS_NOT_FIXED))


def _introduced(value: SqlValue, charset: str, context: Context) -> Typed:
    """Return the literal behind `_charset`: what its bytes mean there."""
    sent = context.variables.charsets.of_statements
    data = value if isinstance(value, bytes) else encoded(as_text(value) or "", sent)
    if charset == "binary":
        return as_bytes(data)
    text = decoded(data, charset)
    stray = BYTE_OF_NONE.search(text)
    if stray is not None and charset != "ascii":
        wrong = encoded(text[stray.start() :], charset)[:_WRONG_BYTES_SHOWN]
        raise INVALID_CHARACTER_STRING.error(charset, wrong.hex().upper())
    return Typed(text, text_type(len(text), nullable=False))


def converted(cast: Cast, typed: Typed, context: Context) -> Typed:
    """Return *typed* as CAST wants it."""
    value, nullable = typed.value, typed.type.nullable
    if cast.target.startswith("_"):
        return _introduced(value, cast.target[1:], context)
    text = as_text(value, typed.type.decimals)
    match cast.target:
        case "CHAR":
            length = cast.sizes[0] if cast.sizes else max(typed.type.length, 1)
            type_ = replace(text_type(length), decimals=PLAIN_DECIMALS)
            return Typed(None if text is None else text[:length], type_)
        case "TEXT":
            return Typed(text, text_type(typed.type.length))
        case "BINARY":
            data = None if text is None else context.literal_bytes(text)
            return Typed(data, SqlType(Kind.BINARY, typed.type.length, nullable=True))
        case "SIGNED" | "INTEGER" | "INT" | "UNSIGNED":
            number = context.number(value) if typed.type.kind is Kind.TEXT else as_number(value)
            unsigned = cast.target == "UNSIGNED"
            length = 20 if unsigned else max(typed.type.length, 1)
            type_ = SqlType(Kind.INTEGER, length, nullable=nullable, unsigned=unsigned)
            if number is None:
                return Typed(None, type_)
            bounded = max(-_WORD >> 1, min(number, _WORD - 1 if unsigned else (_WORD >> 1) - 1))
            whole = int(quantized(Decimal(bounded), 0, ROUND_HALF_UP))
            return Typed(whole % _WORD if unsigned else whole, type_)
        case "DECIMAL":
            precision, decimals = (
                (*cast.sizes, 10, 0)[:2]
                if len(cast.sizes) != 1
                else (
                    cast.sizes[0],
                    0,
                )
            )
            type_ = decimal_type(precision, decimals, nullable=nullable)
            number = as_number(value)
            if number is None:
                return Typed(None, type_)
            most = Decimal((0, (9,) * max(precision, 1), -decimals))
            bounded = max(most.copy_negate(), min(Decimal(str(number)), most))
            return Typed(quantized(bounded, decimals, ROUND_HALF_UP), type_)
        case "DOUBLE":
            number = as_number(value)
            return Typed(None if number is None else float(number), DOUBLE.or_null(nullable))
    moment = moment_of(value)
    if cast.target == "DATETIME":
        return Typed(moment, SqlType(Kind.DATETIME, 19, nullable=True))
    if cast.target == "DATE":
        day = None if moment is None else moment.date()
        return Typed(day, SqlType(Kind.DATE, 10, nullable=True))
    time = None if moment is None else moment - datetime.combine(moment.date(), datetime.min.time())
    return Typed(time, SqlType(Kind.TIME, 10, nullable=True))
