"""
The columns of a table behind an ALTER TABLE, in the order that its rows have.

As MariaDB makes them: first what becomes of each column that there is, all of them under the names
that they had before; then, in the statement's order, those that are new or that it puts elsewhere,
each behind a column as it is named by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ibb.protocol.rows.table_schema import ColumnSchema, SchemaError, TableSchema

from .effects import AddColumn, ChangeColumn, DropColumn, RenameColumn, SetKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from .column_definition import ColumnDefinition
    from .effects import ColumnEffect


def altered(
    schema: TableSchema,
    effects: Sequence[ColumnEffect],
    column_of: Callable[[ColumnDefinition], ColumnSchema],
) -> TableSchema:
    """
    Return the schema behind *effects*.

    Args:
        schema: of the table before.
        effects: of one ALTER TABLE.
        column_of: makes a column of its definition.

    Raises:
        SchemaError: they do not fit the table: it is another one than *schema* says.
    """
    before = {column.name.lower() for column in schema.columns}
    changes = _changes(before, effects)
    columns = _kept(schema, changes, column_of)
    keys: list[SetKey] = []
    for effect in effects:
        if isinstance(effect, SetKey):
            keys.append(effect)
            continue
        if isinstance(effect, AddColumn):
            name = effect.definition.name.lower()
            if effect.if_missing and name in before:
                continue
            before.add(name)
            _insert(columns, _Placed(column_of(effect.definition), name), effect.definition.place)
        elif not isinstance(effect, ChangeColumn) or changes.get(effect.old.lower()) is not effect:
            continue
        elif effect.definition.place:
            placed = _Placed(column_of(effect.definition), effect.old.lower())
            _insert(columns, placed, effect.definition.place)
        if effect.definition.is_key:
            keys.append(SetKey((effect.definition.name,)))
    if len({placed.column.name.lower() for placed in columns}) != len(columns):
        raise SchemaError("two columns have one name")
    return TableSchema(tuple(placed.column for placed in columns), _key(schema, columns, keys))


class _Placed(NamedTuple):
    """A column in its place; *known_as*: the name that a key of before knows it by."""

    column: ColumnSchema
    known_as: str


def _key(
    schema: TableSchema, columns: Sequence[_Placed], keys: Iterable[SetKey]
) -> tuple[str, ...]:
    parts = [
        next((placed.column.name for placed in columns if placed.known_as == name.lower()), None)
        for name in schema.key
    ]
    key = tuple(part for part in parts if part is not None)
    for new in keys:
        if not (new.if_missing and key):
            key = new.columns
    names = {placed.column.name.lower(): placed.column.name for placed in columns}
    return tuple(names.get(name.lower(), name) for name in key)


def _changes(before: set[str], effects: Iterable[ColumnEffect]) -> dict[str, ColumnEffect]:
    """Return what becomes of columns, by the names that they had, in lower case."""
    changes: dict[str, ColumnEffect] = {}
    for effect in effects:
        if isinstance(effect, AddColumn | SetKey):
            continue
        old = (effect.name if isinstance(effect, DropColumn) else effect.old).lower()
        if old in changes and not (isinstance(effect, DropColumn) and effect.if_there):
            raise SchemaError(f"two things become of the column `{old}`")
        if old in before:
            changes.setdefault(old, effect)
        elif not effect.if_there:
            raise SchemaError(f"there is no column `{old}`")
    return changes


def _kept(
    schema: TableSchema,
    changes: dict[str, ColumnEffect],
    column_of: Callable[[ColumnDefinition], ColumnSchema],
) -> list[_Placed]:
    """Return the columns that stay in their places."""
    columns = []
    for column in schema.columns:
        name = column.name.lower()
        change = changes.get(name)
        if isinstance(change, ChangeColumn):
            if not change.definition.place:
                columns.append(_Placed(column_of(change.definition), name))
        elif not isinstance(change, DropColumn):
            new = change.new if isinstance(change, RenameColumn) else column.name
            columns.append(_Placed(column._replace(name=new), name))
    return columns


def _insert(columns: list[_Placed], placed: _Placed, place: str) -> None:
    at = len(columns)
    if place == "FIRST":
        at = 0
    elif place:
        names = [other.column.name.lower() for other in columns]
        if place.lower() not in names:
            raise SchemaError(f"there is no column `{place}`")
        at = names.index(place.lower()) + 1
    columns.insert(at, placed)
