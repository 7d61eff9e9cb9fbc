"""What a statement does to tables, as far as change tables follow it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ibb.pipeline.tables.row_changes import TableName

    from .column_definition import ColumnDefinition


class AddColumn(NamedTuple):
    """A new column; nothing when *if_missing* and it is there."""

    definition: ColumnDefinition
    if_missing: bool = False


class DropColumn(NamedTuple):
    """A column goes; nothing when *if_there* and it is not."""

    name: str
    if_there: bool = False


class ChangeColumn(NamedTuple):
    """The column *old* is defined anew, perhaps under another name."""

    old: str
    definition: ColumnDefinition
    if_there: bool = False


class RenameColumn(NamedTuple):
    """A column has another name."""

    old: str
    new: str
    if_there: bool = False


class SetKey(NamedTuple):
    """The primary key is this; empty: there is none any more."""

    columns: tuple[str, ...]
    if_missing: bool = False


ColumnEffect = AddColumn | DropColumn | ChangeColumn | RenameColumn | SetKey


class AlterTable(NamedTuple):
    """A table has another shape; *effects* in their order, and perhaps another name at last."""

    table: TableName
    effects: tuple[ColumnEffect, ...]
    new_name: TableName | None = None


class CreateTable(NamedTuple):
    """A new table; *like*: shaped as that one; *fills*: with rows that are nowhere in the log."""

    table: TableName
    columns: tuple[ColumnDefinition, ...]
    key: tuple[str, ...]
    replace: bool = False
    if_missing: bool = False
    like: TableName | None = None
    fills: bool = False


class DropTables(NamedTuple):
    """Tables go."""

    tables: tuple[TableName, ...]


class DropDatabase(NamedTuple):
    """All tables of a database go."""

    database: str


class RenameTables(NamedTuple):
    """
    Tables, or views, get other names, one after the other.

    Args:
        pairs: of an old and a new name.
        if_there: those whose old name nothing has at that moment are left out (IF EXISTS).
    """

    pairs: tuple[tuple[TableName, TableName], ...]
    if_there: bool = False


class TruncateTable(NamedTuple):
    """A table is emptied."""

    table: TableName


class Unclear(NamedTuple):
    """
    What is done to *tables* is not known for certain.

    Args:
        tables: every name that may be a table's.
        reason: why.
        is_any: it may be any other table of the session's database too.
    """

    tables: tuple[TableName, ...]
    reason: str
    is_any: bool = False


Effect = (
    AlterTable
    | CreateTable
    | DropTables
    | DropDatabase
    | RenameTables
    | TruncateTable
    | Unclear
    | None
)
