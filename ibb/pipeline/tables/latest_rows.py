"""
Tables with a key: the last state of each key wins.

A row that is changed twice is merged once. Its place is a number, that of the change which left
it whole, so that full images cost no Python object a column. Partial images (`binlog_row_image`
MINIMAL or NOBLOB) leave out columns, which keep their value: such a row is put together from
cells of several changes, and from the row that the table has under the key it had at first.

Where it is known that the table was as the source, the first change of each key must find it as
it says: `FirstTouches`. A row that is not there, or is twice, stops the merge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from .errors import PipelineError
from .first_touches import FirstTouches, Trust
from .row_changes import Op
from .row_images import Patch, RowImages, before_keys
from .row_key import row_key, row_keys
from .row_merge import RowMerge, check_images, with_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .row_changes import GroupRun, RowChanges
    from .row_merge import StoredRows

DELETED: Final = -1


class LatestRows:
    """
    The last state of each key.

    Args:
        table: its name, for errors.
        schema: its columns, without the hidden one.
        key: names of its key columns.
        trust: what is known of the rows that the table has.
    """

    def __init__(
        self, table: str, schema: pa.Schema, key: Sequence[str], *, trust: Trust = Trust.ALL
    ) -> None:
        self.rows = 0
        self._table = table
        self._schema = schema
        self._key = list(key)
        self._images = RowImages(table, schema)
        self._latest: dict[str, int | Patch] = {}
        self._trust = trust
        self._first = FirstTouches(table, key, self._came, trust)
        self._whole: list[tuple[int, int]] = []  # the first image of changes, and the first change
        self._emptied = False

    def add(self, changes: RowChanges) -> None:
        """
        Take *changes*, which come after all that was taken before.

        Raises:
            PipelineError: the images do not fit the table, lack its key, or do not follow what was
                taken before.
        """
        check_images(self._table, self._schema, changes)
        self.rows += len(changes.ops)
        change = self._first.begin(changes)
        if set(self._schema.names) <= set(changes.after.column_names):
            self._add_whole(changes, change)
        elif set(changes.ops) == {Op.DELETE}:
            for number, key in enumerate(before_keys(self._table, changes, self._key), change):
                self._check_there(key, number)
                self._latest[key] = DELETED
        else:
            self._add_partial(changes, change)

    def truncate(self, _at: GroupRun) -> None:
        """Forget every row."""
        self._latest.clear()
        self._images.clear()
        self._first.clear()
        self._whole.clear()
        self._emptied = True

    def merge(self, stored: StoredRows) -> RowMerge:
        """
        Return what it all comes to.

        Raises:
            PipelineError: a row of which only a part is known is not in the table.
        """
        whole = {key: row for key, row in self._latest.items() if isinstance(row, int) and row >= 0}
        patches = {key: row for key, row in self._latest.items() if isinstance(row, Patch)}
        upserts = with_keys(self._images.take(whole.values()), list(whole), self._schema.names)
        if patches:
            patched = self._images.patched(list(patches.values()), stored)
            parts = [upserts, with_keys(patched, list(patches), self._schema.names)]
            upserts = pa.concat_tables(parts)
        deletes = [key for key, row in self._latest.items() if row == DELETED]
        if self._emptied:
            return RowMerge(upserts, [], replace=True)
        return RowMerge(upserts, deletes, before=None if self._trust is Trust.NONE else self._first)

    def _add_whole(self, changes: RowChanges, change: int) -> None:
        latest, row = self._latest, self._images.add(changes.after)
        self._whole.append((row, change))
        behind = change - row
        after = row_keys(changes.after, self._key)
        before = after
        if Op.UPDATE in changes.ops or Op.DELETE in changes.ops:
            before = before_keys(self._table, changes, self._key)
        for op, key_before, key_after in zip(changes.ops, before, after, strict=True):
            if op != Op.INSERT:
                self._check_there(key_before, row + behind)
                if op == Op.DELETE or key_before != key_after:
                    latest[key_before] = DELETED
            if op != Op.DELETE:
                if op == Op.INSERT or key_before != key_after:
                    self._check_free(key_after, row + behind)
                latest[key_after] = row
            row += 1

    def _add_partial(self, changes: RowChanges, change: int) -> None:
        """Take rows one by one: the columns that are absent keep the value they had."""
        is_new = set(changes.ops) == {Op.INSERT}
        keys = [] if is_new else before_keys(self._table, changes, self._key)
        before, after = changes.before.to_pylist(), changes.after.to_pylist()
        for row, op in enumerate(changes.ops):
            if op != Op.INSERT:
                self._check_there(keys[row], change + row)
            if op == Op.DELETE:
                self._latest[keys[row]] = DELETED
                continue
            if op == Op.INSERT:
                missing = set(self._schema.names) - set(changes.after.column_names)
                raise PipelineError(
                    f"{self._table} at {changes.gtid_of(row)}: the stream inserts rows without "
                    f"column {min(missing)}, whose default the binlog does not hold. Set "
                    "binlog_row_image=FULL at the source, then take a new snapshot of the table"
                )
            patch = self._patch(keys[row], {**before[row], **after[row]})
            self._latest[keys[row]] = DELETED
            after_key = row_key(patch.cells[name] for name in self._key)
            self._check_free(after_key, change + row)
            self._latest[after_key] = patch

    def _patch(self, key: str, cells: dict[str, Any]) -> Patch:
        earlier = self._latest.get(key)
        if isinstance(earlier, Patch):
            return Patch(earlier.stored, {**earlier.cells, **cells})
        if earlier is None and not self._emptied:
            return Patch(key, cells)
        if earlier is None or earlier == DELETED:
            raise PipelineError(f"{self._table}: the stream changes a row that is not there")
        return Patch(key, {**self._images.row(earlier), **cells})

    def _check_there(self, key: str, change: int) -> None:
        """Check that there is a row *key* before *change*, as far as that can be told by now."""
        if self._trust is Trust.NONE:
            return
        state = self._latest.get(key)
        if state is None and not self._emptied:
            self._first.needs(key, change)
        elif (state is None or state == DELETED) and self._trust is Trust.ALL:
            raise self._first.missing(change)

    def _check_free(self, key: str, change: int) -> None:
        """Check that there is no row *key* before *change*, as far as that can be told by now."""
        if self._trust is not Trust.NONE and self._latest.get(key, DELETED) != DELETED:
            raise self._first.taken(change)

    def _came(self, key: str) -> int | None:
        """Return the last change of the row *key*, if it left it whole."""
        row = self._latest.get(key)
        if not isinstance(row, int) or row == DELETED:
            return None
        image, change = max(pair for pair in self._whole if pair[0] <= row)
        return change + row - image
