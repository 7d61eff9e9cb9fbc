"""A table's columns and key, and how rows get from one shape to the next."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from ibb.pipeline.ddl.column_types import arrow_type_of
from ibb.pipeline.ddl.cursor import UnclearError
from ibb.pipeline.ddl.effects import AddColumn, ChangeColumn, DropColumn, RenameColumn, SetKey
from ibb.pipeline.ddl.type_change import keeps_values

from .storable import check_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ibb.pipeline.ddl.column_definition import ColumnDefinition
    from ibb.pipeline.ddl.effects import ColumnEffect

TYPE_METADATA: Final = b"ibb.type"
CHARSET_METADATA: Final = b"ibb.charset"


def column_field(name: str, type_text: str, charset: str = "") -> pa.Field:
    """
    Return the column of a change table that has a source's column.

    Raises:
        UnclearError: the type is not known.
    """
    metadata = {TYPE_METADATA: type_text.encode(), CHARSET_METADATA: charset.encode()}
    return pa.field(name, arrow_type_of(type_text, charset), metadata=metadata)


@dataclass(frozen=True)
class ShapedColumn:
    """
    A column of a new shape.

    Args:
        field: its name and type.
        source: the column of the old shape that has its values; None: *constant* is its value.
        constant: what rows that are there have in it.
        refuses_null: whether it may be null no more.
    """

    field: pa.Field
    source: str | None
    constant: Any = None
    refuses_null: bool = False


class Reshape:
    """
    From a shape to the one after *effects*.

    Args:
        schema: the columns now.
        key: the key now.
        effects: of one ALTER TABLE.
        has_rows: whether there are rows; without any, no value of them can be unclear.
        keeps_key: whether the key was chosen by configuration, and stays.

    Raises:
        UnclearError: what the rows are then is not known for certain.
    """

    def __init__(
        self,
        schema: pa.Schema,
        key: Sequence[str],
        effects: Iterable[ColumnEffect],
        *,
        has_rows: bool,
        keeps_key: bool = False,
    ) -> None:
        self._old = schema
        self._columns = [ShapedColumn(field, field.name) for field in schema]
        self.key = list(key)
        self.has_rows = has_rows
        self._keeps_key = keeps_key
        for effect in effects:
            self._apply(effect)
        check_names(self.schema.names)
        if len(set(self.key)) != len(self.key) or not set(self.key) <= set(self.schema.names):
            raise UnclearError(f"the key {', '.join(self.key)} has columns that are not there")

    @property
    def columns(self) -> Sequence[ShapedColumn]:
        """The columns after it, and where each has its values from."""
        return self._columns

    @property
    def schema(self) -> pa.Schema:
        """The columns after it."""
        return pa.schema([column.field for column in self._columns])

    @property
    def added_only(self) -> list[pa.Field] | None:
        """The new columns, if there is nothing else but columns that are null; else None."""
        kept = self._columns[: len(self._old)]
        added = self._columns[len(self._old) :]
        same = [column.source == column.field.name for column in kept]
        is_plain = all(column.constant is None and column.source is None for column in added)
        fields = [column.field for column in kept]
        if all(same) and is_plain and fields == list(self._old):
            return [column.field for column in added]
        return None

    def rows(self, rows: pa.Table) -> pa.Table:
        """Return *rows* of the old shape in the new one."""
        arrays = []
        for column in self._columns:
            kind = column.field.type
            if column.source is None:
                constant = pa.scalar(column.constant, kind)
                arrays.append(pa.repeat(constant, rows.num_rows))
                continue
            arrays.append(rows.column(column.source).cast(kind))
        return pa.table(arrays, schema=self.schema)

    def check(self, batches: Iterable[pa.Table]) -> None:
        """
        Check that rows fit which are there.

        Raises:
            UnclearError: a column has nulls that may have none now.
        """
        strict = [column for column in self._columns if column.refuses_null and column.source]
        for rows in batches if strict else ():
            for column in strict:
                if rows.column(column.source).null_count:
                    raise UnclearError(f"column {column.field.name} is NOT NULL now, and has nulls")

    def _apply(self, effect: ColumnEffect) -> None:
        if isinstance(effect, AddColumn):
            self._add(effect)
        elif isinstance(effect, DropColumn):
            index = self._index(effect.name, optional=effect.if_there)
            if index is not None:
                if self._columns[index].field.name in self.key:
                    raise UnclearError(f"column {effect.name} of the key goes")
                del self._columns[index]
        elif isinstance(effect, ChangeColumn):
            index = self._index(effect.old, optional=effect.if_there)
            if index is not None:
                self._change(index, effect.definition)
        elif isinstance(effect, RenameColumn):
            index = self._index(effect.old, optional=effect.if_there)
            if index is not None:
                field = self._columns[index].field
                self._put(index, field.with_name(effect.new))
        elif isinstance(effect, SetKey) and not (
            self._keeps_key or (effect.if_missing and self.key)
        ):
            indexes = [self._index(name) or 0 for name in effect.columns]
            self.key = [self._columns[index].field.name for index in indexes]

    def _index(self, name: str, *, optional: bool = False) -> int | None:
        for index, column in enumerate(self._columns):
            if column.field.name.lower() == name.lower():
                return index
        if not optional:
            raise UnclearError(f"the change table has no column {name}")
        return None

    def _add(self, effect: AddColumn) -> None:
        definition = effect.definition
        if self._index(definition.name, optional=True) is not None:
            if effect.if_missing:
                return
            raise UnclearError(f"there is a column {definition.name} already")
        field = column_field(definition.name, definition.type_text, definition.charset)
        constant = None
        if self.has_rows:
            if definition.computed:
                raise UnclearError(f"column {definition.name} is new: {definition.computed}")
            constant = _first_value(definition, field.type)
        self._columns.append(ShapedColumn(field, None, constant))
        if definition.is_key and not self._keeps_key:
            self.key = [definition.name]

    def _change(self, index: int, definition: ColumnDefinition) -> None:
        field = self._columns[index].field
        metadata = field.metadata or {}
        old = metadata.get(TYPE_METADATA, b"").decode()
        old_charset = metadata.get(CHARSET_METADATA, b"").decode()
        charset = definition.charset or old_charset
        new = definition.type_text
        if self.has_rows and not keeps_values(old, new, old_charset, charset):
            raise UnclearError(f"column {field.name} changes from {old or field.type} to {new}")
        if definition.computed and definition.computed.startswith("the server"):
            raise UnclearError(f"column {field.name}: {definition.computed}")
        self._put(index, column_field(definition.name, new, charset))
        self._columns[index] = replace(self._columns[index], refuses_null=not definition.nullable)
        if definition.is_key and not self._keeps_key:
            self.key = [definition.name]

    def _put(self, index: int, field: pa.Field) -> None:
        old = self._columns[index].field.name
        self._columns[index] = replace(self._columns[index], field=field)
        self.key = [field.name if name == old else name for name in self.key]


def _first_value(definition: ColumnDefinition, kind: pa.DataType) -> object:
    """Return what rows that are there have in a new column."""
    if not definition.has_default and definition.nullable:
        return None
    text = definition.default
    try:
        if pa.types.is_integer(kind):
            return int(text or 0)
        if pa.types.is_decimal(kind):
            exact: Decimal = pa.scalar(Decimal(text or 0), kind).as_py()
            return exact
        if pa.types.is_floating(kind):
            return float(text or 0)
        if pa.types.is_string(kind) and (text is not None or _is_text(definition)):
            return text or ""
        if text is not None and pa.types.is_date(kind):
            return dt.date.fromisoformat(text)
        if text is not None and pa.types.is_timestamp(kind) and kind.tz is None:
            return dt.datetime.fromisoformat(text)
    except (ValueError, InvalidOperation, pa.ArrowInvalid) as error:
        raise UnclearError(f"column {definition.name} is new, with DEFAULT '{text}'") from error
    raise UnclearError(f"column {definition.name} is new, of type {definition.type_text}")


def _is_text(definition: ColumnDefinition) -> bool:
    return definition.type_text.startswith(("char", "varchar", "text", "longtext", "mediumtext"))
