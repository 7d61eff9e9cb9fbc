"""
What is known of a table while rows of it are read: a table map, and what a schema adds to it.

By default a primary says of its columns nothing but types and sizes (binlog_row_metadata=NO_LOG):
neither names nor signs nor character sets. A `TableSchema`, from wherever, fills that in; what
the table map says itself is always believed first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ibb.protocol.errors import IbbError

from .column import INTEGER_BYTES, OLD_MOMENTS, STRINGS, Column, ColumnType
from .text_encoding import charset_of_collation, label_of

if TYPE_CHECKING:
    from .table_map import TableMap
    from .table_schema import ColumnSchema, TableSchema


class SchemaMismatch(IbbError):  # noqa: N818 (a condition, named as users will read it)
    """A schema is not that of the table map: its columns are others."""


class ColumnLayout(NamedTuple):
    """
    One column, as far as it is known; None is unknown.

    Args:
        column: type and size, by the table map.
        name: `@1`, `@2`, ... where nobody says, as mariadb-binlog has it.
        nullable: whether it may be NULL.
        unsigned: of numbers.
        charset: of strings, ENUM and SET: "binary", "utf8mb4", ...
        labels: of ENUM and SET.
        special: "uuid", "inet4", "inet6" for types that come as bytes.
        geometry: the number of the geometry's kind.
        visible: whether SELECT * has it.
        is_defined: whether a schema has it, too.
    """

    column: Column
    name: str
    nullable: bool
    unsigned: bool | None = None
    charset: str | None = None
    labels: tuple[str, ...] | None = None
    special: str | None = None
    geometry: int | None = None
    visible: bool = True
    is_defined: bool = False

    @property
    def is_known(self) -> bool:
        """Whether its values can be read as what they are."""
        kind = self.column.type
        if kind in INTEGER_BYTES:
            return self.unsigned is not None
        if kind in (ColumnType.ENUM, ColumnType.SET):
            return self.labels is not None
        if kind in OLD_MOMENTS:
            return self.is_defined
        return kind not in STRINGS or self.charset is not None


class TableLayout(NamedTuple):
    """
    One version of a table.

    Args:
        database: as the table map writes it.
        table: the same.
        columns: in the order of their values.
        key: columns of the primary key in its order; None if unknown, or there is none.
    """

    database: str
    table: str
    columns: tuple[ColumnLayout, ...]
    key: tuple[int, ...] | None

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names of the columns that cannot be read as what they are."""
        return tuple(column.name for column in self.columns if not column.is_known)


def layout_of(table_map: TableMap, schema: TableSchema | None = None) -> TableLayout:
    """
    Put together what a table map and a schema say.

    Args:
        table_map: says at least types.
        schema: of the table as it was when the rows were written; None if there is none.

    Raises:
        SchemaMismatch: the schema has other columns than the table map.
    """
    if schema is not None:
        _check(table_map, schema)
    columns = tuple(
        _column(table_map, number, schema.columns[number] if schema else None)
        for number in range(len(table_map.columns))
    )
    key = table_map.optional.key
    if key is None and schema is not None and schema.key:
        names = {column.name.lower(): number for number, column in enumerate(schema.columns)}
        key = tuple(names[name.lower()] for name in schema.key if name.lower() in names)
    return TableLayout(table_map.database, table_map.table, columns, key)


def _column(table_map: TableMap, number: int, schema: ColumnSchema | None) -> ColumnLayout:
    column, said = table_map.columns[number], table_map.optional
    kind = column.type
    name = said.names[number] if said.names else schema.name if schema else f"@{number + 1}"
    unsigned = said.unsigned.get(number, schema.unsigned if schema else None)
    collation = said.collations.get(number)
    charset = None if collation is None else charset_of_collation(collation)
    if charset is None and schema is not None:
        charset = schema.charset or ("binary" if schema.holds_bytes else None)
    labels = _labels(said.labels.get(number), charset)
    if labels is None and schema is not None and kind in (ColumnType.ENUM, ColumnType.SET):
        labels = schema.labels
    return ColumnLayout(
        column,
        name,
        table_map.nullable[number],
        unsigned,
        charset,
        labels,
        schema.special if schema and kind is ColumnType.STRING else None,
        said.geometry.get(number),
        said.visible.get(number, schema.visible if schema else True),
        schema is not None,
    )


def _labels(labels: tuple[bytes, ...] | None, charset: str | None) -> tuple[str, ...] | None:
    """Return labels as texts; None where their character set is unknown."""
    if labels is None or charset is None:
        return None
    return tuple(label_of(label, charset) for label in labels)


def _check(table_map: TableMap, schema: TableSchema) -> None:
    """Compare the types, as far as both say them."""
    where = f"{table_map.database}.{table_map.table}"
    if len(table_map.columns) != len(schema.columns):
        raise SchemaMismatch(
            f"the schema of {where} has {len(schema.columns)} columns, its rows have "
            f"{len(table_map.columns)}: give the schema that it had when they were written"
        )
    for number, (column, wanted) in enumerate(zip(table_map.columns, schema.columns, strict=True)):
        said = table_map.optional.names
        other_name = said and said[number].lower() != wanted.name.lower()
        if other_name or not wanted.fits(column):
            found = said[number] if said else f"column {number + 1}"
            raise SchemaMismatch(
                f"the schema of {where} has `{wanted.name}` {wanted.type_text} where its rows have "
                f"{found} of type {column.type.name}: give the schema that it had when they were "
                "written"
            )
        if column.type in OLD_MOMENTS and wanted.fraction_digits:
            raise SchemaMismatch(
                f"`{wanted.name}` of {where} is of {wanted.type_text} in the form of before "
                "MariaDB 10.1, which is not read: ALTER TABLE ... FORCE cures it (with "
                "mysql56_temporal_format=ON)"
            )
