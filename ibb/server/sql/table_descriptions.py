"""DESC, SHOW COLUMNS, SHOW INDEX and SHOW CREATE TABLE, of the tables of information_schema."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ibb.protocol.error_codes import NO_DB_ERROR, NO_SUCH_TABLE, WRONG_OBJECT
from ibb.protocol.fields import LENENC_NULL, lestr
from ibb.protocol.reply import eof
from ibb.protocol.result_set import Column, ColumnType, ResultSet

from .like import PATTERN_CHARS_MAX, is_like
from .select import of_table
from .tables import INFORMATION_SCHEMA, TABLES, described_columns, found_table, written_type
from .types import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .ast import Describe
    from .context import Context
    from .tables import Table

_BRIEF: Final = (
    ("Field", "COLUMN_NAME"),
    ("Type", "COLUMN_TYPE"),
    ("Null", "IS_NULLABLE"),
    ("Key", "COLUMN_KEY"),
    ("Default", "COLUMN_DEFAULT"),
    ("Extra", "EXTRA"),
)
_FULL: Final = (
    *_BRIEF[:2],
    ("Collation", "COLLATION_NAME"),
    *_BRIEF[2:],
    ("Privileges", "PRIVILEGES"),
    ("Comment", "COLUMN_COMMENT"),
)
_INDEX: Final = (
    ("Table", "TABLE_NAME"),
    ("Non_unique", "NON_UNIQUE"),
    ("Key_name", "INDEX_NAME"),
    ("Seq_in_index", "SEQ_IN_INDEX"),
    ("Column_name", "COLUMN_NAME"),
    ("Collation", "COLLATION"),
    ("Cardinality", "CARDINALITY"),
    ("Sub_part", "SUB_PART"),
    ("Packed", "PACKED"),
    ("Null", "NULLABLE"),
    ("Index_type", "INDEX_TYPE"),
    ("Comment", "COMMENT"),
    ("Index_comment", "INDEX_COMMENT"),
    ("Ignored", "IGNORED"),
)
_TEMPORARY_TABLE: Final = "(temporary)"
_NULL: Final = bytes([LENENC_NULL])
_OPTIONS: Final = "DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_general_ci"


def describe(statement: Describe, context: Context) -> ResultSet:
    """
    Answer what a table looks like.

    Raises:
        SqlError: 1046 without a database, 1109 or 1146 no such table, 1235 not here, 1347 no view.
    """
    wanted = statement.table
    database = wanted.database or context.database
    if database is None:
        raise NO_DB_ERROR.error()
    if database.lower() != INFORMATION_SCHEMA:
        raise NO_SUCH_TABLE.error(database, wanted.name)
    table = found_table(wanted.name)
    if statement.what == "CREATE VIEW":
        raise WRONG_OBJECT.error(INFORMATION_SCHEMA, wanted.name, "VIEW")
    if statement.what == "CREATE TABLE":
        return _definition(table, context)
    source = TABLES["COLUMNS"]._replace(rows=lambda _: described_columns(table))
    columns: Sequence[tuple[str, str]] = _FULL if statement.full else _BRIEF
    if statement.what == "INDEX":
        source, columns = TABLES["STATISTICS"], _INDEX
    like = statement.filter.like
    return of_table(
        source,
        columns,
        context,
        keep=statement.filter.where,
        like=None if like is None else ("COLUMN_NAME", like),
    )


def field_list(name: str, pattern: str, context: Context) -> list[bytes]:
    """
    Return what answers COM_FIELD_LIST: the columns of a table, with their defaults, and EOF.

    Raises:
        SqlError: 1046 without a database, 1109 or 1146 no such table, 1235 not here.
    """
    if context.database is None:
        raise NO_DB_ERROR.error()
    if context.database.lower() != INFORMATION_SCHEMA:
        raise NO_SUCH_TABLE.error(context.database, name)
    variables = context.variables
    payloads = []
    for column in found_table(name).columns:
        if pattern and not is_like(column.name, pattern[:PATTERN_CHARS_MAX]):
            continue
        shown = replace(
            column.shown(variables.system_charset, name, column.name), org_table=_TEMPORARY_TABLE
        )
        default = b"" if column.type.kind is Kind.TEXT else b"0"
        encoded = shown.encode(charset=variables.charsets.of_results)
        payloads.append(encoded + (_NULL if column.type.nullable else lestr(default)))
    return [*payloads, eof(status=variables.status)]


def _definition(table: Table, context: Context) -> ResultSet:
    charset = context.variables.system_charset
    columns = [
        Column.text("Table", 64, collation=charset),
        Column.text("Create Table", 1024, collation=charset),
    ]
    lines = ",\n".join(
        f"  `{column.name}` {written_type(column)}{'' if column.type.nullable else ' NOT NULL'}"
        for column in table.columns
    )
    on_disk = any(column.definition.type == ColumnType.BLOB for column in table.columns)
    engine = f"Aria {_OPTIONS} PAGE_CHECKSUM=0" if on_disk else f"MEMORY {_OPTIONS}"
    sql = f"CREATE TEMPORARY TABLE `{table.name}` (\n{lines}\n) ENGINE={engine}"
    return ResultSet(columns, [(table.name, sql)], context.variables.status)
