"""The functions that clients call: their values, and the types that MariaDB declares for them."""

from __future__ import annotations

import hashlib
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

from .native_functions import NATIVE_FUNCTIONS
from .sql_functions_binlog import BINLOG_FUNCTIONS
from .sql_functions_time import TIME_FUNCTIONS
from .sql_types import (
    BOOLEAN,
    DOUBLE,
    PLAIN_DECIMALS,
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
from .sql_wait import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .sql_ast import Call, Expression
    from .sql_context import Context
    from .sql_types import SqlValue

_Arguments: TypeAlias = "Sequence[Typed]"
TEXT_BYTES_MAX: Final = 1 << 20  # of a text that a function makes
USER_CHARS: Final = 384
DATABASE_CHARS: Final = 64
_ROWS: Final = SqlType(Kind.INTEGER, 21)
_CHARS: Final = integer_type(9)
_WHOLE_DOUBLE_DIGITS: Final = 17
_PI: Final = 3.141592653589793


class _Function(NamedTuple):
    """A function: fewest and most arguments, and what computes it."""

    least: int
    most: int
    compute: Callable[[Context, _Arguments], Typed]


def call(wanted: Call, context: Context, evaluate: Callable[[Expression, Context], Typed]) -> Typed:
    """
    Return what a function gives.

    Raises:
        SqlError: 1305 no such function, 1235 MariaDB has it, 1582 too few or too many arguments.
    """
    name = wanted.name.upper()
    function = _FUNCTIONS.get(name)
    if function is None and name in NATIVE_FUNCTIONS:
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


def _texts(arguments: _Arguments) -> list[str] | None:
    """Return the arguments as texts, None if one is NULL."""
    texts = [as_text(argument.value, argument.type.decimals) for argument in arguments]
    return None if None in texts else [text for text in texts if text is not None]


def _check_size(characters: int) -> None:
    """Raise SqlError before a text is made that is too long."""
    if characters > TEXT_BYTES_MAX:
        raise NOT_SUPPORTED_YET.error(f"texts of more than {TEXT_BYTES_MAX} characters")


def _text(value: str | None, characters: int) -> Typed:
    return Typed(None if value is None else value[:TEXT_BYTES_MAX], text_type(characters))


def _chars(typed: Typed) -> int:
    return typed.type.length


def _concat(_: Context, arguments: _Arguments) -> Typed:
    texts = _texts(arguments)
    _check_size(sum(map(len, texts or ())))
    return _text(None if texts is None else "".join(texts), sum(map(_chars, arguments)))


def _concat_ws(_: Context, arguments: _Arguments) -> Typed:
    separator, *others = (as_text(argument.value) for argument in arguments)
    pieces = [one for one in others if one is not None]
    _check_size(sum(map(len, pieces)) + len(separator or "") * len(pieces))
    joined = None if separator is None else separator.join(pieces)
    gaps = max(len(others) - 1, 0) * _chars(arguments[0])
    return _text(joined, sum(map(_chars, arguments[1:])) + gaps)


def _mapped(change: Callable[[str], str]) -> Callable[[Context, _Arguments], Typed]:
    """Return a function of one text that keeps its declared length."""

    def compute(_: Context, arguments: _Arguments) -> Typed:
        texts = _texts(arguments)
        return _text(None if texts is None else change(texts[0]), _chars(arguments[0]))

    return compute


def _measured(measure: Callable[[str], int]) -> Callable[[Context, _Arguments], Typed]:
    def compute(_: Context, arguments: _Arguments) -> Typed:
        texts = _texts(arguments)
        type_ = _CHARS.or_null(arguments[0].type.nullable)
        return Typed(None if texts is None else measure(texts[0]), type_)

    return compute


def _substring(_: Context, arguments: _Arguments) -> Typed:
    length = _chars(arguments[0])
    if len(arguments) > 2 and isinstance(arguments[2].value, int):
        length = min(length, max(arguments[2].value, 0))
    values = [arguments[0].value, *(as_number(one.value) for one in arguments[1:])]
    if None in values:
        return _text(None, length)
    text = as_text(values[0]) or ""
    start = int(values[1] or 0)  # type: ignore[arg-type]
    at = start - 1 if start > 0 else len(text) + start
    if start == 0 or at < 0:
        return _text("", length)
    end = len(text) if len(values) < 3 else at + max(int(values[2] or 0), 0)  # type: ignore[arg-type]
    return _text(text[at:end], length)


def _end_of(*, left: bool) -> Callable[[Context, _Arguments], Typed]:
    def compute(_: Context, arguments: _Arguments) -> Typed:
        count = as_number(arguments[1].value)
        text = as_text(arguments[0].value)
        if count is None or text is None:
            return _text(None, _chars(arguments[0]))
        size = max(int(count), 0)
        piece = text[:size] if left else text[len(text) - min(size, len(text)) :]
        return _text(piece, min(_chars(arguments[0]), size))

    return compute


def _replace(_: Context, arguments: _Arguments) -> Typed:
    texts = _texts(arguments)
    grown = max(_chars(arguments[2]) - _chars(arguments[1]), 0) * _chars(arguments[0])
    changed = None
    if texts is not None:
        text, old, new = texts
        count = text.count(old) if old else 0
        _check_size(len(text) + count * (len(new) - len(old)))
        changed = text.replace(old, new) if count else text
    return _text(changed, _chars(arguments[0]) + grown)


def _substring_index(_: Context, arguments: _Arguments) -> Typed:
    count, texts = as_number(arguments[2].value), _texts(arguments[:2])
    if texts is None or count is None:
        return _text(None, _chars(arguments[0]))
    pieces = texts[0].split(texts[1]) if texts[1] else [""]
    chosen = pieces[: int(count)] if count >= 0 else pieces[int(count) :]
    return _text(texts[1].join(chosen), _chars(arguments[0]))


def _hex(_: Context, arguments: _Arguments) -> Typed:
    value = arguments[0].value
    number = isinstance(value, int)
    characters = 16 if arguments[0].type.kind is Kind.INTEGER else _chars(arguments[0]) * 8
    type_ = replace(text_type(characters), decimals=PLAIN_DECIMALS)
    if value is None:
        return Typed(None, type_)
    text = f"{int(value):X}" if number else (as_text(value) or "").encode().hex().upper()  # type: ignore[arg-type]
    return Typed(text, type_)


def _unhex(_: Context, arguments: _Arguments) -> Typed:
    text = as_text(arguments[0].value)
    type_ = SqlType(Kind.BINARY, (_chars(arguments[0]) * 4 + 1) // 2, nullable=True)
    try:
        data = None if text is None else bytes.fromhex("0" * (len(text) % 2) + text)
    except ValueError:
        data = None
    return Typed(data, type_)


def _digest(name: str, digits: int) -> Callable[[Context, _Arguments], Typed]:
    def compute(_: Context, arguments: _Arguments) -> Typed:
        text = as_text(arguments[0].value)
        digest = hashlib.new(name, usedforsecurity=False)
        digest.update((text or "").encode())
        return _text(None if text is None else digest.hexdigest(), digits)

    return compute


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
    return Typed(0, BOOLEAN)


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


def _charset(context: Context, _: _Arguments) -> Typed:
    return _text(str(context.variables.read("character_set_connection", "", context)), 32)


_FUNCTIONS: Final = {
    "ABS": _Function(1, 1, _abs),
    "CEIL": _Function(1, 1, _rounded(ROUND_CEILING)),
    "CEILING": _Function(1, 1, _rounded(ROUND_CEILING)),
    "CHARACTER_LENGTH": _Function(1, 1, _measured(len)),
    "CHARSET": _Function(1, 1, _charset),
    "CHAR_LENGTH": _Function(1, 1, _measured(len)),
    "COALESCE": _Function(1, 99, _coalesce),
    "CONCAT": _Function(1, 99, _concat),
    "CONCAT_WS": _Function(2, 99, _concat_ws),
    "CONNECTION_ID": _Function(0, 0, _connection_id),
    "CURRENT_ROLE": _Function(0, 0, lambda *_: _text(None, USER_CHARS)),
    "CURRENT_USER": _Function(0, 0, _current_user),
    "DATABASE": _Function(0, 0, _database),
    "FLOOR": _Function(1, 1, _rounded(ROUND_FLOOR)),
    "FOUND_ROWS": _Function(0, 0, lambda c, _: Typed(c.found_rows, _ROWS)),
    "GREATEST": _Function(2, 99, _extreme(max)),
    "HEX": _Function(1, 1, _hex),
    "IF": _Function(3, 3, _if),
    "IFNULL": _Function(2, 2, _coalesce),
    "LAST_INSERT_ID": _Function(0, 0, lambda *_: Typed(0, replace(_ROWS, unsigned=True))),
    "LCASE": _Function(1, 1, _mapped(str.lower)),
    "LEAST": _Function(2, 99, _extreme(min)),
    "LEFT": _Function(2, 2, _end_of(left=True)),
    "LENGTH": _Function(1, 1, _measured(lambda text: len(text.encode()))),
    "LOWER": _Function(1, 1, _mapped(str.lower)),
    "LTRIM": _Function(1, 1, _mapped(lambda text: text.lstrip(" "))),
    "MD5": _Function(1, 1, _digest("md5", 32)),
    "NULLIF": _Function(2, 2, _nullif),
    "OCTET_LENGTH": _Function(1, 1, _measured(lambda text: len(text.encode()))),
    "PI": _Function(0, 0, lambda *_: Typed(_PI, SqlType(Kind.DOUBLE, 8, 6))),
    "RAND": _Function(0, 1, _rand),
    "REPLACE": _Function(3, 3, _replace),
    "RIGHT": _Function(2, 2, _end_of(left=False)),
    "ROUND": _Function(1, 2, _round),
    "ROW_COUNT": _Function(0, 0, lambda c, _: Typed(c.row_count, _ROWS)),
    "RTRIM": _Function(1, 1, _mapped(lambda text: text.rstrip(" "))),
    "SCHEMA": _Function(0, 0, _database),
    "SESSION_USER": _Function(0, 0, _user),
    "SHA": _Function(1, 1, _digest("sha1", 40)),
    "SHA1": _Function(1, 1, _digest("sha1", 40)),
    "SLEEP": _Function(1, 1, _sleep),
    "SUBSTR": _Function(2, 3, _substring),
    "SUBSTRING": _Function(2, 3, _substring),
    "SUBSTRING_INDEX": _Function(3, 3, _substring_index),
    "SYSTEM_USER": _Function(0, 0, _user),
    "TRIM": _Function(1, 1, _mapped(lambda text: text.strip(" "))),
    "UCASE": _Function(1, 1, _mapped(str.upper)),
    "UNHEX": _Function(1, 1, _unhex),
    "UPPER": _Function(1, 1, _mapped(str.upper)),
    "USER": _Function(0, 0, _user),
    "UUID": _Function(0, 0, _uuid),
    "VERSION": _Function(0, 0, _version),
    **{
        name: _Function(least, most, compute)
        for name, (least, most, compute) in (BINLOG_FUNCTIONS | TIME_FUNCTIONS).items()
    },
}
