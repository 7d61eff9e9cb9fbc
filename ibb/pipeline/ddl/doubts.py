"""Statements that may have done something else than their text says, by what is logged beside."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from ibb.pipeline.tables.row_changes import TableName


def after_error(effect: Effect, error: int) -> Effect:
    """
    Return *effect* of a statement that failed by *error*, and was logged for a part that it did.

    CREATE OR REPLACE TABLE that fails has dropped the table. DROP DATABASE is logged when all of it
    was done.
    """
    if effect is None or isinstance(effect, DropDatabase):
        return effect
    reason = f"it failed at the source by error {error}, and may have done a part"
    return Unclear(_tables_of(effect), reason)


def beside_temporary(effect: Effect) -> Effect:
    """
    Return *effect* of a statement that may mean a temporary table, which hides one of its name.

    TRUNCATE is marked for that alone. ALTER is for functions of the session too, and CREATE OR
    REPLACE and DROP always are; those never mean a temporary table without saying so.
    """
    if isinstance(effect, TruncateTable):
        return None
    if isinstance(effect, AlterTable) and (effect.effects or effect.new_name):
        return Unclear(_tables_of(effect), "a temporary table of that name may be meant")
    if isinstance(effect, CreateTable) and effect.like is not None and not effect.replace:
        name = effect.like
        return Unclear((effect.table, name), f"a temporary table {name} may be meant")
    return effect


def _tables_of(
    effect: AlterTable | CreateTable | DropTables | RenameTables | TruncateTable | Unclear,
) -> tuple[TableName, ...]:
    if isinstance(effect, RenameTables):
        return tuple(name for pair in effect.pairs for name in pair)
    if isinstance(effect, DropTables | Unclear):
        return effect.tables
    return (effect.table,)
