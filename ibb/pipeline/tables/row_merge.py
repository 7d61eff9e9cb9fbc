"""What the changes of a while come to, as one merge into a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

import pyarrow as pa

from .errors import PipelineError
from .row_key import KEY_COLUMN

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from .first_touches import FirstTouches
    from .row_changes import GroupRun, RowChanges

Merge_co = TypeVar("Merge_co", covariant=True)


@dataclass(frozen=True)
class RowMerge:
    """
    One merge.

    Args:
        upserts: whole rows with their keys in `KEY_COLUMN`, each key once.
        deletes: keys of rows to remove; none is among the upserts.
        replace: nothing that was there before stays: the table was emptied.
        before: which of these keys the table must have, and no others; None: it may have any.
    """

    upserts: pa.Table
    deletes: list[str]
    replace: bool = False
    before: FirstTouches | None = None


class StoredRows(Protocol):
    """What a merge may ask of the table that it goes into."""

    def rows_of(self, keys: Collection[str]) -> pa.Table:
        """Return the rows with these *keys*, in any order."""

    def copies_of(self, digests: Collection[str]) -> dict[str, int]:
        """Return how many rows there are of each content; contents without any are left out."""


class MergeBuilder(Protocol[Merge_co]):
    """Takes changes in commit order, and says what they come to."""

    rows: int
    """Changes taken so far."""

    def add(self, changes: RowChanges) -> None:
        """Take *changes*, which come after all that was taken before."""

    def truncate(self, at: GroupRun, /) -> None:
        """Take note that the group *at* emptied the table."""

    def merge(self, stored: StoredRows) -> Merge_co:
        """Return what it all comes to."""


def with_keys(rows: pa.Table, keys: Sequence[str], columns: Sequence[str]) -> pa.Table:
    """Return *rows* with the hidden key column, then *columns* in this order."""
    arrays = [pa.array(keys, pa.string()), *(rows.column(name) for name in columns)]
    return pa.table(arrays, names=[KEY_COLUMN, *columns])


def check_images(table: str, known: pa.Schema, changes: RowChanges) -> None:
    """
    Check that the images before and after *changes* fit the table.

    Raises:
        PipelineError: they do not.
    """
    check_columns(table, known, changes.before.schema)
    check_columns(table, known, changes.after.schema)


def check_columns(table: str, known: pa.Schema, found: pa.Schema) -> None:
    """
    Check that a row image fits the table.

    Raises:
        PipelineError: it has a column that the table has not, or of another type.
    """
    for field in found:
        index = known.get_field_index(field.name)
        if index < 0:
            raise PipelineError(
                f"{table}: the stream has a column {field.name} that the change table has not: "
                "take a new snapshot of the table"
            )
        if known.field(index).type != field.type:
            raise PipelineError(
                f"{table}: column {field.name} is {field.type} in the stream and "
                f"{known.field(index).type} in the change table: take a new snapshot of the table"
            )
