"""
Schemas of tables by time, for primaries whose table maps say nothing but types.

They come from a JSON file, or from the information_schema of a server as it is at a position:

    {"tables": [{"database": "shop", "table": "orders", "since": "0-1-100", "key": ["id"],
                 "columns": [{"name": "id", "type": "int(10) unsigned"},
                             {"name": "note", "type": "text", "charset": "utf8mb4"}]}]}

A schema holds from the GTID position `since` on, without one from the beginning, until the next of
its table. Rows of before the first are left without: today's definition is not yesterday's.
Whether a schema is that of the rows is checked as far as table maps tell (`layout_of`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ibb.protocol.errors import SqlError
from ibb.protocol.gtid import GtidPosition
from ibb.protocol.rows.table_schema import ColumnSchema, SchemaError, TableSchema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ibb.protocol.gtid import Gtid

TABLES_MAX: Final = 100_000
READS_MAX: Final = 10  # of a server's definitions, until none changes meanwhile

_COLUMNS: Final = """
    SELECT c.TABLE_SCHEMA, c.TABLE_NAME, c.COLUMN_NAME, c.COLUMN_TYPE, c.CHARACTER_SET_NAME,
        c.EXTRA LIKE '%INVISIBLE%'
    FROM information_schema.COLUMNS c JOIN information_schema.TABLES t
        USING (TABLE_SCHEMA, TABLE_NAME)
    WHERE t.TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED', 'SEQUENCE')
        AND c.TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')
    ORDER BY c.TABLE_SCHEMA, c.TABLE_NAME, c.ORDINAL_POSITION"""
_KEYS: Final = """
    SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME FROM information_schema.STATISTICS
    WHERE INDEX_NAME = 'PRIMARY'
        AND TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')
    ORDER BY TABLE_SCHEMA, TABLE_NAME, SEQ_IN_INDEX"""
_POSITION: Final = "SELECT @@GLOBAL.gtid_binlog_pos"


class _Version(NamedTuple):
    """A schema, None if it is not known, and from where on; None: from the beginning."""

    since: GtidPosition | None
    schema: TableSchema | None


class TableSchemas:
    """Schemas of tables, each from a position on."""

    def __init__(self) -> None:
        self._versions: dict[tuple[str, str], list[_Version]] = {}

    def add(
        self,
        database: str,
        table: str,
        schema: TableSchema | None,
        since: GtidPosition | None = None,
    ) -> None:
        """
        Let a table have *schema* from *since* on; versions of a table come in their order.

        A *schema* of None is one that is not known.

        Raises:
            SchemaError: there are more than `TABLES_MAX` tables.
        """
        if len(self._versions) >= TABLES_MAX:
            raise SchemaError(f"more than {TABLES_MAX} tables in the schemas")
        self._versions.setdefault((database, table), []).append(_Version(since, schema))

    def find(self, database: str, table: str, gtid: Gtid) -> TableSchema | None:
        """
        Return the schema that a table had in the group *gtid*, None if it is not known.

        A version whose position does not name the group's domain holds for none of its groups.
        """
        found = None
        for version in self._versions.get((database, table), ()):
            begin = None if version.since is None else version.since.get(gtid.domain)
            if version.since is None or (begin is not None and begin.seq <= gtid.seq):
                found = version.schema
        return found

    def names(self) -> list[tuple[str, str]]:
        """Return database and table of all that have had a schema."""
        return list(self._versions)

    @classmethod
    def from_json(cls, text: str) -> TableSchemas:
        """
        Read the schemas of a JSON file.

        Raises:
            SchemaError: it is no JSON, or not of the form above; the text names the place.
        """
        try:
            tables = json.loads(text)["tables"]
        except (ValueError, KeyError, TypeError) as error:
            raise SchemaError(f'schemas are a JSON object {{"tables": [...]}}: {error!r}') from None
        if not isinstance(tables, list):
            raise SchemaError('schemas: "tables" is no list')
        schemas = cls()
        for number, table in enumerate(tables):
            try:
                schemas.add(*_read_table(table))
            except (KeyError, TypeError, ValueError, AttributeError, SqlError) as error:
                raise SchemaError(f"schemas: table {number} of the file: {error!r}") from None
        return schemas

    @classmethod
    def from_server(
        cls,
        query: Callable[[str], Iterable[Sequence[Any]]],
        *,
        assume_unchanged: bool = False,
    ) -> TableSchemas:
        """
        Read the definitions of all tables of a server.

        Args:
            query: runs a statement there and returns its rows.
            assume_unchanged: they hold for rows of before, too; else from the server's position on.

        Raises:
            SchemaError: the server went on writing during each of `READS_MAX` tries.
        """
        for _ in range(READS_MAX):
            before = _position(query)
            columns = list(query(_COLUMNS))
            keys = list(query(_KEYS))
            if assume_unchanged or before == _position(query):
                since = None if assume_unchanged else GtidPosition.parse(before)
                return cls._of_rows(columns, keys, since)
        raise SchemaError(
            f"the server's position moved in each of {READS_MAX} reads of its definitions: read "
            "them while nobody writes, or say that they have not changed"
        )

    @classmethod
    def _of_rows(
        cls,
        columns: Iterable[Sequence[Any]],
        keys: Iterable[Sequence[Any]],
        since: GtidPosition | None,
    ) -> TableSchemas:
        found: dict[tuple[str, str], list[ColumnSchema]] = {}
        for database, table, name, kind, charset, hidden in columns:
            column = ColumnSchema(name, _text(kind), charset, visible=not int(hidden))
            found.setdefault((database, table), []).append(column)
        key_names: dict[tuple[str, str], list[str]] = {}
        for database, table, name in keys:
            key_names.setdefault((database, table), []).append(name)
        schemas = cls()
        for place, table_columns in found.items():
            schema = TableSchema(tuple(table_columns), tuple(key_names.get(place, ())))
            schemas.add(*place, schema, since)
        return schemas


def _position(query: Callable[[str], Iterable[Sequence[Any]]]) -> str:
    return str(next(iter(query(_POSITION)))[0])


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _read_table(table: dict[str, Any]) -> tuple[str, str, TableSchema, GtidPosition | None]:
    columns = tuple(
        ColumnSchema(
            column["name"], column["type"], column.get("charset"), column.get("visible", True)
        )
        for column in table["columns"]
    )
    for column in columns:
        column.type_name  # noqa: B018 - says what is wrong with it
    since = table.get("since")
    return (
        table["database"],
        table["table"],
        TableSchema(columns, tuple(table.get("key", ()))),
        None if since is None else GtidPosition.parse(since),
    )
