"""
Generated columns, whose values the binlog may not have.

Servers from 11 on log none of them (seen with 11.8), whatever binlog_row_image is: in change tables
they are there, and null. Before (seen with 10.11) they are logged as others are; but for virtual
ones, which images that are not whole lack also where they have changed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from .errors import PipelineError
from .row_changes import Op

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ibb.pipeline.ddl.column_definition import ColumnDefinition

    from .row_changes import RowChanges

GENERATED_METADATA: Final = b"ibb.generated"
UNLOGGED: Final = b"unlogged"  # the value of that where the binlog never has the column
VIRTUAL: Final = b"virtual"
STORED: Final = b"stored"


def logs_generated(version: str) -> bool:
    """Tell whether the server of a version such as `10.11.14-MariaDB` logs generated columns."""
    return int(version.partition(".")[0]) < 11


def generated_kind(extra: str, *, logged: bool) -> bytes:
    """Return what a column is by EXTRA of information_schema; empty: not generated."""
    if "GENERATED" not in extra.upper():
        return b""
    kind = VIRTUAL if "VIRTUAL" in extra.upper() else STORED
    return kind if logged else UNLOGGED


def defined_kind(definition: ColumnDefinition, *, logged: bool) -> bytes:
    """Return what a column is by its definition; empty: not generated."""
    kind = definition.generated.encode()
    return kind if logged or not kind else UNLOGGED


def kind_of(field: pa.Field) -> bytes:
    """Return what a column of a change table is; empty: not generated."""
    kind: bytes = (field.metadata or {}).get(GENERATED_METADATA, b"")
    return kind


def unlogged(schema: pa.Schema) -> list[pa.Field]:
    """Return the columns that the binlog never has."""
    return [field for field in schema if kind_of(field) == UNLOGGED]


def unlogged_key(schema: pa.Schema, key: Iterable[str]) -> str:
    """Return a column of *key* by which rows cannot be told apart here; empty: there is none."""
    lost = {field.name for field in unlogged(schema)}
    return next((name for name in key if name in lost), "")


def with_generated(table: str, schema: pa.Schema, changes: RowChanges) -> RowChanges:
    """
    Return *changes* with the columns of *schema* that the binlog never has, as null.

    Raises:
        PipelineError: rows change, and what a generated column is then is not logged.
    """
    if Op.UPDATE in changes.ops:
        _check_virtual(table, schema, changes)
    nulls = unlogged(schema)
    if not nulls:
        return changes
    return replace(changes, before=_with(changes.before, nulls), after=_with(changes.after, nulls))


def _check_virtual(table: str, schema: pa.Schema, changes: RowChanges) -> None:
    lacking = changes.lacking(schema)
    lost = [field.name for field in lacking if kind_of(field) == VIRTUAL]
    if not lost and all(kind_of(field) == STORED for field in lacking):
        lost = [field.name for field in lacking]
    if lost:
        raise PipelineError(
            f"{table}: rows change, and the binlog does not hold the generated column {lost[0]} "
            "behind that. Set binlog_row_image=FULL at a source before 11; of a later one take a "
            "new snapshot of everything"
        )


def _with(image: pa.Table, nulls: Sequence[pa.Field]) -> pa.Table:
    if not image.num_columns:
        return image
    names = {field.name for field in nulls}
    image = image.select([name for name in image.column_names if name not in names])
    for field in nulls:
        image = image.append_column(field.name, pa.nulls(image.num_rows, field.type))
    return image
