"""
Tables without a key: a multiset, in which equal rows are as many as they are at the source.

The key of such a row is the digest of all its columns and the number of the copy: of three equal
rows the keys end in 1, 2 and 3, and a delete takes the highest. So a merge need only know how
many copies the table has of the contents that changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from .errors import PipelineError
from .row_changes import Op
from .row_key import row_keys
from .row_merge import RowMerge, check_images, with_keys

if TYPE_CHECKING:
    from .row_changes import RowChanges
    from .row_merge import StoredRows


def copy_key(digest: str, number: int) -> str:
    """Return the key of copy *number*, from 1, of the rows that have this *digest*."""
    return f"{digest}-{number}"


def numbered_keys(digests: list[str], seen: dict[str, int]) -> list[str]:
    """Return a key for each row of a table that is written anew; *seen* counts what came before."""
    keys = []
    for digest in digests:
        seen[digest] = seen.get(digest, 0) + 1
        keys.append(copy_key(digest, seen[digest]))
    return keys


class CountedRows:
    """
    How many copies of which contents come and go.

    Args:
        table: its name, for errors.
        schema: its columns, without the hidden one.
    """

    def __init__(self, table: str, schema: pa.Schema) -> None:
        self.rows = 0
        self._table = table
        self._schema = schema
        self._images: list[pa.Table] = []
        self._image_rows = 0
        self._sample: dict[str, int] = {}  # number of a row with this content
        self._net: dict[str, int] = {}
        self._emptied = False

    def add(self, changes: RowChanges) -> None:
        """
        Take *changes*, which come after all that was taken before.

        Raises:
            PipelineError: the images do not fit the table, or are not whole.
        """
        check_images(self._table, self._schema, changes)
        self.rows += len(changes.ops)
        gone = [row for row, op in enumerate(changes.ops) if op != Op.INSERT]
        come = [row for row, op in enumerate(changes.ops) if op != Op.DELETE]
        if gone:
            for digest in row_keys(self._whole(changes.before).take(gone), self._schema.names):
                self._net[digest] = self._net.get(digest, 0) - 1
        if come:
            image = self._whole(_overlaid(changes)).take(come)
            for row, digest in enumerate(row_keys(image, self._schema.names), self._image_rows):
                self._net[digest] = self._net.get(digest, 0) + 1
                self._sample.setdefault(digest, row)
            self._images.append(image)
            self._image_rows += image.num_rows

    def truncate(self) -> None:
        """Forget every row."""
        self._net.clear()
        self._sample.clear()
        self._images.clear()
        self._image_rows = 0
        self._emptied = True

    def merge(self, stored: StoredRows) -> RowMerge:
        """
        Return what it all comes to.

        Raises:
            PipelineError: more copies go than there are.
        """
        changed = {digest: net for digest, net in self._net.items() if net}
        had = {} if self._emptied or not changed else stored.copies_of(changed.keys())
        keys, rows, deletes = [], [], []
        for digest, net in changed.items():
            copies = had.get(digest, 0)
            if copies + net < 0:
                raise PipelineError(
                    f"{self._table}: the stream deletes a row that is not in the change table: "
                    "take a new snapshot of the table"
                )
            for number in range(copies + 1, copies + net + 1):
                keys.append(copy_key(digest, number))
                rows.append(self._sample[digest])
            deletes += [copy_key(digest, number) for number in range(copies + net + 1, copies + 1)]
        images = pa.concat_tables(self._images or [self._schema.empty_table()])
        taken = images.take(pa.array(rows, pa.int64()))
        return RowMerge(with_keys(taken, keys, self._schema.names), deletes, self._emptied)

    def _whole(self, image: pa.Table) -> pa.Table:
        missing = set(self._schema.names) - set(image.column_names)
        if missing:
            raise PipelineError(
                f"{self._table} has no key, and the stream's rows lack column {min(missing)}: "
                "set binlog_row_image=FULL at the source, or name a key"
            )
        return image.select(self._schema.names)


def _overlaid(changes: RowChanges) -> pa.Table:
    """Return the images after; columns that are absent there are as before."""
    if set(changes.ops) & {Op.INSERT}:
        return changes.after
    image = changes.before
    for name in changes.after.column_names:
        index = image.column_names.index(name) if name in image.column_names else -1
        column = changes.after.column(name)
        image = (
            image.append_column(name, column)
            if index < 0
            else image.set_column(index, name, column)
        )
    return image
