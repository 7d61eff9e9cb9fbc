"""The functions that clients call: their values, and the types that MariaDB declares for them."""

from __future__ import annotations

import random
import uuid
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from ibb.protocol.error_codes import (
    DATA_OUT_OF_RANGE,
    NOT_SUPPORTED_YET,
    SP_DOES_NOT_EXIST,
    WRONG_PARAMCOUNT_TO_NATIVE_FCT,
)
from ibb.protocol.result_set import ColumnType

from .expressions import COUNT_DISTINCT
from .functions_binlog import BINLOG_FUNCTIONS
from .functions_text import TEXT_FUNCTIONS
from .functions_time import TIME_FUNCTIONS
from .native_functions import NATIVE_FUNCTIONS
from .types import (
    BOOLEAN,
    DOUBLE,
    Kind,
    SqlType,
    Typed,
    as_number,
    as_text,
    decimal_type,
    integer_type,
    merged,
    quantized,
    text_type,
)
from .wait import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .context import Context
    from .expressions import Call, Expression
    from .types import SqlValue

_Arguments: TypeAlias = "Sequence[Typed]"
USER_CHARS: Final = 384
ROLE_CHARS: Final = 128
_ELSEWHERE: Final = ("COUNT", "MOD")  # those that are no calls for long
DATABASE_CHARS: Final = 64
_ROWS: Final = SqlType(Kind.INTEGER, 21)
_WHOLE_DOUBLE_DIGITS: Final = 17
_PI: Final = 3.141592653589793


class _Function(NamedTuple):
    """A function: fewest and most arguments, and what computes it."""

    least: int
    most: int
    compute: Callable[[Context, _Arguments], Typed]


def is_offered(name: str) -> bool:
    """Tell whether a function is here, or none of MariaDB's."""
    upper = name.upper()
    return upper in _FUNCTIONS or upper in _ELSEWHERE or upper not in NATIVE_FUNCTIONS


def call(wanted: Call, context: Context, evaluate: Callable[[Expression, Context], Typed]) -> Typed:
    """
    Return what a function gives.

    Raises:
        SqlError: 1305 no such function, 1235 MariaDB has it, 1582 too few or too many arguments.
    """
    name = wanted.name.upper()
    function = _FUNCTIONS.get(name)
    if function is None and (name in NATIVE_FUNCTIONS or name == COUNT_DISTINCT):
        raise NOT_SUPPORTED_YET.error(f"{name}()")
    if function is None:
        shown = wanted.name
        if context.database and "." not in shown:
            shown = f"{context.database}.{shown}"
        raise SP_DOES_NOT_EXIST.error("FUNCTION", shown)
    if not function.least <= len(wanted.arguments) <= function.most:
        raise WRONG_PARAMCOUNT_TO_NATIVE_FCT.error(wanted.name)
    arguments = [evaluate(argument, context) for argument in wanted.arguments]
    try:
        return function.compute(context, arguments)
    except ArithmeticError:
        raise DATA_OUT_OF_RANGE.error("DOUBLE", f"{name}()") from None


def _if(_: Context, arguments: _Arguments) -> Typed:
    condition = as_number(arguments[0].value)
    chosen = arguments[1] if condition else arguments[2]
    return Typed(chosen.value, merged([arguments[1].type, arguments[2].type]))


def _coalesce(_: Context, arguments: _Arguments) -> Typed:
    nullable = all(argument.type.nullable for argument in arguments)
    type_ = merged([argument.type for argument in arguments], nullable=nullable)
    present = [argument.value for argument in arguments if argument.value is not None]
    return Typed(present[0] if present else None, type_)


def _nullif(_: Context, arguments: _Arguments) -> Typed:
    first, second = (argument.value for argument in arguments)
    return Typed(None if first == second else first, arguments[0].type.or_null())


def _extreme(choose: Callable[[Any], Any]) -> Callable[[Context, _Arguments], Typed]:
    def compute(_: Context, arguments: _Arguments) -> Typed:
        type_ = merged([argument.type for argument in arguments])
        values = [argument.value for argument in arguments]
        if None in values:
            return Typed(None, type_.or_null())
        if type_.kind is Kind.TEXT:
            values = [as_text(value) for value in values]
        chosen: SqlValue = choose(values)
        return Typed(chosen, type_)

    return compute


def _abs(_: Context, arguments: _Arguments) -> Typed:
    number = as_number(arguments[0].value)
    if number is not None and number < 0:
        number = -number
    return Typed(number, arguments[0].type)


def _rounded(rounding: str) -> Callable[[Context, _Arguments], Typed]:
    """Return FLOOR or CEIL."""

    def compute(_: Context, arguments: _Arguments) -> Typed:
        number = as_number(arguments[0].value)
        given = arguments[0].type
        type_ = integer_type(given.whole_digits + 1, nullable=given.nullable)
        if given.kind is Kind.INTEGER:
            type_ = given
        elif given.kind is not Kind.DECIMAL:
            type_ = SqlType(Kind.DOUBLE, _WHOLE_DOUBLE_DIGITS, nullable=given.nullable)
        if number is None:
            return Typed(None, type_)
        return Typed(int(Decimal(str(number)).to_integral_value(rounding)), type_)

    return compute


def _round(_: Context, arguments: _Arguments) -> Typed:
    number, given = as_number(arguments[0].value), arguments[0].type
    wanted = as_number(arguments[1].value) if len(arguments) > 1 else 0
    decimals = int(wanted or 0)
    if given.kind is Kind.INTEGER:
        return Typed(number, given)
    kept = max(min(decimals, given.decimals), 0)
    type_ = decimal_type(given.whole_digits + (kept < given.decimals) + kept, kept)
    type_ = replace(type_, nullable=given.nullable)
    if number is None:
        return Typed(None, type_)
    exact = quantized(Decimal(str(number)), kept, ROUND_HALF_UP)
    return Typed(exact, type_) if given.kind is Kind.DECIMAL else Typed(float(exact), DOUBLE)


def _sleep(context: Context, arguments: _Arguments) -> Typed:
    seconds = as_number(arguments[0].value)
    if seconds is not None and seconds > 0:
        wait_for(context, ("SLEEP",), None, float(seconds))
    return Typed(0, BOOLEAN.or_null(arguments[0].type.nullable))


def _uuid(_: Context, __: _Arguments) -> Typed:
    return Typed(str(uuid.uuid1()), replace(text_type(36), wire=ColumnType.STRING))


def _rand(_: Context, arguments: _Arguments) -> Typed:
    seed = as_number(arguments[0].value) if arguments else None
    source = random.Random(None if seed is None else float(seed))  # noqa: S311 - SQL's RAND
    return Typed(source.random(), DOUBLE)


def _user(context: Context, _: _Arguments) -> Typed:
    return Typed(context.user, text_type(USER_CHARS))


def _current_user(context: Context, _: _Arguments) -> Typed:
    account = context.account
    name = context.user if account is None else f"{account.user}@{account.host}"
    return Typed(name, text_type(USER_CHARS))


def _database(context: Context, _: _Arguments) -> Typed:
    return Typed(context.database, text_type(DATABASE_CHARS))


def _version(context: Context, _: _Arguments) -> Typed:
    version = context.facts.config.server_version
    return Typed(version, text_type(len(version), nullable=False))


def _connection_id(context: Context, _: _Arguments) -> Typed:
    type_ = SqlType(Kind.INTEGER, 10, unsigned=True)
    return Typed(context.connection_id, type_)


_FUNCTIONS: Final = {
    "ABS": _Function(1, 1, _abs),
    "CEIL": _Function(1, 1, _rounded(ROUND_CEILING)),
    "CEILING": _Function(1, 1, _rounded(ROUND_CEILING)),
    "COALESCE": _Function(1, 99, _coalesce),
    "CONNECTION_ID": _Function(0, 0, _connection_id),
    "CURRENT_ROLE": _Function(0, 0, lambda *_: Typed(None, text_type(ROLE_CHARS))),
    "CURRENT_USER": _Function(0, 0, _current_user),
    "DATABASE": _Function(0, 0, _database),
    "FLOOR": _Function(1, 1, _rounded(ROUND_FLOOR)),
    "FOUND_ROWS": _Function(0, 0, lambda c, _: Typed(c.found_rows, _ROWS)),
    "GREATEST": _Function(2, 99, _extreme(max)),
    "IF": _Function(3, 3, _if),
    "IFNULL": _Function(2, 2, _coalesce),
    "LAST_INSERT_ID": _Function(0, 0, lambda *_: Typed(0, replace(_ROWS, unsigned=True))),
    "LEAST": _Function(2, 99, _extreme(min)),
    "NULLIF": _Function(2, 2, _nullif),
    "PI": _Function(0, 0, lambda *_: Typed(_PI, SqlType(Kind.DOUBLE, 8, 6))),
    "RAND": _Function(0, 1, _rand),
    "ROUND": _Function(1, 2, _round),
    "ROW_COUNT": _Function(0, 0, lambda c, _: Typed(c.row_count, _ROWS)),
    "SCHEMA": _Function(0, 0, _database),
    "SESSION_USER": _Function(0, 0, _user),
    "SLEEP": _Function(1, 1, _sleep),
    "SYSTEM_USER": _Function(0, 0, _user),
    "USER": _Function(0, 0, _user),
    "UUID": _Function(0, 0, _uuid),
    "VERSION": _Function(0, 0, _version),
    **{
        name: _Function(least, most, compute)
        for family in (BINLOG_FUNCTIONS, TEXT_FUNCTIONS, TIME_FUNCTIONS)
        for name, (least, most, compute) in family.items()
    },
}
