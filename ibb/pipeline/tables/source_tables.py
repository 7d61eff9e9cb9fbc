"""What the source's MariaDB says of its tables: which there are, their columns and keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pymysql

from ibb.pipeline.ddl.cursor import UnclearError

from .errors import PipelineError
from .generated import generated_kind, logs_generated
from .row_changes import TableName
from .shape import column_field
from .storable import check_names

if TYPE_CHECKING:
    from collections.abc import Callable

_TRANSACTIONAL: Final = frozenset({"InnoDB", "RocksDB"})


class TableRedefined(PipelineError):  # noqa: N818 - it is tried again
    """A name means another table than when a view began, or none, or one that was defined anew."""


class SourceTable(NamedTuple):
    """
    A table as the server has it: its columns in their order, and its primary key.

    Attributes:
        named_at: when it was defined so, or got its name, in the server's seconds since 1970;
            None: the server does not tell.
    """

    name: TableName
    schema: pa.Schema
    key: tuple[str, ...]
    named_at: int | None = None


def source_tables(
    connection: pymysql.Connection[Any], wants: Callable[[TableName], bool]
) -> list[SourceTable]:
    """
    Return the tables that are wanted.

    Raises:
        PipelineError: one cannot be kept as a change table; it says why.
    """
    rows = rows_of(
        connection,
        "SELECT TABLE_SCHEMA, TABLE_NAME, ENGINE, TABLE_TYPE, @@lower_case_table_names, "
        "UNIX_TIMESTAMP(CREATE_TIME) FROM information_schema.TABLES "
        "WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') "
        "AND TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys') "
        "ORDER BY 1, 2",
    )
    found = []
    for database, table, engine, kind, letter_case, named in rows:
        spelled = TableName(database, table)
        name = spelled.lower() if letter_case else spelled
        if not wants(name):
            continue
        if engine not in _TRANSACTIONAL or kind != "BASE TABLE":
            raise PipelineError(
                f"{name}: {kind} of engine {engine} has no consistent snapshot: leave it out "
                "(tables.exclude), or make it an InnoDB table without system versioning"
            )
        _check_foreign_keys(connection, spelled)
        found.append(_table(connection, spelled)._replace(name=name, named_at=_seconds(named)))
    return found


def named_at(connection: pymysql.Connection[Any], name: TableName) -> int | None:
    """Return `SourceTable.named_at` of a table; None as well if there is none of that name."""
    found = rows_of(
        connection,
        "SELECT UNIX_TIMESTAMP(CREATE_TIME) FROM information_schema.TABLES "
        "WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
        *name,
    )
    return _seconds(found[0][0]) if found else None


def _seconds(value: Any) -> int | None:
    return None if value is None else int(value)


def rows_of(
    connection: pymysql.Connection[Any], sql: str, *values: object
) -> list[tuple[Any, ...]]:
    """
    Return what a statement answers.

    Raises:
        PipelineError: the server refuses it.
    """
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql, values or None)
            return list(cursor.fetchall())
    except pymysql.Error as error:
        raise PipelineError(f"the server refused '{sql[:80]}': {error.args[-1]}") from error


def quoted(*names: str) -> str:
    """Return names, of a table and its database or of a column, as SQL has them."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


def _check_foreign_keys(connection: pymysql.Connection[Any], name: TableName) -> None:
    """Check that no foreign key changes rows by itself: the binlog does not hold that."""
    found = rows_of(
        connection,
        "SELECT CONSTRAINT_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS "
        "WHERE CONSTRAINT_SCHEMA = %s AND TABLE_NAME = %s "
        "AND NOT (UPDATE_RULE IN ('RESTRICT', 'NO ACTION') "
        "AND DELETE_RULE IN ('RESTRICT', 'NO ACTION'))",
        *name,
    )
    if found:
        raise PipelineError(
            f"{name}: its foreign key {found[0][0]} changes or deletes rows when others do "
            "(ON DELETE or ON UPDATE), which the binlog does not hold: leave the table out "
            "(tables.exclude), or make that RESTRICT"
        )


def _table(connection: pymysql.Connection[Any], name: TableName) -> SourceTable:
    columns = rows_of(
        connection,
        "SELECT COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME, EXTRA, VERSION() "
        "FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s "
        "ORDER BY ORDINAL_POSITION",
        *name,
    )
    key = rows_of(
        connection,
        "SELECT COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = %s "
        "AND TABLE_NAME = %s AND CONSTRAINT_NAME = 'PRIMARY' ORDER BY ORDINAL_POSITION",
        *name,
    )
    try:
        fields = [
            column_field(
                column, kind, charset or "", generated_kind(extra, logged=logs_generated(version))
            )
            for column, kind, charset, extra, version in columns
        ]
        check_names(field.name for field in fields)
    except (UnclearError, PipelineError) as error:
        raise PipelineError(f"{name}: {error}") from error
    parts = tuple(column for (column,) in key)
    return SourceTable(name, pa.schema(fields), parts)
