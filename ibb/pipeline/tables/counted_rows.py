"""
Tables without a key: a multiset, in which equal rows are as many as they are at the source.

The key of such a row is the digest of all its columns and the number of the copy: of three equal
rows the keys end in 1, 2 and 3, and a delete takes the highest. So a merge need only know how
many copies the table has of the contents that changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import PipelineError
from .row_changes import Op
from .row_images import RowImages, whole_image
from .row_key import row_keys
from .row_merge import RowMerge, check_images, with_keys

if TYPE_CHECKING:
    import pyarrow as pa

    from .row_changes import GroupRun, RowChanges
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
        self._images = RowImages(table, schema)
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
            image = whole_image(self._table, changes.before, self._schema).take(gone)
            for digest in row_keys(image, self._schema.names):
                self._net[digest] = self._net.get(digest, 0) - 1
        if come:
            image = whole_image(self._table, overlaid(changes), self._schema).take(come)
            first = self._images.add(image)
            for row, digest in enumerate(row_keys(image, self._schema.names), first):
                self._net[digest] = self._net.get(digest, 0) + 1
                self._sample.setdefault(digest, row)

    def truncate(self, _at: GroupRun) -> None:
        """Forget every row."""
        self._net.clear()
        self._sample.clear()
        self._images.clear()
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
        upserts = with_keys(self._images.take(rows), keys, self._schema.names)
        return RowMerge(upserts, deletes, self._emptied)


def overlaid(changes: RowChanges) -> pa.Table:
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
