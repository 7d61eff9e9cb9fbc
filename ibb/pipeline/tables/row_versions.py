"""Every version of a row that a batch makes and ends, as one merge into a history table."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from .counted_rows import copy_key, overlaid
from .errors import PipelineError
from .row_changes import Op
from .row_images import Patch, RowImages, before_keys, whole_image
from .row_key import KEY_COLUMN, row_key, row_keys
from .row_merge import check_images
from .validity import Moment, validity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .row_changes import GroupRun, RowChanges
    from .row_merge import StoredRows

EMPTIED: Final = -1  # in place of a row: the table was emptied
GONE: Final = -2  # in place of a row: a copy went


@dataclass(frozen=True)
class VersionMerge:
    """
    One merge into a history.

    Args:
        ends: what ends the current version of a key.
        versions: new versions, with their keys and the columns of ours; some have ended already.
        emptied: what ended all other versions, if the table was emptied.
    """

    ends: dict[str, Moment]
    versions: pa.Table
    emptied: Moment | None = None


@dataclass
class _Version:
    key: str
    row: int | Patch
    begin: Moment
    end: Moment | None = None

    @property
    def was_seen(self) -> bool:
        """Whether there was a moment at which it was the row: not within one group alone."""
        return self.end is None or self.end.seq > self.begin.seq


@dataclass
class _Made:
    """Versions that a batch made, and what it ended of those before."""

    images: RowImages
    versions: list[_Version] = field(default_factory=list)
    ends: dict[str, Moment] = field(default_factory=dict)
    emptied: Moment | None = None

    def merge(self, names: Sequence[str], stored: StoredRows) -> VersionMerge:
        """Return it as a merge of rows with columns of these *names*."""
        seen = [version for version in self.versions if version.was_seen]
        whole = [(version, row) for version in seen if isinstance(row := version.row, int)]
        parts = [(version, row) for version in seen if isinstance(row := version.row, Patch)]
        rows = self.images.take(row for _, row in whole)
        if parts:
            patched = self.images.patched([patch for _, patch in parts], stored)
            rows = pa.concat_tables([rows, patched])
        together = [version for version, _ in (*whole, *parts)]
        ours = validity(
            [version.begin for version in together], [version.end for version in together]
        )
        keys = pa.array([version.key for version in together], pa.string())
        columns = [keys, *ours.columns, *(rows.column(name) for name in names)]
        versions = pa.table(columns, names=[KEY_COLUMN, *ours.column_names, *names])
        return VersionMerge(self.ends, versions, self.emptied)


class KeyedVersions:
    """
    Versions of rows with a key.

    Args:
        table: its name, for errors.
        schema: its columns, without those that are ours.
        key: names of its key columns.
        moment: says which moment a group is.
    """

    def __init__(
        self,
        table: str,
        schema: pa.Schema,
        key: Sequence[str],
        moment: Callable[[GroupRun], Moment],
    ) -> None:
        self.rows = 0
        self._table = table
        self._schema = schema
        self._key = list(key)
        self._moment = moment
        self._made = _Made(RowImages(table, schema))
        self._latest: dict[str, _Version | None] = {}  # None: there is no such row any more

    def add(self, changes: RowChanges) -> None:
        """
        Take *changes*, which come after all that was taken before.

        Raises:
            PipelineError: the images do not fit the table, or lack its key.
        """
        check_images(self._table, self._schema, changes)
        self.rows += len(changes.ops)
        rows = self._contents(changes)
        before = chain(repeat(""))
        if set(changes.ops) != {Op.INSERT}:
            before = chain(before_keys(self._table, changes, self._key))
        for op, old, moment in zip(
            changes.ops, before, _moments(changes, self._moment), strict=False
        ):
            key, row = rows(op, old)
            if op != Op.INSERT:
                self._end(old, moment)
            if op != Op.DELETE:
                self._end(key, moment)
                version = self._latest[key] = _Version(key, row, moment)
                self._made.versions.append(version)

    def truncate(self, at: GroupRun, /) -> None:
        """Take note that the group *at* ended every version."""
        moment = self._moment(at)
        for version in self._latest.values():
            if version is not None:
                version.end = moment
        self._latest.clear()
        self._made.emptied = self._made.emptied or moment

    def merge(self, stored: StoredRows) -> VersionMerge:
        """
        Return what it all comes to.

        Raises:
            PipelineError: a row of which only a part is known is not in the table.
        """
        return self._made.merge(self._schema.names, stored)

    def _contents(self, changes: RowChanges) -> Callable[[int, str], tuple[str, int | Patch]]:
        """Return what says for each row in turn its key and content after the change."""
        names = set(self._schema.names)
        if names <= set(changes.after.column_names):
            keys = iter(row_keys(changes.after, self._key))
            numbers = iter(range(self._made.images.add(changes.after), self._made.images.rows))
            return lambda _op, _old: (next(keys), next(numbers))
        cells = zip(
            changes.before.to_pylist() or repeat({}),
            changes.after.to_pylist() or repeat({}),
            strict=False,
        )

        def patched(op: int, old: str) -> tuple[str, int | Patch]:
            before, after = next(cells)
            if op == Op.INSERT:
                missing = names - set(changes.after.column_names)
                raise PipelineError(
                    f"{self._table}: the stream inserts rows without column {min(missing)}"
                )
            if op == Op.DELETE:
                return "", GONE
            patch = self._patch(old, {**before, **after})
            return row_key(patch.cells[name] for name in self._key), patch

        return patched

    def _patch(self, key: str, cells: dict[str, Any]) -> Patch:
        if key not in self._latest and self._made.emptied is None:
            return Patch(key, cells)
        earlier = self._latest.get(key)
        if earlier is None:
            raise PipelineError(f"{self._table}: the stream changes a row that is not there")
        if isinstance(earlier.row, Patch):
            return Patch(earlier.row.stored, {**earlier.row.cells, **cells})
        return Patch(key, {**self._made.images.row(earlier.row), **cells})

    def _end(self, key: str, moment: Moment) -> None:
        if key in self._latest:
            version = self._latest[key]
            if version is not None:
                version.end = moment
        elif self._made.emptied is None:
            self._made.ends[key] = moment  # of the version that is stored, if there is one
        self._latest[key] = None


class CountedVersions:
    """
    Versions of rows without a key: of the copies of a content the last one comes and goes.

    Args:
        table: its name, for errors.
        schema: its columns, without those that are ours.
        moment: says which moment a group is.
    """

    def __init__(self, table: str, schema: pa.Schema, moment: Callable[[GroupRun], Moment]) -> None:
        self.rows = 0
        self._table = table
        self._schema = schema
        self._moment = moment
        self._made = _Made(RowImages(table, schema))
        self._events: dict[str, list[tuple[int, Moment]]] = {}  # row, GONE or EMPTIED
        self._stored: set[str] = set()  # contents of which the table may have copies

    def add(self, changes: RowChanges) -> None:
        """
        Take *changes*, which come after all that was taken before.

        Raises:
            PipelineError: the images do not fit the table, or are not whole.
        """
        check_images(self._table, self._schema, changes)
        self.rows += len(changes.ops)
        ops, names = changes.ops, self._schema.names
        gone = [row for row, op in enumerate(ops) if op != Op.INSERT]
        come = [row for row, op in enumerate(ops) if op != Op.DELETE]
        before: Iterator[str] = iter(())
        after: Iterator[tuple[int, str]] = iter(())
        if gone:
            image = whole_image(self._table, changes.before, self._schema)
            before = iter(row_keys(image.take(gone), names))
        if come:
            image = whole_image(self._table, overlaid(changes), self._schema).take(come)
            after = enumerate(row_keys(image, names), self._made.images.add(image))
        for op, moment in zip(ops, _moments(changes, self._moment), strict=True):
            if op != Op.INSERT:
                self._note(next(before), GONE, moment)
            if op != Op.DELETE:
                row, digest = next(after)
                self._note(digest, row, moment)

    def truncate(self, at: GroupRun, /) -> None:
        """Take note that the group *at* ended every version."""
        moment = self._moment(at)
        for events in self._events.values():
            events.append((EMPTIED, moment))
        self._made.emptied = self._made.emptied or moment

    def merge(self, stored: StoredRows) -> VersionMerge:
        """
        Return what it all comes to.

        Raises:
            PipelineError: more copies go than there are.
        """
        had = stored.copies_of(self._stored) if self._stored else {}
        for digest, events in self._events.items():
            self._follow(digest, had.get(digest, 0), events)
        return self._made.merge(self._schema.names, stored)

    def _note(self, digest: str, row: int, moment: Moment) -> None:
        if digest not in self._events:
            self._events[digest] = []
            if self._made.emptied is None:
                self._stored.add(digest)
        self._events[digest].append((row, moment))

    def _follow(self, digest: str, copies: int, events: Sequence[tuple[int, Moment]]) -> None:
        """Make the versions of one content, of which the table has *copies*."""
        made: list[_Version] = []  # current ones, above those that the table has
        for row, moment in events:
            if row == EMPTIED:
                for version in made:
                    version.end = moment
                made, copies = [], 0
            elif row != GONE:
                made.append(_Version(copy_key(digest, copies + len(made) + 1), row, moment))
                self._made.versions.append(made[-1])
            elif made:
                made.pop().end = moment
            elif copies:
                self._made.ends[copy_key(digest, copies)] = moment
                copies -= 1
            else:
                raise PipelineError(
                    f"{self._table}: the stream deletes a row that is not in the change table: "
                    "take a new snapshot of the table"
                )


def _moments(changes: RowChanges, moment: Callable[[GroupRun], Moment]) -> Iterator[Moment]:
    """Yield the moment of each row."""
    for run in changes.groups:
        yield from repeat(moment(run), run.rows)
