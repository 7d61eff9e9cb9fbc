"""Images of rows after a change, whole or of some columns, kept until they are merged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .errors import PipelineError
from .row_key import KEY_COLUMN, row_keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .row_changes import RowChanges
    from .row_merge import StoredRows


@dataclass(frozen=True)
class Patch:
    """A row of which only some cells are known; the row with the key *stored* has the rest."""

    stored: str
    cells: dict[str, Any]


class RowImages:
    """
    Rows by number, of which only some cells may be known.

    Args:
        table: its name, for errors.
        schema: its columns, without those that are ours.
    """

    def __init__(self, table: str, schema: pa.Schema) -> None:
        self.rows = 0
        self._table = table
        self._schema = schema
        self._images: list[pa.Table] = []

    def add(self, image: pa.Table) -> int:
        """Take whole rows; return the number of the first."""
        first = self.rows
        self._images.append(image.select(self._schema.names))
        self.rows += image.num_rows
        return first

    def clear(self) -> None:
        """Forget every row; numbers begin anew."""
        self._images.clear()
        self.rows = 0

    def take(self, numbers: Iterable[int]) -> pa.Table:
        """Return the rows of these numbers, in this order."""
        images = pa.concat_tables(self._images or [self._schema.empty_table()])
        return images.take(pa.array(numbers, pa.int64()))

    def row(self, number: int) -> dict[str, Any]:
        """Return one row."""
        for image in self._images:
            if number < image.num_rows:
                return image.slice(number, 1).to_pylist()[0]  # type: ignore[no-any-return]
            number -= image.num_rows
        raise AssertionError("no such row was taken")

    def patched(self, patches: Sequence[Patch], stored: StoredRows) -> pa.Table:
        """
        Return the whole rows of *patches*, in this order.

        Raises:
            PipelineError: a row of which only a part is known is not in the table.
        """
        names = set(self._schema.names)
        wanted = {patch.stored for patch in patches if not names <= patch.cells.keys()}
        found = stored.rows_of(wanted) if wanted else None
        by_key = {row[KEY_COLUMN]: row for row in (found.to_pylist() if found else ())}
        rows = []
        for patch in patches:
            if patch.stored in wanted and patch.stored not in by_key:
                raise PipelineError(
                    f"{self._table}: the stream changes a row that is not in the change table: "
                    "take a new snapshot of the table"
                )
            rows.append({**by_key.get(patch.stored, {}), **patch.cells})
        return pa.Table.from_pylist(rows, self._schema)


def before_keys(table: str, changes: RowChanges, key: Sequence[str]) -> list[str]:
    """
    Return the key of each row before its change; of inserts it says nothing.

    Raises:
        PipelineError: the images lack a column of the key.
    """
    missing = set(key) - set(changes.before.column_names)
    if missing:
        raise PipelineError(
            f"{table}: images before a change lack the key column {min(missing)}: "
            "name a key that the binlog holds, or set binlog_row_image=FULL at the source"
        )
    return row_keys(changes.before, key)


def whole_image(table: str, image: pa.Table, schema: pa.Schema) -> pa.Table:
    """
    Return an image with the columns of *schema*, in their order.

    Raises:
        PipelineError: it lacks one, and the table has no key by which to find it.
    """
    missing = set(schema.names) - set(image.column_names)
    if missing:
        raise PipelineError(
            f"{table} has no key, and the stream's rows lack column {min(missing)}: "
            "set binlog_row_image=FULL at the source, or name a key"
        )
    return image.select(schema.names)
