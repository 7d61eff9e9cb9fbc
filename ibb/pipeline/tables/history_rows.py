"""
The history of a change table: a row for each version of each row (SCD type 2).

How versions are kept in files is left to those who keep them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from .delta_commits import KEY_CHARACTERS_MAX
from .delta_target import keyed
from .history_shape import HistoryShape, added_at, gaps_of, same_columns, with_gap
from .row_key import DIGEST_CHARACTERS, KEY_COLUMN
from .row_versions import CountedVersions, KeyedVersions
from .shape import ShapedColumn
from .validity import FROM_SEQ, IS_CURRENT, TO_SEQ, Moment, ended, since

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from .place import Place
    from .row_changes import GroupRun
    from .row_merge import MergeBuilder
    from .row_versions import VersionMerge
    from .shape import Reshape

NEVER: Final = -1  # before every moment


def no_group(run: GroupRun) -> Moment:
    """Stand in for what says which moment a group is, where there are no groups to be applied."""
    raise AssertionError(f"{run.gtid} is in no batch that is under way")


class HistoryRows(ABC):
    """
    The versions of a table's rows, wherever they are.

    Attributes:
        name: of the table at the source.
        uri: where its history is.
    """

    name: str
    uri: str
    _moment: Callable[[GroupRun], Moment]

    @property
    @abstractmethod
    def exists(self) -> bool:
        """Whether there is a history."""

    @property
    @abstractmethod
    def place(self) -> Place | None:
        """How far it is; None: this pipeline has never written to it."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """Its columns, without those that are ours."""

    @property
    @abstractmethod
    def key(self) -> list[str]:
        """Names of the key's columns; empty: the table has no key."""

    @property
    @abstractmethod
    def versions(self) -> int:
        """How many versions there are."""

    @abstractmethod
    def advance(self, place: Place) -> None:
        """Store *place* without a change."""

    @abstractmethod
    def merge(self, changes: VersionMerge, place: Place) -> None:
        """Bring the history to *place*, of which *changes* are the difference."""

    @abstractmethod
    def _full_schema(self) -> pa.Schema:
        """Return all columns, ours too."""

    @abstractmethod
    def _replace(self, schema: pa.Schema, rows: Iterable[pa.Table], place: Place) -> None:
        """Put *rows* in place of all that is there, in one commit."""

    @abstractmethod
    def _append_columns(self, fields: Sequence[pa.Field], place: Place) -> None:
        """Add columns that are null in all versions, in one commit."""

    @abstractmethod
    def _pieces(
        self, columns: Sequence[str], wanted: Any, *, current: bool = False
    ) -> Iterator[pa.Table]:
        """Yield *columns* of the versions that *wanted*, an expression, holds for, or of all."""

    def create(self, schema: pa.Schema, key: Sequence[str], place: Place) -> None:
        """Begin with no rows at *place*."""
        self.fill(schema, key, (), place)

    def fill(
        self, schema: pa.Schema, key: Sequence[str], rows: Iterable[pa.Table], place: Place
    ) -> None:
        """
        End all versions that are current, and begin others with all *rows*, in one commit.

        What the table did between its own place and *place* is not known then.
        """
        at, held = Moment.of(place), self.place
        old = self._full_schema() if self.exists else pa.schema([])
        shape = HistoryShape(old, same_columns(old, schema), key, at, begins=True)
        full = with_gap(shape.schema, NEVER if held is None else Moment.of(held).seq, at.seq)
        self._replace(full, self._series(shape, keyed(rows, schema.names, key), at), place)

    def builder(self) -> MergeBuilder[VersionMerge]:
        """Return what takes changes for `merge`."""
        key = self.key
        if key:
            return KeyedVersions(self.name, self.schema, key, self._moment)
        return CountedVersions(self.name, self.schema, self._moment)

    def reshape(self, reshape: Reshape, at: GroupRun, place: Place) -> None:
        """
        Bring columns, key and versions into another shape, in one commit.

        Versions go on where the key stays; else they end, and others begin.
        """
        moment, key, old = self._moment(at), self.key, self._full_schema()
        added = reshape.added_only
        same_key = bool(key) and reshape.key == key
        if added is not None and same_key:
            fields = [added_at(field, moment) for field in added]
            self._append_columns(fields, place)
            return
        columns = [_certain(column, old, reshape) for column in reshape.columns]
        shape = HistoryShape(old, columns, reshape.key, moment, begins=not same_key)
        if same_key:
            self._replace(shape.schema, map(shape.kept, self.all_versions()), place)
            return
        current = (reshape.rows(batch) for batch in self.batches())
        renewed = keyed(current, reshape.schema.names, reshape.key)
        self._replace(shape.schema, self._series(shape, renewed, moment), place)

    def batches(self) -> Iterator[pa.Table]:
        """Yield the rows that there are now, without columns of ours, some at a time."""
        return self._pieces(self.schema.names, None, current=True)

    def rows_at(self, seq: int, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield these columns of the versions that there were at the moment *seq*."""
        to = ds.field(TO_SEQ)
        there = (ds.field(FROM_SEQ) <= seq) & (to.is_null() | (to > seq))
        return self._pieces(columns, there)

    def borders(self, first: str, last: str) -> pa.Table:
        """Return key and borders of the versions whose keys are from *first* up to *last*."""
        key = pc.utf8_slice_codeunits(ds.field(KEY_COLUMN), 0, len(first))
        wanted = (key >= first) & (key <= last)
        return self._together([KEY_COLUMN, FROM_SEQ, TO_SEQ, IS_CURRENT], wanted)

    @property
    def full_schema(self) -> pa.Schema:
        """All columns, ours too."""
        return self._full_schema()

    @property
    def gaps(self) -> list[list[int]]:
        """Between which moments nothing is known."""
        return gaps_of(self._full_schema())

    def rows_of(self, keys: Collection[str]) -> pa.Table:
        """Return the rows that there are now with these *keys*, in any order, with their keys."""
        key = pc.utf8_slice_codeunits(ds.field(KEY_COLUMN), 0, KEY_CHARACTERS_MAX)
        names = [KEY_COLUMN, *self.schema.names]
        return self._together(names, key.isin(sorted(keys)), current=True)

    def copies_of(self, digests: Collection[str]) -> dict[str, int]:
        """Return how many rows there are now of each content; contents without any are left out."""
        digest = pc.utf8_slice_codeunits(ds.field(KEY_COLUMN), 0, DIGEST_CHARACTERS)
        counts: dict[str, int] = {}
        for rows in self._pieces([KEY_COLUMN], digest.isin(sorted(digests)), current=True):
            found = pc.utf8_slice_codeunits(rows.column(KEY_COLUMN), 0, DIGEST_CHARACTERS)
            for value in found.value_counts().to_pylist():
                counts[value["values"]] = counts.get(value["values"], 0) + value["counts"]
        return counts

    def _series(
        self, shape: HistoryShape, rows: Iterator[pa.Table], at: Moment
    ) -> Iterator[pa.Table]:
        """Yield all versions, ended now, and then those that begin with *rows*."""
        if self.exists:
            for batch in self.all_versions():
                yield shape.kept(ended(batch, at))
        for batch in rows:
            yield shape.begun(batch, since(at, batch.num_rows))

    def all_versions(self) -> Iterator[pa.Table]:
        """Yield all versions with all columns, some at a time."""
        return self._pieces(self._full_schema().names, None)

    def _together(self, names: Sequence[str], wanted: Any, *, current: bool = False) -> pa.Table:
        schema = self._full_schema()
        empty = pa.schema([schema.field(name) for name in names]).empty_table()
        pieces = self._pieces(names, wanted, current=current)
        return pa.concat_tables([empty, *(piece.cast(empty.schema) for piece in pieces)])


def _certain(column: ShapedColumn, old: pa.Schema, reshape: Reshape) -> ShapedColumn:
    """Return *column* without its source where versions of before may have values too large."""
    if column.source is None or reshape.has_rows:
        return column
    same = old.field(column.source).type == column.field.type
    return column if same else ShapedColumn(column.field, None)


def begun_versions(changes: VersionMerge, full: pa.Schema) -> pa.Table:
    """Return the versions that are new, with all columns."""
    rows = changes.versions
    begins = [
        rows.column(field.name).cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in full
    ]
    return pa.table(begins, schema=full)
