"""
Tables with a key: the last state of each key wins.

A row that is changed twice is merged once. Its place is a number, that of the change which left
it whole, so that full images cost no Python object a column. Partial images (`binlog_row_image`
MINIMAL or NOBLOB) leave out columns, which keep their value: such a row is put together from
cells of several changes, and from the row that the table has under the key it had at first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from .errors import PipelineError
from .row_changes import Op
from .row_key import KEY_COLUMN, row_key, row_keys
from .row_merge import RowMerge, check_images, with_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .row_changes import RowChanges
    from .row_merge import StoredRows

DELETED: Final = -1


@dataclass(frozen=True)
class _Patch:
    """A row of which only some cells are known; the row with the key *stored* has the rest."""

    stored: str
    cells: dict[str, Any]


class LatestRows:
    """
    The last state of each key.

    Args:
        table: its name, for errors.
        schema: its columns, without the hidden one.
        key: names of its key columns.
    """

    def __init__(self, table: str, schema: pa.Schema, key: Sequence[str]) -> None:
        self.rows = 0
        self._table = table
        self._schema = schema
        self._key = list(key)
        self._images: list[pa.Table] = []  # whole rows after a change
        self._image_rows = 0
        self._latest: dict[str, int | _Patch] = {}
        self._emptied = False

    def add(self, changes: RowChanges) -> None:
        """
        Take *changes*, which come after all that was taken before.

        Raises:
            PipelineError: the images do not fit the table, or lack its key.
        """
        check_images(self._table, self._schema, changes)
        self.rows += len(changes.ops)
        if set(self._schema.names) <= set(changes.after.column_names):
            self._add_whole(changes)
        elif set(changes.ops) == {Op.DELETE}:
            for key in self._before_keys(changes):
                self._latest[key] = DELETED
        else:
            self._add_partial(changes)

    def truncate(self) -> None:
        """Forget every row."""
        self._latest.clear()
        self._images.clear()
        self._image_rows = 0
        self._emptied = True

    def merge(self, stored: StoredRows) -> RowMerge:
        """
        Return what it all comes to.

        Raises:
            PipelineError: a row of which only a part is known is not in the table.
        """
        whole = {key: row for key, row in self._latest.items() if isinstance(row, int) and row >= 0}
        patches = {key: row for key, row in self._latest.items() if isinstance(row, _Patch)}
        images = self._images or [self._schema.empty_table()]
        rows = pa.concat_tables(images).take(pa.array(whole.values(), pa.int64()))
        upserts = with_keys(rows, list(whole), self._schema.names)
        if patches:
            patched = self._patched(list(patches.values()), stored)
            parts = [upserts, with_keys(patched, list(patches), self._schema.names)]
            upserts = pa.concat_tables(parts)
        deletes = [key for key, row in self._latest.items() if row == DELETED]
        return RowMerge(upserts, [] if self._emptied else deletes, self._emptied)

    def _add_whole(self, changes: RowChanges) -> None:
        latest, row = self._latest, self._image_rows
        after = row_keys(changes.after, self._key)
        before = after
        if Op.UPDATE in changes.ops or Op.DELETE in changes.ops:
            before = self._before_keys(changes)
        for op, key_before, key_after in zip(changes.ops, before, after, strict=True):
            if op != Op.INSERT and (op == Op.DELETE or key_before != key_after):
                latest[key_before] = DELETED
            if op != Op.DELETE:
                latest[key_after] = row
            row += 1
        self._images.append(changes.after.select(self._schema.names))
        self._image_rows = row

    def _before_keys(self, changes: RowChanges) -> list[str]:
        missing = set(self._key) - set(changes.before.column_names)
        if missing:
            raise PipelineError(
                f"{self._table}: images before a change lack the key column {min(missing)}: "
                "name a key that the binlog holds, or set binlog_row_image=FULL at the source"
            )
        return row_keys(changes.before, self._key)

    def _add_partial(self, changes: RowChanges) -> None:
        """Take rows one by one: the columns that are absent keep the value they had."""
        keys = self._before_keys(changes) if set(changes.ops) != {Op.INSERT} else []
        before, after = changes.before.to_pylist(), changes.after.to_pylist()
        for row, op in enumerate(changes.ops):
            if op == Op.DELETE:
                self._latest[keys[row]] = DELETED
                continue
            if op == Op.INSERT:
                missing = set(self._schema.names) - set(changes.after.column_names)
                raise PipelineError(
                    f"{self._table}: the stream inserts rows without column {min(missing)}"
                )
            patch = self._patch(keys[row], {**before[row], **after[row]})
            self._latest[keys[row]] = DELETED
            self._latest[row_key(patch.cells[name] for name in self._key)] = patch

    def _patch(self, key: str, cells: dict[str, Any]) -> _Patch:
        earlier = self._latest.get(key)
        if isinstance(earlier, _Patch):
            return _Patch(earlier.stored, {**earlier.cells, **cells})
        if earlier is None and not self._emptied:
            return _Patch(key, cells)
        if earlier is None or earlier == DELETED:
            raise PipelineError(f"{self._table}: the stream changes a row that is not there")
        return _Patch(key, {**self._image_row(earlier), **cells})

    def _image_row(self, row: int) -> dict[str, Any]:
        for image in self._images:
            if row < image.num_rows:
                return image.slice(row, 1).to_pylist()[0]  # type: ignore[no-any-return]
            row -= image.num_rows
        raise AssertionError("no such row was taken")

    def _patched(self, patches: list[_Patch], stored: StoredRows) -> pa.Table:
        """Return the whole rows of *patches*, in this order."""
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
