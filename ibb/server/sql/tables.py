"""
The tables of information_schema: what SELECT and SHOW read. Those that describe what only a
database has are there, and empty, since tools look into them.
"""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.character_sets import (
    COLLATIONS,
    DEFAULT_COLLATIONS,
    DESCRIPTIONS,
    charset_of,
    encoded,
)
from ibb.protocol.error_codes import NOT_SUPPORTED_YET, UNKNOWN_TABLE
from ibb.protocol.result_set import Column, ColumnFlag, ColumnType

from .schema_columns import SCHEMA_COLUMNS, TABLES_ELSEWHERE
from .system_variables import SYSTEM_VARIABLES
from .types import Kind, SqlType
from .variable_values import shown_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .context import Context
    from .types import SqlValue

INFORMATION_SCHEMA: Final = "information_schema"
_NO_DEFAULT: Final = 0x1000  # a flag of columns of tables
_COLUMN: Final = re.compile(r"(\w+) (S|B|LL|SH|L|T|F|DT|D)(\d+)(?:\.(\d+))?([?Ub]*)")
_WIRE: Final = {
    "S": (Kind.TEXT, ColumnType.VAR_STRING),
    "B": (Kind.TEXT, ColumnType.BLOB),
    "LL": (Kind.INTEGER, ColumnType.LONGLONG),
    "L": (Kind.INTEGER, ColumnType.LONG),
    "SH": (Kind.INTEGER, ColumnType.SHORT),
    "T": (Kind.INTEGER, ColumnType.TINY),
    "F": (Kind.DOUBLE, ColumnType.DOUBLE),
    "D": (Kind.DECIMAL, ColumnType.NEWDECIMAL),
    "DT": (Kind.DATETIME, ColumnType.DATETIME),
}
_BYTES_PER_CHARACTER: Final = 4
_LONG_TEXT_BYTES: Final = (1 << 32) - 1
_INTEGERS: Final = {  # their words, and digits
    ColumnType.LONGLONG: ("bigint", 19),
    ColumnType.LONG: ("int", 10),
    ColumnType.SHORT: ("smallint", 5),
    ColumnType.TINY: ("tinyint", 3),
}


class TableColumn(NamedTuple):
    """A column of a table: its name, its type in expressions, and its definition on the wire."""

    name: str
    type: SqlType
    definition: Column

    def shown(self, collation: int, table: str, name: str) -> Column:
        """Return the definition for a result, under the names that the client knows them by."""
        is_text = self.type.kind is Kind.TEXT
        length = self.definition.length
        if is_text:
            length = Column.text("", length // _BYTES_PER_CHARACTER, collation=collation).length
        return replace(
            self.definition,
            name=name,
            table=table,
            length=length,
            collation=collation if is_text else self.definition.collation,
        )


class Table(NamedTuple):
    """A table: its columns, and what gives its rows."""

    name: str
    columns: tuple[TableColumn, ...]
    rows: Callable[[Context], Iterable[tuple[SqlValue, ...]]]


def _columns(table: str) -> tuple[TableColumn, ...]:
    found = []
    for name, letters, length, decimals, marks in _COLUMN.findall(SCHEMA_COLUMNS[table]):
        kind, wire = _WIRE[letters]
        size, nullable, is_bytes = int(length), "?" in marks, "b" in marks
        flags = _NO_DEFAULT | (0 if nullable else int(ColumnFlag.NOT_NULL_FLAG))
        if "U" in marks:
            flags |= ColumnFlag.UNSIGNED_FLAG
        if letters == "B":
            flags |= ColumnFlag.BLOB_FLAG
        if letters == "DT" or is_bytes:
            flags |= ColumnFlag.BINARY_FLAG
        if is_bytes:
            kind = Kind.BINARY
        type_ = SqlType(
            kind,
            size,
            int(decimals or 0),
            nullable,
            "U" in marks,
            wire if kind is Kind.INTEGER else None,
        )
        is_text = kind is Kind.TEXT
        definition = Column(
            name,
            wire,
            size * (_BYTES_PER_CHARACTER if is_text else 1),
            flags,
            63,
            int(decimals or 0),
            INFORMATION_SCHEMA,
            table,
            table,
            name,
        )
        found.append(TableColumn(name, type_, definition))
    return tuple(found)


def variable_rows(
    context: Context, scope: str, wanted: Callable[[str], bool]
) -> Iterator[tuple[SqlValue, ...]]:
    """Yield upper-case name and value of the system variables whose lower-case name is wanted."""
    for name, variable in sorted(SYSTEM_VARIABLES.items()):
        if (scope == "GLOBAL" and not variable.server) or not wanted(name):
            continue
        value = context.variables.read(name, scope if scope == "GLOBAL" else "", context)
        yield name.upper(), shown_value(name, value)


def _variables(scope: str) -> Callable[[Context], Iterable[tuple[SqlValue, ...]]]:
    return lambda context: variable_rows(context, scope, lambda _: True)


def status_values(context: Context) -> dict[str, str]:
    """Return what SHOW STATUS tells: the server's values and the session's own."""
    cipher, version = context.encryption
    return context.facts.status() | {"Ssl_cipher": cipher, "Ssl_version": version}


def _status(context: Context) -> Iterable[tuple[SqlValue, ...]]:
    for name, value in sorted(status_values(context).items()):
        yield name.upper(), value


def _processes(context: Context) -> Iterable[tuple[SqlValue, ...]]:
    for process in context.facts.processes(context):
        milliseconds = Decimal(str(process.seconds * 1000)).quantize(Decimal("0.001"))
        info = process.info
        yield (
            process.id,
            process.user,
            process.host,
            process.database,
            process.command,
            int(process.seconds),
            process.state,
            info,
            milliseconds,
            0,
            0,
            Decimal("0.000"),
            0,
            0,
            0,
            0,
            None if info is None else encoded(info, "utf8mb4"),
            process.id,
        )


def _schemata(_: Context) -> Iterable[tuple[SqlValue, ...]]:
    yield "def", INFORMATION_SCHEMA, "utf8mb3", "utf8mb3_general_ci", None, ""


def _tables(_: Context) -> Iterable[tuple[SqlValue, ...]]:
    for name in sorted(TABLES):
        view = ("def", INFORMATION_SCHEMA, name, "SYSTEM VIEW", "MEMORY", 11, "Fixed")
        rest: tuple[SqlValue, ...] = (None,) * (len(TABLES["TABLES"].columns) - len(view))
        yield view + rest


def _plugins(_: Context) -> Iterable[tuple[SqlValue, ...]]:
    width = len(TABLES["PLUGINS"].columns)
    for name, kind in (
        ("binlog", "STORAGE ENGINE"),
        ("mysql_native_password", "AUTHENTICATION"),
    ):
        row: dict[str, SqlValue] = {
            "PLUGIN_NAME": name,
            "PLUGIN_VERSION": "1.0",
            "PLUGIN_STATUS": "ACTIVE",
            "PLUGIN_TYPE": kind,
            "PLUGIN_TYPE_VERSION": "1.0",
            "PLUGIN_LICENSE": "Apache-2.0",
            "LOAD_OPTION": "FORCE",
            "PLUGIN_MATURITY": "Stable",
        }
        names = [column.name for column in TABLES["PLUGINS"].columns]
        yield tuple(row.get(names[index]) for index in range(width))


def _collations(_: Context) -> Iterable[tuple[SqlValue, ...]]:
    for name, number in sorted(COLLATIONS.items()):
        charset = charset_of(name)
        default = "Yes" if DEFAULT_COLLATIONS[charset] == name else ""
        yield name, charset, number, default, "Yes", 8 if "unicode" in name else 1


def _character_sets(_: Context) -> Iterable[tuple[SqlValue, ...]]:
    for name, (description, size) in sorted(DESCRIPTIONS.items()):
        yield name, DEFAULT_COLLATIONS[name], description, size


def described_columns(table: Table) -> Iterable[tuple[SqlValue, ...]]:
    """Yield the rows of COLUMNS that tell of one table."""
    for place, column in enumerate(table.columns, 1):
        type_, written = column.type, written_type(column)
        word = written.partition("(")[0].partition(" ")[0]
        characters, octets, digits, decimals = _sizes(column, word)
        is_text = type_.kind is Kind.TEXT
        yield (
            *("def", INFORMATION_SCHEMA, table.name, column.name, place, None),
            *("YES" if type_.nullable else "NO", word, characters, octets, digits, decimals),
            type_.decimals if type_.kind is Kind.DATETIME else None,
            *(("utf8mb3", "utf8mb3_general_ci") if is_text else (None, None)),
            *(written, "", "", "select", "", "NEVER", None),
        )


def written_type(column: TableColumn) -> str:
    """Return a column's type as SHOW COLUMNS writes it."""
    type_, wire = column.type, column.definition.type
    size = column.definition.length
    match type_.kind:
        case Kind.TEXT if wire == ColumnType.BLOB:
            return "longtext"
        case Kind.TEXT:
            return f"varchar({size // _BYTES_PER_CHARACTER})"
        case Kind.BINARY:
            return "blob"
        case Kind.DATETIME:
            return f"datetime({type_.decimals})" if type_.decimals else "datetime"
        case Kind.DECIMAL:
            return f"decimal({type_.precision},{type_.decimals})"
    word, _ = _INTEGERS[ColumnType(wire)]
    return f"{word}({size}){' unsigned' if type_.unsigned else ''}"


def _sizes(column: TableColumn, word: str) -> tuple[int | None, int | None, int | None, int | None]:
    """Return a column's size in characters and bytes, or its digits and decimals."""
    if word == "longtext":
        return _LONG_TEXT_BYTES, _LONG_TEXT_BYTES, None, None
    if word in ("varchar", "blob"):
        size = column.definition.length
        characters = size // _BYTES_PER_CHARACTER
        return (
            (size, size, None, None) if word == "blob" else (characters, 3 * characters, None, None)
        )
    if word == "decimal":
        return None, None, column.type.precision, column.type.decimals
    if word == "datetime":
        return None, None, None, None
    _, digits = _INTEGERS[ColumnType(column.definition.type)]
    return None, None, digits + (word == "bigint" and column.type.unsigned), 0


def _column_rows(_: Context) -> Iterable[tuple[SqlValue, ...]]:
    for name in sorted(TABLES):
        yield from described_columns(TABLES[name])


def found_table(name: str) -> Table:
    """Return a table of information_schema; raises SqlError 1109, or 1235 for one not here."""
    table = TABLES.get(name.upper())
    if table is None and name.upper() in TABLES_ELSEWHERE:
        raise NOT_SUPPORTED_YET.error(f"{INFORMATION_SCHEMA}.{name}")
    if table is None:
        raise UNKNOWN_TABLE.error(name, INFORMATION_SCHEMA)
    return table


def _nothing(_: Context) -> Iterable[tuple[SqlValue, ...]]:
    return ()


_ROWS: Final[dict[str, Callable[[Context], Iterable[tuple[SqlValue, ...]]]]] = {
    "CHARACTER_SETS": _character_sets,
    "COLLATIONS": _collations,
    "COLUMNS": _column_rows,
    "GLOBAL_STATUS": _status,
    "GLOBAL_VARIABLES": _variables("GLOBAL"),
    "PLUGINS": _plugins,
    "PROCESSLIST": _processes,
    "SCHEMATA": _schemata,
    "SESSION_STATUS": _status,
    "SESSION_VARIABLES": _variables("SESSION"),
    "TABLES": _tables,
}
TABLES: Final = {
    name: Table(name, _columns(name), _ROWS.get(name, _nothing)) for name in SCHEMA_COLUMNS
}
