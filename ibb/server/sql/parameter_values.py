"""Parameters of prepared statements as values of SQL."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from .types import (
    DATE_CHARS,
    DATETIME_CHARS,
    MICROSECOND_DECIMALS,
    TIME_CHARS,
    Kind,
    SqlType,
    Typed,
    decimal_type,
    text_type,
)

if TYPE_CHECKING:
    from ibb.protocol.prepared_statement import ParameterValue


def typed_parameter(value: ParameterValue) -> Typed:
    """Return a parameter's value with the type that MariaDB takes it for."""
    match value:
        case None:
            return Typed(None, SqlType(Kind.NULL, 0, nullable=True))
        case int():
            return Typed(value, SqlType(Kind.INTEGER, 21))
        case float():
            return Typed(value, SqlType(Kind.DOUBLE, 23, 31))
        case bytes():
            return Typed(value, SqlType(Kind.BINARY, len(value)))
        case Decimal():
            exponent = value.as_tuple().exponent
            assert isinstance(exponent, int)  # what is no number was refused when it was read
            decimals = max(0, -exponent)
            return Typed(value, decimal_type(max(len(value.as_tuple().digits), decimals), decimals))
        case datetime():
            decimals = MICROSECOND_DECIMALS if value.microsecond else 0
            return Typed(value, SqlType(Kind.DATETIME, DATETIME_CHARS, decimals))
        case date():
            return Typed(value, SqlType(Kind.DATE, DATE_CHARS))
        case timedelta():
            decimals = MICROSECOND_DECIMALS if value.microseconds else 0
            return Typed(value, SqlType(Kind.TIME, TIME_CHARS, decimals))
    return Typed(value, text_type(len(value), nullable=False))
