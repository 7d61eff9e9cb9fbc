"""Names of tables as a server compares them: its `lower_case_table_names`."""

from __future__ import annotations

from ibb.pipeline.tables.row_changes import TableName

from .effects import (
    AlterTable,
    CreateTable,
    DropDatabase,
    DropTables,
    Effect,
    RenameTables,
    TruncateTable,
    Unclear,
)


def in_lower_case(effect: Effect) -> Effect:
    """Return *effect* with the names of all its tables and databases in lower case."""
    if isinstance(effect, AlterTable):
        new = effect.new_name
        return effect._replace(table=effect.table.lower(), new_name=new.lower() if new else None)
    if isinstance(effect, CreateTable):
        like = effect.like
        return effect._replace(table=effect.table.lower(), like=like.lower() if like else None)
    if isinstance(effect, TruncateTable):
        return TruncateTable(effect.table.lower())
    if isinstance(effect, DropDatabase):
        return DropDatabase(effect.database.lower())
    if isinstance(effect, RenameTables):
        return effect._replace(pairs=tuple((old.lower(), new.lower()) for old, new in effect.pairs))
    if isinstance(effect, DropTables | Unclear):
        return effect._replace(tables=_lower(effect.tables))
    return effect


def _lower(tables: tuple[TableName, ...]) -> tuple[TableName, ...]:
    return tuple(name.lower() for name in tables)
