"""A table's columns and key, and how rows get from one shape to the next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ibb.pipeline.ddl.column_types import arrow_type_of, base_type
from ibb.pipeline.ddl.cursor import UnclearError
from ibb.pipeline.ddl.effects import AddColumn, ChangeColumn, DropColumn, RenameColumn, SetKey
from ibb.pipeline.ddl.meant import as_meant
from ibb.pipeline.ddl.session_modes import DEFAULT_MODES, SessionModes
from ibb.pipeline.ddl.type_change import keeps_values, same_characters

from .first_value import first_value
from .generated import (
    GENERATED_METADATA,
    STORED,
    UNLOGGED,
    VIRTUAL,
    check_key,
    generated_kind,
    kind_of,
)
from .storable import check_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ibb.pipeline.ddl.column_definition import ColumnDefinition
    from ibb.pipeline.ddl.effects import ColumnEffect

TYPE_METADATA: Final = b"ibb.type"
CHARSET_METADATA: Final = b"ibb.charset"


def column_field(name: str, type_text: str, charset: str = "", generated: bytes = b"") -> pa.Field:
    """
    Return the column of a change table that has a source's column.

    Args:
        name: of it.
        type_text: as information_schema has it.
        charset: in lower case, if it is a text.
        generated: what it is of those; empty: none.

    Raises:
        UnclearError: the type is not known.
    """
    metadata = {TYPE_METADATA: type_text.encode(), CHARSET_METADATA: charset.encode()}
    if generated:
        metadata[GENERATED_METADATA] = generated
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
        refuses_zero: whether the server numbers rows anew that have 0 in it.
        refuses_letters: whether only ASCII is sure to be what it was.
    """

    field: pa.Field
    source: str | None
    constant: Any = None
    refuses_null: bool = False
    refuses_zero: bool = False
    refuses_letters: bool = False


class Reshape:
    """
    From a shape to the one after *effects*.

    Args:
        schema: the columns now.
        key: the key now.
        effects: of one ALTER TABLE.
        has_rows: whether there are rows; without any, no value of them can be unclear.
        keeps_key: whether the key was chosen by configuration, and stays.
        modes: of the session that alters it.
        logs_generated: whether the server logs generated columns.

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
        modes: SessionModes = DEFAULT_MODES,
        logs_generated: bool = True,
    ) -> None:
        self._old = schema
        self._logs_generated = logs_generated
        self._columns = [ShapedColumn(field, field.name) for field in schema]
        self.has_rows = has_rows
        self._keeps_key = keeps_key
        self._modes = modes
        self._keys: list[SetKey] = []
        for effect in effects:
            self._apply(effect)
        names = {column.source: column.field.name for column in self._columns}
        gone = [name for name in key if name not in names]
        if gone and (keeps_key or not self._keys):
            raise UnclearError(f"column {gone[0]} of the key goes")
        self.key = [names[name] for name in key if name in names]
        for new_key in self._keys:  # its names are those behind all other effects
            self._set_key(new_key)
        check_names(self.schema.names)
        if len(set(self.key)) != len(self.key) or not set(self.key) <= set(self.schema.names):
            raise UnclearError(f"the key {', '.join(self.key)} has columns that are not there")
        check_key(self.schema, self.key)

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
            arrays.append(widened(rows.column(column.source), kind))
        return pa.table(arrays, schema=self.schema)

    def check(self, batches: Iterable[pa.Table]) -> None:
        """
        Check that rows fit which are there.

        Raises:
            UnclearError: a column has nulls that may have none now, 0 where it is numbered, or
                characters that its character set may lack now.
        """
        strict = [
            column
            for column in self._columns
            if column.source
            and (column.refuses_null or column.refuses_zero or column.refuses_letters)
        ]
        for rows in batches if strict else ():
            for column in strict:
                values, name = rows.column(column.source), column.field.name
                if column.refuses_null and values.null_count:
                    raise UnclearError(f"column {name} is NOT NULL now, and has nulls")
                if (
                    column.refuses_zero
                    and pc.any(pc.equal(values, pa.scalar(0, values.type))).as_py()
                ):
                    raise UnclearError(f"column {name} is AUTO_INCREMENT now, and has 0")
                if column.refuses_letters and not _is_ascii(values):
                    raise UnclearError(
                        f"column {name} may have another character set now, and a letter that "
                        "this lacks is a ? then (sql_mode is not strict)"
                    )

    def _apply(self, effect: ColumnEffect) -> None:
        if isinstance(effect, AddColumn):
            self._add(effect)
        elif isinstance(effect, DropColumn):
            index = self._old_index(effect.name, optional=effect.if_there)
            if index is not None:
                del self._columns[index]
        elif isinstance(effect, ChangeColumn):
            index = self._old_index(effect.old, optional=effect.if_there)
            if index is not None:
                self._change(index, effect.definition)
        elif isinstance(effect, RenameColumn):
            index = self._old_index(effect.old, optional=effect.if_there)
            if index is not None:
                field = self._columns[index].field
                self._put(index, field.with_name(effect.new))
        else:
            self._keys.append(effect)

    def _set_key(self, effect: SetKey) -> None:
        if not (self._keeps_key or (effect.if_missing and self.key)):
            indexes = [self._index(name) or 0 for name in effect.columns]
            self.key = [self._columns[index].field.name for index in indexes]
            for index in indexes:
                self._columns[index] = replace(self._columns[index], refuses_null=True)

    def _old_index(self, name: str, *, optional: bool) -> int | None:
        """Return where the column is that had this *name* before all effects."""
        for index, column in enumerate(self._columns):
            if column.source is not None and column.source.lower() == name.lower():
                return index
        if not optional:
            raise UnclearError(f"the change table has no column {name}")
        return None

    def _index(self, name: str, *, optional: bool = False) -> int | None:
        for index, column in enumerate(self._columns):
            if column.field.name.lower() == name.lower():
                return index
        if not optional:
            raise UnclearError(f"the change table has no column {name}")
        return None

    def _add(self, effect: AddColumn) -> None:
        definition = as_meant(effect.definition, self._modes)
        if self._index(definition.name, optional=True) is not None:
            if effect.if_missing:
                return
            raise UnclearError(f"there is a column {definition.name} already")
        kind = generated_kind(definition.generated, logged=self._logs_generated)
        field = column_field(definition.name, definition.type_text, definition.charset, kind)
        constant = None
        if self.has_rows and kind != UNLOGGED:
            if definition.computed:
                raise UnclearError(f"column {definition.name} is new: {definition.computed}")
            constant = first_value(definition, field.type)
        self._columns.append(ShapedColumn(field, None, constant))
        if definition.is_key:
            self._keys.append(SetKey((definition.name,)))

    def _change(self, index: int, definition: ColumnDefinition) -> None:
        definition = as_meant(definition, self._modes)
        field = self._columns[index].field
        metadata = field.metadata or {}
        old = metadata.get(TYPE_METADATA, b"").decode()
        old_charset = metadata.get(CHARSET_METADATA, b"").decode()
        new, charset = definition.type_text, definition.charset
        kind = generated_kind(definition.generated, logged=self._logs_generated)
        if kind == UNLOGGED:  # null before and behind it
            changed = column_field(definition.name, new, charset, kind)
            self._columns[index] = replace(self._columns[index], field=changed, source=None)
            return
        if definition.computed and definition.computed.startswith("the server"):
            raise UnclearError(f"column {field.name}: {definition.computed}")
        if self.has_rows:
            self._check_generated(field, definition)
            if self._modes.bytewise and not new.isascii():
                raise UnclearError(f"column {field.name} has labels of bytes, in no character set")
            if not keeps_values(old, new, old_charset, charset):
                raise UnclearError(f"column {field.name} changes from {old or field.type} to {new}")
            if self._modes.pads_chars and base_type(old) == "char" != base_type(new):
                raise UnclearError(
                    f"column {field.name} is no CHAR any more, and sql_mode PAD_CHAR_TO_FULL_LENGTH"
                    " puts spaces behind its texts"
                )
        self._put(index, column_field(definition.name, new, charset))
        is_numbered = definition.computed.startswith("AUTO_INCREMENT")
        self._columns[index] = replace(
            self._columns[index],
            refuses_null=is_numbered or not definition.nullable,
            refuses_zero=is_numbered,
            refuses_letters=not self._modes.strict
            and not same_characters(old, old_charset, charset),
        )
        if definition.is_key:
            self._keys.append(SetKey((definition.name,)))

    def _check_generated(self, field: pa.Field, definition: ColumnDefinition) -> None:
        """Check that values are known where a column is generated, or may be from this one."""
        if kind_of(field) == UNLOGGED:
            raise UnclearError(f"column {field.name} is generated no more: its values are unknown")
        new = column_field(field.name, definition.type_text, definition.charset)
        if _same_values(field, new):
            return
        for other in self._columns:
            if kind_of(other.field) in (VIRTUAL, STORED) and other.field is not field:
                raise UnclearError(
                    f"column {field.name} changes, and {other.field.name} is generated: what it is"
                    " behind that is not known"
                )

    def _put(self, index: int, field: pa.Field) -> None:
        self._columns[index] = replace(self._columns[index], field=field)


def _same_values(old: pa.Field, new: pa.Field) -> bool:
    """Tell whether expressions have the same values of columns, but for the length of texts."""
    before, after = ((field.metadata or {}) for field in (old, new))
    types = [one.get(TYPE_METADATA, b"").decode() for one in (before, after)]
    if base_type(types[0]) != base_type(types[1]) or old.type != new.type:
        return False
    charset = before.get(CHARSET_METADATA, b"")
    if charset:
        return bool(charset == after.get(CHARSET_METADATA))
    return types[0] == types[1] or bool(pa.types.is_integer(old.type))


def _is_ascii(values: pa.ChunkedArray) -> bool:
    return bool(pc.all(pc.string_is_ascii(values), min_count=0).as_py())


def widened(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Return *values* of a column as a type that holds all of them."""
    if pa.types.is_integer(values.type) and pa.types.is_decimal(kind):
        values = values.cast(pa.decimal128(20, 0))  # Arrow asks for digits by the type alone
    return values.cast(kind)
