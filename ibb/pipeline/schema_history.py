"""
Schemas of tables from the statements of the history itself, which define and change them.

A column without a character set of its own has that of its table, and a table without one that of
its database then, not the server's. What a statement leaves unclear is not guessed: the table has
no schema from there on, and rows that would need one are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.rows.table_schema import ColumnSchema, SchemaError, TableSchema

from .ddl.altered_columns import altered
from .ddl.effects import (
    AlterTable,
    CreateTable,
    DropDatabase,
    DropTables,
    RenameTables,
    Unclear,
)
from .ddl.meant import as_meant
from .ddl.session_modes import DEFAULT_MODES, SessionModes
from .ddl.statement import ROWS_AS_STATEMENTS, effect_of
from .ddl.tokens import tokens_of
from .table_schemas import TableSchemas
from .tables.row_changes import TableName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ibb.protocol.gtid import GtidPosition

    from .ddl.column_definition import ColumnDefinition
    from .ddl.tokens import Token

_TEXTS: Final = frozenset(
    {"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set"}
)
_NOT_OF_TABLES: Final = frozenset({"BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "XA"})
_CHARSET_WORDS: Final = frozenset({"CHARACTER", "CHARSET", "COLLATE"})
_OTHER_CHARSETS: Final = frozenset({"NATIONAL", "UNICODE"})  # words that imply one of their own


class _Table(NamedTuple):
    """A table as it is now; *charset* is its default, None if that is not known."""

    schema: TableSchema
    charset: str | None


class SchemaHistory:
    """
    Follows the statements of a history, in its order.

    `schemas` has what they come to: each version from the group behind its statement on.

    Args:
        lower_case: names of tables are in lower case there (lower_case_table_names=1).
    """

    def __init__(self, *, lower_case: bool = False) -> None:
        self.schemas = TableSchemas(holds_in_new_domains=True)
        self._lower_case = lower_case
        self._tables: dict[TableName, _Table] = {}
        self._charsets: dict[str, str] = {}  # of databases
        self._dropped: set[str] = set()  # databases, and not there since

    def follow(
        self,
        sql: str,
        database: str,
        position: GtidPosition,
        *,
        modes: SessionModes = DEFAULT_MODES,
        server_charset: str = "",
        error: int = 0,
        uses_temporary: bool = False,
    ) -> None:
        """
        Take a statement; those that define nothing change nothing.

        Of an ALTER in two phases only the COMMIT ALTER is to be told.

        Args:
            sql: as its Query event has it.
            database: the session's.
            position: its GTID, and of other domains the first behind it: what comes from there on
                has what it makes.
            modes: of the session.
            server_charset: the server's default then, empty if it is not known.
            error: by which it failed, having done a part; 0: it did not.
            uses_temporary: tables that it names may be the session's temporary ones.
        """
        tokens = tokens_of(sql, ansi_quotes=modes.ansi_quotes)
        words = [token.word for token in tokens]
        if not words or words[0] in _NOT_OF_TABLES | ROWS_AS_STATEMENTS:
            return
        if words[0] in ("CREATE", "ALTER") and {"DATABASE", "SCHEMA"} & set(words[1:4]):
            self._define_database(tokens, database, server_charset)
        effect = effect_of(
            sql,
            database,
            ansi_quotes=modes.ansi_quotes,
            error=error,
            uses_temporary=uses_temporary,
        )
        before = dict(self._tables)
        unclear = _OTHER_CHARSETS.intersection(words)
        if isinstance(effect, CreateTable):
            self._create(effect, modes)
        elif isinstance(effect, AlterTable):
            self._alter(effect, modes, keeps_charset=not _CHARSET_WORDS.intersection(words))
        elif isinstance(effect, RenameTables):
            for old, new in effect.pairs:
                self._move(self._name(old), self._name(new))
        elif isinstance(effect, DropTables):
            for table in effect.tables:
                self._tables.pop(self._name(table), None)
        elif isinstance(effect, DropDatabase):
            if words[0] == "DROP":
                self._charsets.pop(effect.database, None)
                self._dropped.add(effect.database)
            gone = self._name(TableName(effect.database, "")).database
            self._forget([table for table in self._tables if table.database == gone])
        elif isinstance(effect, Unclear):
            named = [] if effect.is_any else [self._name(table) for table in effect.tables]
            self._forget(named or list(self._tables))
        if unclear and isinstance(effect, CreateTable | AlterTable):
            self._forget([self._name(effect.table)])
        self._tell(before, position)

    def begin_with(self, known: TableSchemas) -> None:
        """Know the tables of *known*, as they were before the first statement."""
        for database, table, schema, since in known.newest():
            self._tables[self._name(TableName(database, table))] = _Table(schema, None)
            self.schemas.add(database, table, schema, since)

    def _name(self, table: TableName) -> TableName:
        if not self._lower_case:
            return table
        return TableName(table.database.lower(), table.table.lower())

    def _forget(self, tables: Sequence[TableName]) -> None:
        for table in tables:
            self._tables.pop(table, None)

    def _move(self, old: TableName, new: TableName) -> None:
        found = self._tables.pop(old, None)
        if found is None:
            self._tables.pop(new, None)
        else:
            self._tables[new] = found

    def _tell(self, before: dict[TableName, _Table], position: GtidPosition) -> None:
        """Give `schemas` what has changed."""
        for table in before.keys() | self._tables.keys():
            old, new = before.get(table), self._tables.get(table)
            if old is None or new is None or old.schema != new.schema:
                if old is new:
                    continue
                schema = new.schema if new else None
                self.schemas.add(table.database, table.table, schema, position.copy())

    def _define_database(self, tokens: list[Token], database: str, server_charset: str) -> None:
        """Note the default character set of a database."""
        words = [token.word for token in tokens]
        at = next(index for index, word in enumerate(words) if word in ("DATABASE", "SCHEMA")) + 1
        while at < len(words) and words[at] in ("IF", "NOT", "EXISTS"):
            at += 1
        is_named = at < len(tokens) and words[at] not in _CHARSET_WORDS | {"DEFAULT", "COMMENT"}
        name = tokens[at].value if is_named else database
        charset = _charset_option(tokens[at:])
        if words[0] == "CREATE":
            if "IF" in words[:at] and name not in self._dropped:
                return  # it may be there, with another one
            self._dropped.discard(name)
            charset = charset or server_charset
            if not charset:
                self._charsets.pop(name, None)
        if charset:
            self._charsets[name] = charset

    def _create(self, effect: CreateTable, modes: SessionModes) -> None:
        table = self._name(effect.table)
        if effect.if_missing and table in self._tables:
            return
        if effect.fills:  # and may have columns of the query
            self._tables.pop(table, None)
            return
        if effect.like is not None:
            like = self._tables.get(self._name(effect.like))
            if like is None:
                self._tables.pop(table, None)
            else:
                self._tables[table] = like
            return
        default: str | None = self._charsets.get(effect.table.database)
        # Columns that are no texts show what the table's own option is: they have none besides.
        others = [column.charset for column in effect.columns if not _is_text(column)]
        own = others[0] if others else None
        columns = tuple(_column(as_meant(column, modes), default) for column in effect.columns)
        charset = None if own is None else own or default
        self._tables[table] = _Table(TableSchema(columns, effect.key), charset)

    def _alter(self, effect: AlterTable, modes: SessionModes, *, keeps_charset: bool) -> None:
        table = self._name(effect.table)
        found = self._tables.get(table)
        if found is None:
            if effect.new_name is not None:
                self._tables.pop(self._name(effect.new_name), None)
            return
        charset = found.charset if keeps_charset else None
        try:
            schema = altered(
                found.schema,
                effect.effects,
                lambda column: _column(as_meant(column, modes), charset),
            )
        except SchemaError:
            self._tables.pop(table)
            return
        self._tables[table] = _Table(schema, charset)
        if effect.new_name is not None:
            self._move(table, self._name(effect.new_name))


def _is_text(column: ColumnDefinition) -> bool:
    return ColumnSchema(column.name, column.type_text).type_name in _TEXTS | {"json"}


def _column(column: ColumnDefinition, default: str | None) -> ColumnSchema:
    """Return a definition as a schema has it; a character set that is not known is None."""
    text = column.type_text.replace("\\", "\\\\")  # its labels are without escapes
    name = ColumnSchema(column.name, text).type_name
    if name == "json":
        return ColumnSchema(column.name, text, "utf8mb4")
    if name in ("nchar", "nvarchar"):
        return ColumnSchema(column.name, text, "utf8mb3")
    charset = (column.charset or default) if name in _TEXTS else None
    return ColumnSchema(column.name, text, charset)


def _charset_option(tokens: list[Token]) -> str:
    """Return the character set that the options of a database name, empty if none."""
    found = ""
    for index, token in enumerate(tokens):
        if token.word not in _CHARSET_WORDS:
            continue
        behind = [
            other.value
            for other in tokens[index + 1 : index + 4]
            if other.value != "=" and other.word != "SET"
        ]
        if behind and token.word == "COLLATE":
            found = found or behind[0].lower().partition("_")[0]
        elif behind:
            found = behind[0].lower()
    return found
