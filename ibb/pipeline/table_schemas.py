"""
Schemas of tables by time, for primaries whose table maps say nothing but types.

They come from a JSON file, or from the information_schema of a server as it is at a position:

    {"tables": [{"database": "shop", "table": "orders", "since": "0-1-100", "key": ["id"],
                 "columns": [{"name": "id", "type": "int(10) unsigned"},
                             {"name": "note", "type": "text", "charset": "utf8mb4"}]}]}

or, for tables that never change, in short:

    {"shop.orders": {"columns": [...], "key": ["id"]}}

A schema holds from `since` on, a list of the first GTIDs that it holds for, one of each domain;
without one from the beginning; until the next of its table. Rows of before the first are left
without: today's definition is not yesterday's. Whether a schema is that of the rows is checked as
far as table maps tell (`layout_of`).
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
    """
    Schemas of tables, each from a position on.

    Args:
        holds_in_new_domains: a version whose position does not name a domain holds for all of its
            groups: they came later.
    """

    def __init__(self, *, holds_in_new_domains: bool = False) -> None:
        self._versions: dict[tuple[str, str], list[_Version]] = {}
        self._holds_in_new_domains = holds_in_new_domains

    def add(
        self,
        database: str,
        table: str,
        schema: TableSchema | None,
        since: GtidPosition | None = None,
    ) -> None:
        """
        Let a table have *schema* from the GTIDs *since* on; its versions come in their order.

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

        A version whose position does not name the group's domain holds for none of its groups,
        if it was not said otherwise.
        """
        found = None
        for version in self._versions.get((database, table), ()):
            begin = None if version.since is None else version.since.get(gtid.domain)
            is_open = version.since is None or (begin is None and self._holds_in_new_domains)
            if is_open or (begin is not None and begin.seq <= gtid.seq):
                found = version.schema
        return found

    def always(self, database: str, table: str) -> tuple[bool, TableSchema | None]:
        """Tell whether `find` returns the same for all groups, and if so, what."""
        versions = self._versions.get((database, table), ())
        if not versions:
            return True, None
        is_same = len(versions) == 1 and versions[0].since is None
        return is_same, versions[0].schema if is_same else None

    def newest(self) -> list[tuple[str, str, TableSchema, GtidPosition | None]]:
        """Return database, table, schema and its beginning, of each table as it is known last."""
        return [
            (*name, versions[-1].schema, versions[-1].since)
            for name, versions in self._versions.items()
            if versions[-1].schema is not None
        ]

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
            content = json.loads(text)
            tables = content["tables"] if "tables" in content else _of_short_form(content)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
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
            assume_unchanged: they hold for rows of before, too; else behind the server's position.

        Raises:
            SchemaError: the server went on writing during each of `READS_MAX` tries.
        """
        for _ in range(READS_MAX):
            before = _position(query)
            columns = list(query(_COLUMNS))
            keys = list(query(_KEYS))
            if assume_unchanged or before == _position(query):
                since = None if assume_unchanged else behind(GtidPosition.parse(before))
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


def behind(position: GtidPosition) -> GtidPosition:
    """Return the first GTIDs behind a position."""
    return GtidPosition(gtid._replace(seq=gtid.seq + 1) for gtid in position)


def _of_short_form(content: dict[str, Any]) -> list[dict[str, Any]]:
    tables = []
    for name, said in content.items():
        database, dot, table = name.partition(".")
        if not dot:
            raise ValueError(f"'{name}' is not database.table")
        tables.append({"database": database, "table": table, **said})
    return tables


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
