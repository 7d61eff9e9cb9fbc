"""From a statement of the binlog to what it does to tables."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from ibb.pipeline.tables.row_changes import TableName

from .alter import check_engine, read_alter
from .column_definition import ColumnDefinition, key_columns, read_definition
from .cursor import Cursor, UnclearError, split
from .doubts import after_error, beside_temporary
from .effects import (
    CreateTable,
    DropDatabase,
    DropTables,
    RenameTables,
    TruncateTable,
    Unclear,
)
from .tokens import tokens_of

if TYPE_CHECKING:
    from .effects import Effect
    from .tokens import Token

# Statements that change no row and no shape of a table.
HARMLESS: Final = frozenset(
    {
        "ANALYZE",
        "CHECK",
        "FLUSH",
        "GRANT",
        "OPTIMIZE",
        "REPAIR",
        "REVOKE",
        "SAVEPOINT",
        "SET",
        "KILL",
    }
    | {"INSTALL", "UNINSTALL", "RESET", "HELP", "SHOW", "USE", "SHUTDOWN", "CACHE", "SIGNAL"}
)
AS_STATEMENT: Final = "rows are logged as a statement: set binlog_format=ROW at the source"
ROWS_AS_STATEMENTS: Final = frozenset(
    {"INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "CALL", "EXECUTE", "DO", "SELECT", "WITH"}
)
_TABLE_KEYS: Final = frozenset(
    {"INDEX", "KEY", "UNIQUE", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK", "CONSTRAINT", "PRIMARY"}
    | {"PERIOD"}
)


def effect_of(
    sql: str,
    database: str,
    *,
    ansi_quotes: bool = False,
    error: int = 0,
    uses_temporary: bool = False,
) -> Effect:
    """
    Return what *sql* does to tables; None: nothing that matters to their rows and columns.

    Args:
        sql: a statement, as its Query event has it.
        database: the session's, for names without one.
        ansi_quotes: whether `"x"` is a name.
        error: by which it failed, having done a part; 0: it did not.
        uses_temporary: tables that it names may be the session's temporary ones.
    """
    tokens = tokens_of(sql, ansi_quotes=ansi_quotes)
    cursor = Cursor(tokens)
    try:
        effect = _effect(cursor, database)
    except UnclearError as unclear:
        return Unclear(_tables_in(tokens, database), str(unclear))
    if isinstance(effect, Unclear):
        return Unclear(_tables_in(tokens, database), effect.reason, is_any=True)
    if error:
        return after_error(effect, error)
    return beside_temporary(effect) if uses_temporary else effect


def is_of_rows(sql: str) -> bool:
    """Whether *sql* surely changes rows: what a transaction takes back."""
    cursor = Cursor(tokens_of(sql))
    verb = cursor.take().word
    if verb == "SET" and cursor.any_of("STATEMENT"):
        try:
            _pass_settings(cursor)
        except UnclearError:
            return False
        verb = cursor.take().word
    return verb in ROWS_AS_STATEMENTS


def spreads(sql: str, *, ansi_quotes: bool = False) -> bool:
    """Whether *sql* has a foreign key that changes or deletes rows when others do."""
    words = [token.word for token in tokens_of(sql, ansi_quotes=ansi_quotes)]
    return any(
        on == "ON" and event in ("DELETE", "UPDATE") and what in ("CASCADE", "SET")
        for on, event, what in zip(words, words[1:], words[2:], strict=False)
    )


def _effect(cursor: Cursor, database: str) -> Effect:
    verb = cursor.take().word
    if verb == "SET" and cursor.any_of("STATEMENT"):
        _pass_settings(cursor)
        return _effect(cursor, database)
    if verb in HARMLESS or not verb:
        return None
    if verb in ROWS_AS_STATEMENTS:
        return Unclear((), AS_STATEMENT)
    if verb == "ALTER":
        return read_alter(cursor, database)
    if verb == "CREATE":
        return _create(cursor, database)
    if verb == "DROP":
        return _drop(cursor, database)
    if verb == "RENAME":
        return _rename(cursor, database)
    if verb == "TRUNCATE":
        cursor.any_of("TABLE")
        return TruncateTable(cursor.table_name(database))
    return Unclear((), f"{verb} is a statement that is not known")


def _pass_settings(cursor: Cursor) -> None:
    """Pass `name = value, ... FOR`; what comes then is the statement."""
    depth = 0
    while depth or not cursor.any_of("FOR"):
        if cursor.at_end:
            raise UnclearError("SET STATEMENT without FOR")
        token = cursor.take()
        if token.value.lower().removeprefix("@@") == "sql_mode" and token.is_identifier:
            raise UnclearError("SET STATEMENT sql_mode: the log does not tell how it was read")
        if token.kind == "sign":
            depth += {"(": 1, ")": -1}.get(token.value, 0)


def _create(cursor: Cursor, database: str) -> Effect:
    replace = cursor.words("OR", "REPLACE")
    if replace and cursor.any_of("DATABASE", "SCHEMA"):
        return DropDatabase(cursor.name())
    if cursor.any_of("TEMPORARY"):
        return None
    if replace and cursor.any_of("SEQUENCE"):
        return DropTables((cursor.table_name(database),))
    if not cursor.any_of("TABLE"):
        return None  # databases, views, users ...; indexes too
    if_missing = cursor.words("IF", "NOT", "EXISTS")
    table = cursor.table_name(database)
    if cursor.any_of("LIKE"):
        return CreateTable(table, (), (), replace, if_missing, cursor.table_name(database))
    if _selects(cursor):
        return CreateTable(table, (), (), replace, if_missing, fills=True)
    group = cursor.group()
    inside = Cursor(group)
    if inside.any_of("LIKE"):
        return CreateTable(table, (), (), replace, if_missing, inside.table_name(database))
    columns: list[ColumnDefinition] = []
    key: tuple[str, ...] = ()
    for part in split(group):
        item = Cursor(part)
        if item.peek().word in _TABLE_KEYS:
            key = _table_key(item) or key
            continue
        name = item.name()
        columns.append(read_definition(name, item))
        if columns[-1].is_key:
            key = (name,)
    charset = _table_charset(cursor)
    if charset:
        columns = [_with_charset(column, charset) for column in columns]
    return CreateTable(table, tuple(columns), key, replace, if_missing)


def _selects(cursor: Cursor) -> bool:
    """
    Whether CREATE TABLE takes rows from a query, which is never so where its rows are logged.

    No definition has a query in it; those of partitions have `VALUES IN` and `VALUES LESS`.
    """
    tokens = cursor.ahead()
    return any(token.word == "SELECT" for token in tokens) or any(
        token.word == "VALUES" and behind.value == "(" for token, behind in pairwise(tokens)
    )


def _table_key(item: Cursor) -> tuple[str, ...]:
    if item.any_of("CONSTRAINT") and item.peek().word not in _TABLE_KEYS:
        item.name()
    if item.any_of("PERIOD"):
        raise UnclearError("a period")
    if not item.words("PRIMARY", "KEY"):
        return ()
    while not item.at_end and item.peek().value != "(":
        item.take()
    return key_columns(item.group())


def _table_charset(cursor: Cursor) -> str:
    """Return the character set of the table's options; WITH SYSTEM VERSIONING is refused."""
    charset = ""
    while not cursor.at_end:
        if cursor.words("SYSTEM", "VERSIONING"):
            raise UnclearError("system versioning")
        if cursor.any_of("ENGINE"):
            cursor.sign("=")
            check_engine(cursor.take().value)
            continue
        is_set = cursor.words("CHARACTER", "SET") or bool(cursor.any_of("CHARSET"))
        if is_set or cursor.any_of("COLLATE"):
            cursor.sign("=")
            value = cursor.take().value.lower()
            charset = value if is_set else charset or value.partition("_")[0]
        else:
            cursor.take()
    return charset


def _with_charset(column: ColumnDefinition, charset: str) -> ColumnDefinition:
    if column.charset:
        return column
    return ColumnDefinition(**{**vars(column), "charset": charset})


def _drop(cursor: Cursor, database: str) -> Effect:
    if cursor.any_of("DATABASE", "SCHEMA"):
        cursor.words("IF", "EXISTS")
        return DropDatabase(cursor.name())
    if cursor.any_of("TEMPORARY") or not cursor.any_of("TABLE", "TABLES"):
        return None
    cursor.words("IF", "EXISTS")
    tables = [cursor.table_name(database)]
    while cursor.sign(","):
        tables.append(cursor.table_name(database))
    return DropTables(tuple(tables))


def _rename(cursor: Cursor, database: str) -> Effect:
    if not cursor.any_of("TABLE", "TABLES"):
        return None  # of users
    if_there = cursor.words("IF", "EXISTS")
    pairs = []
    while not cursor.at_end:
        old = cursor.table_name(database)
        if cursor.any_of("WAIT"):
            cursor.take()
        cursor.any_of("NOWAIT")
        if not cursor.any_of("TO"):
            raise UnclearError("RENAME TABLE without TO")
        pairs.append((old, cursor.table_name(database)))
        if not cursor.sign(","):
            break
    return RenameTables(tuple(pairs), if_there)


def _tables_in(tokens: list[Token], database: str) -> tuple[TableName, ...]:
    """Return every name that may be a table's: a statement which is not understood says no more."""
    found = []
    for index, token in enumerate(tokens):
        if not token.is_identifier or (index and tokens[index - 1].value == "."):
            continue
        found.append(TableName(database, token.value))
        behind = tokens[index + 1 : index + 3]
        if len(behind) == 2 and behind[0].value == "." and behind[1].is_identifier:
            found.append(TableName(token.value, behind[1].value))
    return tuple(found)
