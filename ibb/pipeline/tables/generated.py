"""
Generated columns, whose values the binlog may not have.

11.8 logs none of them, whatever binlog_row_image is: in change tables of servers from 11 on they
are there, and null. 10.11 logs them; but for virtual ones, which images that are not whole lack
also where they have changed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from ibb.pipeline.ddl.cursor import UnclearError

from .errors import PipelineError
from .row_changes import Op

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .row_changes import RowChanges

GENERATED_METADATA: Final = b"ibb.generated"
UNLOGGED: Final = b"unlogged"  # the value of that where the binlog never has the column
VIRTUAL: Final = b"virtual"
STORED: Final = b"stored"


def logs_generated(version: str) -> bool:
    """Tell whether a server surely logs generated columns by its version: `10.11.14-MariaDB`."""
    return version.startswith("10.")


def generated_kind(said: str, *, logged: bool) -> bytes:
    """
    Return what a column is; empty: not generated.

    Args:
        said: EXTRA of information_schema, or what its definition says.
        logged: whether the server logs generated columns.
    """
    for kind in (VIRTUAL, STORED):
        if kind.decode() in said.lower():
            return kind if logged else UNLOGGED
    return b""


def kind_of(field: pa.Field) -> bytes:
    """Return what a column of a change table is; empty: not generated."""
    kind: bytes = (field.metadata or {}).get(GENERATED_METADATA, b"")
    return kind


def unlogged(schema: pa.Schema) -> list[pa.Field]:
    """Return the columns that the binlog never has."""
    return [field for field in schema if kind_of(field) == UNLOGGED]


def check_key(schema: pa.Schema, key: Iterable[str]) -> None:
    """
    Check that rows can be told apart by *key*.

    Raises:
        UnclearError: it has a column that the binlog never has.
    """
    lost = {field.name for field in unlogged(schema)}
    for name in key:
        if name in lost:
            raise UnclearError(f"the key has the generated column {name}, which is not logged")


def with_generated(table: str, schema: pa.Schema, changes: RowChanges) -> RowChanges:
    """
    Return *changes* with the columns of *schema* that the binlog never has, as null.

    Raises:
        PipelineError: rows change, and what a generated column is then is not logged.
    """
    lost = [field.name for field in changes.lacking(schema) if kind_of(field) in (VIRTUAL, STORED)]
    if lost and Op.UPDATE in changes.ops:
        raise PipelineError(
            f"{table} at {changes.groups[0].gtid}: rows change, and the binlog does not hold the"
            f" generated column {lost[0]} behind that. Set binlog_row_image=FULL at the source (one"
            " from 11 on logs none), then take a new snapshot: --snapshot '*.*'"
        )
    nulls = unlogged(schema)
    if not nulls:
        return changes
    return replace(changes, before=_with(changes.before, nulls), after=_with(changes.after, nulls))


def _with(image: pa.Table, nulls: Sequence[pa.Field]) -> pa.Table:
    if not image.num_columns:
        return image
    names = {field.name for field in nulls}
    image = image.select([name for name in image.column_names if name not in names])
    for field in nulls:
        image = image.append_column(field.name, pa.nulls(image.num_rows, field.type))
    return image
