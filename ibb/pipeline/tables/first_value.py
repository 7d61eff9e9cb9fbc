"""
What rows that are there have in a column that ALTER TABLE adds.

The server makes a value of the literal behind DEFAULT: it rounds numbers to the column's digits,
takes a label in the spelling of the type, reads 24 as the year 2024. Here a literal is taken only
where it is that value already.
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal, InvalidOperation
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Final
from uuid import UUID

import pyarrow as pa

from ibb.pipeline.ddl.column_types import base_type
from ibb.pipeline.ddl.cursor import UnclearError
from ibb.pipeline.ddl.type_change import DECIMALS, labels_of

if TYPE_CHECKING:
    from ibb.pipeline.ddl.column_definition import ColumnDefinition

_INTEGER: Final = re.compile(r"-?\d+")
_YEAR: Final = re.compile(r"\d{4}")
_ZERO: Final = re.compile(r"0+")
_DATE: Final = re.compile(r"\d{4}-?\d\d-?\d\d")
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d:\d\d(?:\.(\d{1,6}))?)?")
_SHOWN_NUMBER: Final = re.compile(r"-?[1-9]\d*(?:\.\d+)?|0(?:\.\d+)?")  # that a text has as it is
_DIGITS: Final = re.compile(r"\((\d+)\)")
_TEXTS: Final = ("char", "varchar", "text", "longtext", "mediumtext")


def first_value(definition: ColumnDefinition, kind: pa.DataType) -> object:
    """
    Return the value of a column with *definition*, of the type *kind* here, in rows of before.

    Raises:
        UnclearError: it is not certain.
    """
    if not definition.has_default and definition.nullable:
        return None
    text = definition.default
    try:
        found = _implicit(definition, kind) if text is None else _literal(definition, kind, text)
    except (ValueError, InvalidOperation, pa.ArrowInvalid) as error:
        raise UnclearError(f"column {definition.name} is new, with DEFAULT '{text}'") from error
    if found is None:
        raise UnclearError(f"column {definition.name} is new, of type {definition.type_text}")
    return found


def _implicit(definition: ColumnDefinition, kind: pa.DataType) -> object:
    """Return the value of a column that is NOT NULL and has no DEFAULT; None: not certain."""
    if pa.types.is_integer(kind):
        return 0
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(0), kind).as_py()
    if pa.types.is_floating(kind):
        return 0.0
    if pa.types.is_binary(kind) and base_type(definition.type_text).startswith("char"):
        return None  # as many bytes as it has
    return "" if definition.type_text.startswith(_TEXTS) else None


def _literal(definition: ColumnDefinition, kind: pa.DataType, text: str) -> object:
    """Return what the literal *text* is; None: there is no way to tell."""
    if pa.types.is_integer(kind):
        return _integer(definition, text)
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(text), kind).as_py()
    if pa.types.is_floating(kind):
        if "(" in definition.type_text:
            return None  # of so many digits
        return float(text) or 0.0  # of -0.0 the server makes 0
    if pa.types.is_string(kind):
        return _text(definition, text)
    if pa.types.is_date(kind):
        return dt.date.fromisoformat(_whole(_DATE, text)[0])
    if pa.types.is_timestamp(kind) and kind.tz is None:
        fraction = _whole(_MOMENT, text)[1] or ""
        digits = _DIGITS.search(definition.type_text)
        if len(fraction) > int(digits[1] if digits else 0):
            raise ValueError("the server drops digits of it")
        return dt.datetime.fromisoformat(text)
    return None


def _integer(definition: ColumnDefinition, text: str) -> int:
    name = base_type(definition.type_text)
    if name == "bit" and definition.is_quoted:
        raise ValueError("its bytes are the value")
    form = {"year": _YEAR, "time": _ZERO}.get(name, _INTEGER)
    return int(_whole(form, text)[0])


def _text(definition: ColumnDefinition, text: str) -> str | None:
    name = base_type(definition.type_text)
    if name in ("enum", "set"):
        parts = [text] if name == "enum" else text.split(",") if text else []
        same = [label for label in labels_of(definition.type_text) if label in parts]
        return text if same == parts and definition.is_quoted else None
    if name == "uuid":
        return text if str(UUID(text)) == text else None
    if name == "inet4":
        return str(IPv4Address(text))
    if name in ("inet6", "number", *DECIMALS):
        return None
    if not definition.is_quoted:
        return _whole(_SHOWN_NUMBER, text)[0]
    return text.rstrip(" ") if name in ("char", "character", "nchar") else text


def _whole(form: re.Pattern[str], text: str) -> re.Match[str]:
    match = form.fullmatch(text)
    if match is None:
        raise ValueError("the server makes another value of it")
    return match
