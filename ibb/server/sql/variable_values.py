"""Which values variables take and what types they have; some are cut with a warning."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

from ibb.protocol.character_sets import COLLATIONS, DEFAULT_COLLATIONS, NO_CLIENT_CHARSETS
from ibb.protocol.error_codes import (
    UNKNOWN_CHARACTER_SET,
    UNKNOWN_COLLATION,
    UNKNOWN_SYSTEM_VARIABLE,
    UNKNOWN_TIME_ZONE,
    WRONG_TYPE_FOR_VAR,
    WRONG_VALUE_FOR_VAR,
)
from ibb.protocol.result_set import ColumnType

from .system_variables import SQL_MODES, SYSTEM_VARIABLES, SystemVariable, VariableKind
from .time_zone import session_zone_of
from .types import Kind, SqlType, as_text, text_type

if TYPE_CHECKING:
    from .context import Context
    from .types import SqlValue

_USER_TEXT_CHARS: Final = 0xFFFFFF
_VARIABLE_DIGITS: Final = 21
_SWITCH_WORDS: Final = {"ON": 1, "TRUE": 1, "1": 1, "OFF": 0, "FALSE": 0, "0": 0}
_MICROSECOND: Final = Decimal("0.000001")


def find_variable(name: str) -> SystemVariable:
    """Return a system variable; raises SqlError 1193."""
    variable = SYSTEM_VARIABLES.get(name.lower())
    if variable is None:
        raise UNKNOWN_SYSTEM_VARIABLE.error(name)
    return variable


def system_variable_type(name: str, value: SqlValue) -> SqlType:
    """Return the type that SELECT declares for a system variable."""
    match find_variable(name).kind:
        case VariableKind.SWITCH:
            return SqlType(Kind.INTEGER, 1, nullable=True, wire=ColumnType.LONGLONG)
        case VariableKind.NUMBER:
            return SqlType(Kind.INTEGER, _VARIABLE_DIGITS, nullable=True, unsigned=True)
        case VariableKind.SECONDS:
            return SqlType(Kind.DOUBLE, _VARIABLE_DIGITS, 6, nullable=True)
    return text_type(len(as_text(value) or ""))


def user_variable_type(value: SqlValue) -> SqlType:
    """Return the type that SELECT declares for a user variable."""
    if isinstance(value, int):
        return SqlType(Kind.INTEGER, _VARIABLE_DIGITS - 1, nullable=True, wire=ColumnType.LONGLONG)
    if isinstance(value, Decimal):
        return SqlType(Kind.DECIMAL, 83, 38, nullable=True)
    if isinstance(value, float):
        return SqlType(Kind.DOUBLE, 23, 31, nullable=True)
    if value is None:
        return SqlType(
            Kind.BINARY, _USER_TEXT_CHARS + 1, 39, nullable=True, wire=ColumnType.LONG_BLOB
        )
    return SqlType(Kind.TEXT, _USER_TEXT_CHARS, nullable=True, wire=ColumnType.LONG_BLOB)


def shown_value(name: str, value: SqlValue) -> str:
    """Return *value* as SHOW VARIABLES has it: switches as ON and OFF, NULL as nothing."""
    if SYSTEM_VARIABLES[name].kind is VariableKind.SWITCH:
        return "ON" if value else "OFF"
    return as_text(value) or ""


def checked_value(
    name: str, variable: SystemVariable, value: SqlValue, context: Context
) -> SqlValue:
    """
    Return *value* as the variable takes it.

    Raises:
        SqlError: 1231 or 1232, it does not; 1115, 1273, 1298 there is no such thing.
    """
    shown = "NULL" if value is None else str(as_text(value))
    match variable.kind:
        case VariableKind.SWITCH:
            on = _SWITCH_WORDS.get(shown.upper())
            if on is None:
                raise WRONG_VALUE_FOR_VAR.error(name, shown)
            return on
        case VariableKind.NUMBER:
            if not isinstance(value, int):
                raise WRONG_TYPE_FOR_VAR.error(name)
            return int(_bounded(name, variable, value, context))
        case VariableKind.SECONDS:
            if not isinstance(value, int | float | Decimal):
                raise WRONG_TYPE_FOR_VAR.error(name)
            return Decimal(_bounded(name, variable, Decimal(value), context)).quantize(_MICROSECOND)
        case VariableKind.CHOICE:
            words = {word.upper(): word for word in variable.words}
            if isinstance(value, int) and 0 <= value < len(variable.words):
                return variable.words[value]
            if shown.upper() not in words:
                raise WRONG_VALUE_FOR_VAR.error(name, shown)
            return words[shown.upper()]
    if value is None and name.lower() == "character_set_results":
        return None
    if value is None:
        raise WRONG_VALUE_FOR_VAR.error(name, shown)
    return _checked_text(name, shown)


def _bounded(
    name: str, variable: SystemVariable, value: int | Decimal, context: Context
) -> int | Decimal:
    bounded = max(variable.least, min(value, variable.most))
    if bounded != value:
        text = f"Truncated incorrect {name} value: '{value}'"
        context.diagnostics.add("Warning", 1292, text)
    return bounded


def _checked_text(name: str, text: str) -> str:
    match name.lower():
        case "sql_mode":
            modes = [word for word in text.split(",") if word]
            wrong = [mode for mode in modes if mode.upper() not in SQL_MODES]
            if wrong:
                raise WRONG_VALUE_FOR_VAR.error(name, wrong[0])
            return ",".join(dict.fromkeys(map(str.upper, modes)))
        case "time_zone":
            try:
                session_zone_of(text)
            except ValueError:
                raise UNKNOWN_TIME_ZONE.error(text) from None
        case own if own.startswith("collation_"):
            if text.lower() not in COLLATIONS:
                raise UNKNOWN_COLLATION.error(text)
            return text.lower()
        case own if own.startswith("character_set_"):
            if text.lower() not in DEFAULT_COLLATIONS and text.lower() not in NO_CLIENT_CHARSETS:
                raise UNKNOWN_CHARACTER_SET.error(text)
            return text.lower()
    return text
