"""
What values of a key must be, so that rows that differ at the source do not become one here.

A date that no calendar has (0000-00-00, 2024-00-00) is null in a change table, as NULL is: as keys
all of them were one. Other values come here as the same text: the ENUM's error value and the label
of no characters, labels of which one is there twice, characters of two codes in an Asian character
set. And nothing but a UNIQUE index at the source says that a key of `tables.keys` is unique.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ibb.pipeline.ddl.column_types import base_type

from .errors import PipelineError
from .row_changes import Op
from .shape import CHARSET_METADATA, TYPE_METADATA
from .source_tables import quoted, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pymysql

    from .row_changes import RowChanges
    from .source_tables import SourceTable

SHOWN_CHARACTERS: Final = 80  # of a key, in an error
# Each character has one code in these, and each code another character.
_EXACT_CHARSETS: Final = frozenset(
    {"utf8", "utf8mb3", "utf8mb4", "latin1", "ascii", "binary"}
    | {"ucs2", "utf16", "utf16le", "utf32"}
)
_LABEL: Final = re.compile(r"'((?:[^']|'')*)'")
_LABELLED: Final = frozenset({"enum", "set"})
_ADDRESSES: Final = frozenset({"uuid", "inet4", "inet6"})


def check_keys(where: str, rows: pa.Table, key: Iterable[str]) -> None:
    """
    Check that no row of *rows* has null in a column of *key*.

    Args:
        where: the table and the place, for the error.
        rows: of the table; columns that they lack are not looked at.
        key: names of its key columns.

    Raises:
        PipelineError: one has.
    """
    for name in key:
        if name in rows.column_names and rows.column(name).null_count:
            raise _no_key(where, rows.schema.field(name))


def check_changed_keys(table: str, key: Sequence[str], changes: RowChanges) -> None:
    """
    Check that no row has null in a column of *key*, neither before a change nor after it.

    Raises:
        PipelineError: one has.
    """
    for image, without in ((changes.before, Op.INSERT), (changes.after, Op.DELETE)):
        for name in key:
            if name not in image.column_names or not image.column(name).null_count:
                continue
            buffers = [None, pa.py_buffer(changes.ops)]
            ops = pa.Array.from_buffers(pa.uint8(), len(changes.ops), buffers)
            says = pc.not_equal(ops, pa.scalar(int(without), pa.uint8()))
            row = pc.index(pc.and_(pc.is_null(image.column(name)), says), True).as_py()
            if row >= 0:
                raise _no_key(f"{table} at {changes.gtid_of(row)}", image.schema.field(name))


def check_unique(
    connection: pymysql.Connection[Any],
    table: SourceTable,
    key: Sequence[str],
    position: object,
) -> None:
    """
    Check that the rows of *table* differ in *key* as it is here, unless the server sees to it.

    Args:
        connection: inside the view that is read.
        table: which one.
        key: names of its key columns.
        position: of the view, for the error.

    Raises:
        PipelineError: rows do not.
    """
    fields = [table.schema.field(name) for name in key]
    is_exact = not any(map(_may_become_one, fields))
    if is_exact and (tuple(key) == table.key or _is_unique(connection, table, key)):
        return
    values = ", ".join(map(_as_kept, fields))
    name = quoted(*table.name)
    found = rows_of(
        connection,
        f"SELECT COUNT(*), {values} FROM {name} GROUP BY {values} HAVING COUNT(*) > 1 LIMIT 1",  # noqa: S608 - quoted names
    )
    if found:
        count, *twice = found[0]
        shown = ", ".join(map(repr, twice))[:SHOWN_CHARACTERS]
        raise PipelineError(
            f"{table.name} at {position}: {count} rows have the key ({', '.join(key)}) = "
            f"({shown}), and would be one in the change table. Name columns that tell all rows "
            f'apart (tables.keys: "{table.name}"), as values and as text, correct the rows, or '
            "leave the table out (tables.exclude); a table without a primary key that tables.keys "
            "does not name is kept with all its rows"
        )


def _may_become_one(field: pa.Field) -> bool:
    """Tell whether values of a column that differ at the server may be one here."""
    metadata = field.metadata or {}
    text = metadata.get(TYPE_METADATA, b"").decode()
    if base_type(text) in _LABELLED:
        labels = _LABEL.findall(text)
        if "" in labels or len(set(labels)) < len(labels):
            return True
    charset = metadata.get(CHARSET_METADATA, b"").decode()
    return bool(charset) and charset not in _EXACT_CHARSETS


def _as_kept(field: pa.Field) -> str:
    """Return the expression of a column's value as the change table tells it from others."""
    name = quoted(field.name)
    kind = base_type((field.metadata or {}).get(TYPE_METADATA, b"").decode())
    if pa.types.is_string(field.type) and kind not in _ADDRESSES:
        return f"CONVERT({name} USING utf8mb4) COLLATE utf8mb4_nopad_bin"
    return name


def _is_unique(connection: pymysql.Connection[Any], table: SourceTable, key: Sequence[str]) -> bool:
    """Tell whether the server keeps rows apart by columns of *key*, none of which may be NULL."""
    indexes: dict[str, list[tuple[str, str]]] = {}
    for index, column, nullable in rows_of(
        connection,
        "SELECT INDEX_NAME, COLUMN_NAME, NULLABLE FROM information_schema.STATISTICS "
        "WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND NON_UNIQUE = 0",
        *table.name,
    ):
        indexes.setdefault(index, []).append((column, nullable))
    return any(
        all(column in key and nullable != "YES" for column, nullable in columns)
        for columns in indexes.values()
    )


def _no_key(where: str, field: pa.Field) -> PipelineError:
    is_moment = pa.types.is_date(field.type) or pa.types.is_timestamp(field.type)
    dates = "a date that no calendar has (0000-00-00, 2024-00-00) or " if is_moment else ""
    return PipelineError(
        f"{where}: the key column {field.name} holds {dates}NULL, which is null in a change table: "
        "all rows with such a key would be one. Nothing of it was applied to the table. Correct "
        "the rows at the source, or name another key (tables.keys), then take a new snapshot of "
        "the table (--snapshot); or leave it out (tables.exclude)"
    )
