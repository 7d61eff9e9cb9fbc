"""SELECT of expressions, and of one table of information_schema."""

from __future__ import annotations

from functools import cmp_to_key
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.error_codes import (
    BAD_FIELD_ERROR,
    NO_DB_ERROR,
    NO_SUCH_TABLE,
    NO_TABLES_USED,
    NOT_SUPPORTED_YET,
)
from ibb.protocol.result_set import ResultSet

from .evaluator import evaluate, is_true
from .expressions import COUNT_DISTINCT, Call, ColumnName, Star, SystemVariableName
from .like import PATTERN_CHARS_MAX, is_like
from .tables import INFORMATION_SCHEMA, found_table
from .types import Kind, SqlType, Typed, as_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ibb.protocol.result_set import Column
    from ibb.protocol.result_set import Value as WireValue

    from .ast import Select, TableName
    from .context import Context
    from .expressions import Expression
    from .tables import Table
    from .types import SqlValue

STATUS_NO_INDEX_USED: Final = 0x0020
_OF_SERVER: Final = frozenset(  # functions whose texts are the server's
    {
        *("CHARSET", "CURRENT_ROLE", "CURRENT_USER", "DATABASE", "SCHEMA", "SESSION_USER"),
        *("SYSTEM_USER", "USER", "VERSION"),
    }
)
_COUNT: Final = SqlType(Kind.INTEGER, 21)


class _Output(NamedTuple):
    """A column of the result, and the expression that fills it."""

    column: Column
    expression: Expression


def wire_value(typed: Typed) -> WireValue:
    """Return a value as it goes into a row of text."""
    if isinstance(typed.value, int | bytes | str) or typed.value is None:
        return typed.value
    return as_text(typed.value, typed.type.decimals)


def select(statement: Select, context: Context) -> ResultSet:
    """
    Answer a SELECT.

    Raises:
        SqlError: a name is unknown or a value is wrong.
        StatementWaits: it is not known yet.
    """
    if statement.table is None:
        return _without_table(statement, context)
    table = _found(statement.table, context)
    alias = statement.table.alias or statement.table.name
    with context.probe():
        outputs = _outputs(statement, table, alias, context)
    names = [column.name.lower() for column in table.columns]
    rows = []
    for row in table.rows(context):
        context.row = _row(table, names, row)
        if statement.where is None or is_true(evaluate(statement.where, context).value):
            rows.append(context.row)
    if statement.order:
        rows.sort(key=cmp_to_key(_Order(statement, context)))
    status = context.variables.status | STATUS_NO_INDEX_USED
    if any(_is_count(output.expression) for output in outputs):
        counted = tuple(_counted(output.expression, rows, context) for output in outputs)
        found = _limited([counted], statement, context)
        return ResultSet([output.column for output in outputs], found, status)
    found = []
    for at in rows:
        context.row = at
        found.append(tuple(wire_value(evaluate(one.expression, context)) for one in outputs))
    if statement.distinct:
        found = list(dict.fromkeys(found))
    return ResultSet(
        [output.column for output in outputs], _limited(found, statement, context), status
    )


def _without_table(statement: Select, context: Context) -> ResultSet:
    if any(isinstance(expression, Star) for _, expression in statement.columns):
        raise NO_TABLES_USED.error()
    columns, values = [], []
    for name, expression in statement.columns:
        typed = _single(expression, context)
        columns.append(typed.type.column(name, _collation(expression, context)))
        values.append(wire_value(typed))
    rows = [tuple(values)]
    if statement.where is not None and not is_true(evaluate(statement.where, context).value):
        rows = []
    return ResultSet(columns, _limited(rows, statement, context), context.variables.status)


def _collation(expression: Expression, context: Context) -> int:
    """Return the collation of an expression's text: the server's own, or that of literals."""
    of_server = isinstance(expression, SystemVariableName) or (
        isinstance(expression, Call) and expression.name.upper() in _OF_SERVER
    )
    return context.variables.system_charset if of_server else context.variables.charset


def _single(expression: Expression, context: Context) -> Typed:
    """Return an expression without any table; to COUNT that is one row."""
    if not _is_count(expression):
        return evaluate(expression, context)
    assert isinstance(expression, Call)
    return Typed(_count(expression, [None], context), _COUNT)


def _limited(
    rows: list[tuple[WireValue, ...]], statement: Select, context: Context
) -> list[tuple[WireValue, ...]]:
    most = context.variables.rows_max(context) if statement.limit is None else statement.limit
    return rows[statement.offset : statement.offset + most]


def _found(name: TableName, context: Context) -> Table:
    database = name.database or context.database
    if database is None:
        raise NO_DB_ERROR.error()
    if database.lower() != INFORMATION_SCHEMA:
        raise NO_SUCH_TABLE.error(database, name.name)
    return found_table(name.name)


def _row(table: Table, names: list[str], row: Sequence[SqlValue]) -> dict[str, Typed]:
    return {
        name: Typed(value, column.type)
        for name, column, value in zip(names, table.columns, row, strict=True)
    }


def _outputs(statement: Select, table: Table, alias: str, context: Context) -> list[_Output]:
    """Return what each column is, having evaluated it once on a row of NULLs for its type."""
    charset = context.variables.system_charset
    by_name = {column.name.lower(): column for column in table.columns}
    context.row = {name: Typed(None, column.type) for name, column in by_name.items()}
    outputs = []
    for name, expression in statement.columns:
        if isinstance(expression, Star):
            outputs += [
                _Output(column.shown(charset, alias, column.name), _named(column.name))
                for column in table.columns
            ]
        elif isinstance(expression, ColumnName) and expression.name.lower() in by_name:
            if expression.table.lower() not in ("", alias.lower()):
                shown = f"{expression.table}.{expression.name}"
                raise BAD_FIELD_ERROR.error(shown, expression.clause)
            column = by_name[expression.name.lower()]
            outputs.append(_Output(column.shown(charset, alias, name), expression))
        else:
            type_ = _COUNT if _is_count(expression) else evaluate(expression, context).type
            collation = _collation(expression, context)
            outputs.append(_Output(type_.column(name, collation), expression))
    if statement.where is not None:
        evaluate(statement.where, context)  # an unknown column is an error without rows too
    return outputs


def _named(name: str) -> ColumnName:
    return ColumnName("", name, "SELECT")


def _is_count(expression: Expression) -> bool:
    return isinstance(expression, Call) and expression.name.upper() in ("COUNT", COUNT_DISTINCT)


def _counted(
    expression: Expression, rows: Sequence[Mapping[str, Typed]], context: Context
) -> WireValue:
    if not isinstance(expression, Call) or not _is_count(expression):
        context.row = rows[0] if rows else context.row
        return wire_value(evaluate(expression, context)) if rows else None
    return _count(expression, rows, context)


def _count(expression: Call, rows: Sequence[Mapping[str, Typed] | None], context: Context) -> int:
    """Return how many rows, or values other than NULL, or different ones of them there are."""
    if any(isinstance(argument, Star) for argument in expression.arguments):
        return len(rows)
    found = []
    for context.row in rows:
        values = [evaluate(argument, context).value for argument in expression.arguments]
        if None not in values:
            found.append(tuple(_folded(value) for value in values))
    return len(set(found) if expression.name == COUNT_DISTINCT else found)


def _folded(value: SqlValue) -> SqlValue:
    """Return a value so that those that compare as equal are equal."""
    return value.casefold().rstrip(" ") if isinstance(value, str) else value


class _Order:
    """Compares two rows by ORDER BY; NULL comes first."""

    def __init__(self, statement: Select, context: Context) -> None:
        self._keys = statement.order
        self._context = context

    def __call__(self, left: Mapping[str, Typed], right: Mapping[str, Typed]) -> int:
        for expression, down in self._keys:
            a, b = self._key(expression, left), self._key(expression, right)
            if a != b:
                return (1 if a > b else -1) * (-1 if down else 1)
        return 0

    def _key(self, expression: Expression, row: Mapping[str, Typed]) -> tuple[int, float, str]:
        self._context.row = row
        typed = evaluate(expression, self._context)
        if typed.value is None:
            return (0, 0.0, "")
        if typed.type.kind in (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE):
            return (1, float(str(typed.value)), "")
        return (1, 0.0, (as_text(typed.value) or "").casefold())


def of_table(
    table: Table,
    columns: Iterable[tuple[str, str]],
    context: Context,
    *,
    keep: Expression | None,
    like: tuple[str, str] | None,
) -> ResultSet:
    """
    Return a SHOW that is a view of a table.

    Args:
        table: what is shown.
        columns: the name shown and the column's own name.
        context: of the statement.
        keep: WHERE, in the names shown.
        like: a column's own name, and the pattern that it must match.
    """
    charset = context.variables.system_charset
    by_name = {column.name: column for column in table.columns}
    chosen = [(shown, by_name[name]) for shown, name in columns]
    names = [column.name for column in table.columns]
    definitions = [column.shown(charset, table.name, shown) for shown, column in chosen]
    places = [names.index(column.name) for _, column in chosen]
    context.row = {shown.lower(): Typed(None, column.type) for shown, column in chosen}
    if keep is not None:
        with context.probe():
            evaluate(keep, context)
    if like is not None and len(like[1]) > PATTERN_CHARS_MAX:
        raise NOT_SUPPORTED_YET.error("LIKE of long texts")
    rows = []
    for row in table.rows(context):
        if like is not None and not is_like(as_text(row[names.index(like[0])]) or "", like[1]):
            continue
        typed = [Typed(row[place], table.columns[place].type) for place in places]
        if keep is not None:
            context.row = {
                shown.lower(): one for (shown, _), one in zip(chosen, typed, strict=True)
            }
            if not is_true(evaluate(keep, context).value):
                continue
        rows.append(tuple(map(wire_value, typed)))
    status = context.variables.status | STATUS_NO_INDEX_USED
    return ResultSet(definitions, rows[: context.variables.rows_max(context)], status)
