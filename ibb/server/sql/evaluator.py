"""The value and type of an expression, by MariaDB's rules for both."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal, localcontext
from math import isfinite
from typing import TYPE_CHECKING, Final

from ibb.protocol.error_codes import (
    BAD_FIELD_ERROR,
    DATA_OUT_OF_RANGE,
    NOT_SUPPORTED_YET,
    UNKNOWN_TABLE,
    WRONG_USAGE,
)

from .conversion import as_bytes, converted, moved
from .expressions import (
    AssignUser,
    Call,
    Case,
    Cast,
    ColumnName,
    Interval,
    Literal,
    Operation,
    Placeholder,
    SystemVariableName,
    UserVariable,
)
from .functions import call
from .functions_time import moment_of
from .like import PATTERN_CHARS_MAX, is_like
from .types import (
    BOOLEAN,
    DIVISION_DECIMALS,
    DOUBLE,
    EXACT,
    NULL,
    UNSIGNED_WORD,
    Kind,
    SqlType,
    Typed,
    as_number,
    as_text,
    decimal_type,
    integer_type,
    merged,
    quantized,
)
from .variable_values import system_variable_type, user_variable_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .context import Context
    from .expressions import Expression
    from .types import SqlValue

_WORD: Final = 1 << 64
_EXACT: Final = (Kind.INTEGER, Kind.DECIMAL, Kind.NULL)
_MOMENT_DIGITS: Final = {Kind.DATETIME: 14, Kind.DATE: 8, Kind.TIME: 7}
_LIKE_STEPS_MAX: Final = 1 << 22
_REGEXP_CHARS_MAX: Final = 256  # of a pattern of a client's


def evaluate(expression: Expression, context: Context) -> Typed:
    """
    Return value and type of *expression*.

    Raises:
        SqlError: a name is unknown, an argument is wrong, the value is out of range, or 1317.
    """
    context.stop_if_interrupted()
    match expression:
        case Literal():
            return _literal(expression.typed, context)
        case Placeholder():
            return context.values[expression.number]
        case UserVariable():
            return _user_variable(expression.name, context)
        case SystemVariableName():
            return _system_variable(expression, context)
        case AssignUser():
            assigned = evaluate(expression.value, context)
            _assign(expression.name, assigned, context)
            return assigned
        case ColumnName():
            return _column(expression, context)
        case Call():
            return call(expression, context, evaluate)
        case Operation():
            return _operation(expression, context)
        case Case():
            return _case(expression, context)
        case Cast():
            return converted(expression, evaluate(expression.value, context), context)
    raise WRONG_USAGE.error("*", "expression")


def _literal(typed: Typed, context: Context) -> Typed:
    """Return a value as written; after SET NAMES binary a text is bytes."""
    if typed.type.kind is not Kind.TEXT or context.variables.charsets.of_literals != "binary":
        return typed
    return as_bytes(context.literal_bytes(str(typed.value)))


def is_true(value: SqlValue) -> bool:
    """Tell whether a condition holds; NULL does not."""
    number = as_number(value)
    return number is not None and number != 0


def _assign(name: str, assigned: Typed, context: Context) -> None:
    """Set a user variable, which keeps the type that it had to the end of the statement."""
    before = context.variables.user(name)
    type_ = user_variable_type("" if before is None else before)
    context.user_types.setdefault(name.lower(), type_)
    if not context.probing:
        context.variables.set_user(name, assigned.value)


def _user_variable(name: str, context: Context) -> Typed:
    value = context.variables.user(name)
    type_ = context.user_types.get(name.lower())
    if type_ is None:
        return Typed(value, user_variable_type(value))
    number = None if value is None else as_number(value)
    match type_.kind:
        case Kind.INTEGER if number is not None:
            return Typed(int(number), type_)
        case Kind.DOUBLE if number is not None:
            return Typed(float(number), type_)
        case Kind.DECIMAL if number is not None:
            return Typed(Decimal(str(number)), type_)
    return Typed(as_text(value), type_)


def _system_variable(name: SystemVariableName, context: Context) -> Typed:
    value = context.variables.read(name.name, name.scope, context)
    return Typed(value, system_variable_type(name.name, value))


def _column(name: ColumnName, context: Context) -> Typed:
    if context.row is not None and name.name.lower() in context.row:
        return context.row[name.name.lower()]
    if name.table and context.row is None:
        raise UNKNOWN_TABLE.error(name.table, name.clause)
    shown = f"{name.table}.{name.name}" if name.table else name.name
    raise BAD_FIELD_ERROR.error(shown, name.clause)


def _case(case: Case, context: Context) -> Typed:
    results = [evaluate(result, context) for _, result in case.branches]
    otherwise = NULL if case.otherwise is None else evaluate(case.otherwise, context)
    chosen = otherwise
    for (condition, _), result in zip(case.branches, results, strict=True):
        if is_true(evaluate(condition, context).value):
            chosen = result
            break
    type_ = merged([*(result.type for result in results), otherwise.type])
    return Typed(chosen.value, type_)


def _operation(operation: Operation, context: Context) -> Typed:
    operator = operation.operator
    interval = operation.operands[-1]
    if isinstance(interval, Interval):
        if operator not in ("+", "-"):
            raise WRONG_USAGE.error("INTERVAL", operator)
        start = evaluate(operation.operands[0], context)
        amount = as_number(evaluate(interval.value, context).value)
        if amount is not None and operator == "-":
            amount = -amount
        return moved(start, amount, interval.unit)
    operands = [evaluate(operand, context) for operand in operation.operands]
    nullable = any(operand.type.nullable for operand in operands)
    if operator in _ARITHMETIC:
        return _arithmetic(operator, operands, context, nullable=nullable)
    if operator in ("|", "&", "^", "<<", ">>", "~"):
        return _bits(operator, operands, nullable=nullable)
    values = [operand.value for operand in operands]
    if _compares_bytes(operation, operands):
        values = [context.literal_bytes(v) if isinstance(v, str) else v for v in values]
    result: bool | None
    if operator.startswith("IS "):
        value = values[0]
        tests = {
            "IS NULL": value is None,
            "IS TRUE": is_true(value),
            "IS FALSE": value is not None and not is_true(value),
        }
        return Typed(int(tests[operator]), BOOLEAN)
    if operator == "<=>":
        both_null = values[0] is None and values[1] is None
        return Typed(int(both_null or _compared(values[0], values[1]) == 0), BOOLEAN)
    if operator in ("AND", "OR", "XOR", "NOT"):
        result = _logic(operator, values)
    else:
        result = _predicate(operator, values)
    return Typed(None if result is None else int(result), BOOLEAN.or_null(nullable))


def _compares_bytes(operation: Operation, operands: Sequence[Typed]) -> bool:
    """Tell whether bytes are compared: a column's text counts as text whatever it meets."""
    columns = any(isinstance(operand, ColumnName) for operand in operation.operands)
    return not columns and any(operand.type.kind is Kind.BINARY for operand in operands)


def _logic(operator: str, values: Sequence[SqlValue]) -> bool | None:
    truths = [None if value is None else is_true(value) for value in values]
    if operator == "NOT":
        return None if truths[0] is None else not truths[0]
    if operator == "AND":
        return False if False in truths else None if None in truths else True
    if operator == "OR":
        return True if True in truths else None if None in truths else False
    return None if None in truths else truths[0] != truths[1]


def _predicate(operator: str, values: Sequence[SqlValue]) -> bool | None:
    first, *others = values
    if first is None:
        return None
    if operator == "IN":
        results = [None if other is None else _compared(first, other) == 0 for other in others]
        return True if True in results else None if None in results else False
    if None in others:
        return None
    if operator == "LIKE":
        text, pattern = as_text(first) or "", as_text(others[0]) or ""
        if len(pattern) > PATTERN_CHARS_MAX or len(text) * len(pattern) > _LIKE_STEPS_MAX:
            raise NOT_SUPPORTED_YET.error("LIKE of long texts")
        return is_like(text, pattern, exact=isinstance(first, bytes))
    if operator == "REGEXP":
        pattern = (as_text(others[0]) or "")[:_REGEXP_CHARS_MAX]
        literal = all(char.isalnum() or char in "^$_- ." for char in pattern)
        if not literal:
            raise WRONG_USAGE.error("REGEXP", "pattern")
        return re.search(pattern, as_text(first) or "", re.IGNORECASE) is not None
    if operator == "BETWEEN":
        low, high = _compared(first, others[0]), _compared(first, others[1])
        return low >= 0 and high <= 0
    order = _compared(first, others[0])
    return {
        "=": order == 0,
        "<>": order != 0,
        "<": order < 0,
        "<=": order <= 0,
        ">": order > 0,
        ">=": order >= 0,
    }[operator]


def _compared(left: SqlValue, right: SqlValue) -> int:
    """Return -1, 0 or 1; NULL counts as different from everything."""
    if left is None or right is None:
        return 2
    if isinstance(left, bytes) and isinstance(right, bytes):
        return (left > right) - (left < right)
    if isinstance(left, str | bytes) and isinstance(right, str | bytes):
        a, b = (str(as_text(value)).casefold().rstrip(" ") for value in (left, right))
        return (a > b) - (a < b)
    if isinstance(left, datetime) or isinstance(right, datetime):
        moments = moment_of(left), moment_of(right)
        if moments[0] is not None and moments[1] is not None:
            return (moments[0] > moments[1]) - (moments[0] < moments[1])
    x, y = as_number(left), as_number(right)
    assert x is not None
    assert y is not None
    return (x > y) - (x < y)


_ARITHMETIC: Final = frozenset({"+", "-", "*", "/", "%", "DIV", "NEGATE"})


def _arithmetic(
    operator: str, operands: Sequence[Typed], context: Context, *, nullable: bool
) -> Typed:
    if operator == "NEGATE":
        operands = [Typed(0, BOOLEAN), operands[0]]
    types = [_as_number_type(operand.type) for operand in operands]
    exact = all(type_.kind in _EXACT for type_ in types)
    type_ = _result_type(operator, types, exact=exact, nullable=nullable)
    numbers = [
        as_number(operand.value) if type_.kind in _EXACT else context.number(operand.value)
        for operand, type_ in zip(operands, types, strict=True)
    ]
    if numbers[0] is None or numbers[1] is None:
        return Typed(None, type_.or_null())
    if not exact:
        numbers = [float(number) for number in numbers if number is not None]
    elif operator == "/" or any(isinstance(number, Decimal) for number in numbers):
        numbers = [Decimal(number) for number in numbers if number is not None]
    left, right = numbers
    assert left is not None
    assert right is not None
    if operator in ("/", "%", "DIV") and right == 0:
        context.diagnostics.add("Warning", 1365, "Division by 0")
        return Typed(None, type_)
    try:
        with localcontext(EXACT):
            value = _calculated(operator, left, right)
        if type_.kind is Kind.DECIMAL and isinstance(value, Decimal):
            rounding = ROUND_HALF_UP if operator == "/" else ROUND_DOWN
            value = quantized(value, type_.decimals, rounding)
        if isinstance(value, float) and not isfinite(value):
            raise OverflowError
    except ArithmeticError:
        kind = "DECIMAL" if exact else "DOUBLE"
        sign = "-" if operator == "NEGATE" else operator
        raise DATA_OUT_OF_RANGE.error(kind, f"{left} {sign} {right}") from None
    fits = -(_WORD >> 1) <= value < (_WORD if type_.unsigned else _WORD >> 1)
    if type_.kind is Kind.INTEGER and not fits:
        sign = "-" if operator == "NEGATE" else operator
        kind = "BIGINT UNSIGNED" if type_.unsigned else "BIGINT"
        raise DATA_OUT_OF_RANGE.error(kind, f"{left} {sign} {right}")
    return Typed(value, type_)


def _as_number_type(type_: SqlType) -> SqlType:
    """Return the type that a moment has as a number: 20240131103000."""
    digits = _MOMENT_DIGITS.get(type_.kind)
    if digits is None:
        return type_
    if type_.decimals:
        return decimal_type(digits + type_.decimals, type_.decimals, nullable=type_.nullable)
    return integer_type(digits, nullable=type_.nullable)


def _calculated(operator: str, left: Decimal | float, right: Decimal | float) -> Decimal | float:
    a: float = left  # type: ignore[assignment]  # both are of one type
    b: float = right  # type: ignore[assignment]
    match operator:
        case "+":
            return a + b
        case "-" | "NEGATE":
            return a - b
        case "*":
            return a * b
        case "/":
            return a / b
        case "DIV":
            quotient = abs(a) // abs(b)
            return int(quotient if (a < 0) == (b < 0) else -quotient)
    rest = abs(a) % abs(b)
    return rest if a >= 0 else -rest


def _result_type(
    operator: str, types: Sequence[SqlType], *, exact: bool, nullable: bool
) -> SqlType:
    left, right = types
    if operator == "NEGATE":
        if right.kind is Kind.INTEGER:
            return SqlType(Kind.INTEGER, right.length + 1, nullable=nullable)
        return replace(right, nullable=nullable) if exact else DOUBLE.or_null(nullable)
    if operator == "DIV":
        return SqlType(Kind.INTEGER, max(left.length - left.decimals, 1), nullable=True)
    if not exact:
        return DOUBLE.or_null(nullable or operator in "/%")
    decimals = max(left.decimals, right.decimals)
    if operator == "/":
        precision = left.precision + right.decimals + DIVISION_DECIMALS
        return decimal_type(precision, left.decimals + DIVISION_DECIMALS, nullable=True)
    integers = Kind.DECIMAL not in (left.kind, right.kind)
    unsigned = integers and (left.unsigned or right.unsigned)
    if operator == "*":
        precision, decimals = left.precision + right.precision, left.decimals + right.decimals
    elif operator == "%":
        precision, nullable = max(left.precision, right.precision), True
    else:
        precision = max(left.whole_digits, right.whole_digits) + 1 + decimals
    if integers:
        return SqlType(
            Kind.INTEGER, precision + (not unsigned), nullable=nullable, unsigned=unsigned
        )
    return decimal_type(precision, decimals, nullable=nullable)


def _bits(operator: str, operands: Sequence[Typed], *, nullable: bool) -> Typed:
    type_ = UNSIGNED_WORD.or_null(nullable)
    numbers = [as_number(operand.value) for operand in operands]
    if None in numbers:
        return Typed(None, type_)
    words = [int(number or 0) % _WORD for number in numbers]
    if operator == "~":
        return Typed(~words[0] % _WORD, type_)
    a, b = words
    if operator in ("<<", ">>"):
        shifted = 0 if b > 63 else a << b if operator == "<<" else a >> b
        return Typed(shifted % _WORD, type_)
    return Typed({"|": a | b, "&": a & b, "^": a ^ b}[operator], type_)
