"""
The history of a change table as a Delta table: a row for each version of each row (SCD type 2).

Versions that are current are in files of their own, so that a merge leaves those alone that
have ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from .delta_commits import KEY_CHARACTERS_MAX, DeltaCommits, quoted
from .delta_target import REWRITE_ROWS, keyed
from .history_shape import HistoryShape, added_at, gaps_of, same_columns, with_gap
from .place import place_properties
from .row_key import DIGEST_CHARACTERS, KEY_COLUMN
from .row_versions import CountedVersions, KeyedVersions
from .shape import ShapedColumn
from .validity import (
    FROM_SEQ,
    IS_CURRENT,
    TO_NAMES,
    TO_SEQ,
    Moment,
    end_expressions,
    ended,
    since,
    validity,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from .place import Place
    from .row_changes import GroupRun
    from .row_merge import MergeBuilder
    from .row_versions import VersionMerge
    from .shape import Reshape

ENDS_COLUMN: Final = "_ibb_ends"  # in the source of a merge: the key whose version ends
NEVER: Final = -1  # before every moment
_CURRENT: Final = ds.field(IS_CURRENT) == True  # noqa: E712 - an expression


def no_group(run: GroupRun) -> Moment:
    """Stand in for what says which moment a group is, where there are no groups to be applied."""
    raise AssertionError(f"{run.gtid} is in no batch that is under way")


class HistoryTarget(DeltaCommits):
    """
    The versions of a table's rows.

    Args:
        name: of the table at the source, for errors.
        uri: a folder or an URL that delta-rs knows.
        application: under which places are stored.
        storage: options of the object store.
        moment: says which moment a group of the batch under way is.
    """

    partitions: ClassVar[list[str] | None] = [IS_CURRENT]

    def __init__(
        self,
        name: str,
        uri: str,
        application: str,
        storage: Mapping[str, str] | None,
        moment: Callable[[GroupRun], Moment],
    ) -> None:
        super().__init__(name, uri, application, storage)
        self._moment = moment

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
        old = self._full_schema() if self._table is not None else pa.schema([])
        shape = HistoryShape(old, same_columns(old, schema), key, at, begins=True)
        full = with_gap(shape.schema, NEVER if held is None else Moment.of(held).seq, at.seq)
        self._replace(full, self._series(shape, keyed(rows, schema.names, key), at), place)

    def builder(self) -> MergeBuilder[VersionMerge]:
        """Return what takes changes for `merge`."""
        key = self.key
        if key:
            return KeyedVersions(self.name, self.schema, key, self._moment)
        return CountedVersions(self.name, self.schema, self._moment)

    def merge(self, changes: VersionMerge, place: Place) -> None:
        """Bring the table to *place*, of which *changes* are the difference."""
        table = self._opened()
        before = table.version()
        full = self._full_schema()
        columns = {f't."{quoted(name)}"': f's."{quoted(name)}"' for name in full.names}
        merger = table.merge(
            _marked(changes, full),
            predicate=f"t.{IS_CURRENT} = true AND t.{KEY_COLUMN} = s.{ENDS_COLUMN}",
            source_alias="s",
            target_alias="t",
            commit_properties=place_properties(self._application, place, self.name),
        )
        merger = merger.when_matched_update(
            {**{name: f"s.{name}" for name in TO_NAMES}, IS_CURRENT: "false"}
        ).when_not_matched_insert(columns, predicate=f"s.{ENDS_COLUMN} IS NULL")
        if changes.emptied is not None:
            merger = merger.when_not_matched_by_source_update(
                end_expressions(changes.emptied), predicate=f"t.{IS_CURRENT} = true"
            )
        if changes.ends or changes.versions.num_rows or changes.emptied is not None:
            merger.execute()
        if table.version() == before:  # delta-rs makes no commit of a merge without effect
            self.advance(place)

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
            self._write(pa.schema([*old, *fields]).empty_table(), "append", place, "merge")
            return
        columns = [_certain(column, old, reshape) for column in reshape.columns]
        shape = HistoryShape(old, columns, reshape.key, moment, begins=not same_key)
        if same_key:
            self._replace(shape.schema, map(shape.kept, self._all()), place)
            return
        current = (reshape.rows(batch) for batch in self.batches())
        renewed = keyed(current, reshape.schema.names, reshape.key)
        self._replace(shape.schema, self._series(shape, renewed, moment), place)

    def batches(self) -> Iterator[pa.Table]:
        """Yield the rows that there are now, without columns of ours, some at a time."""
        return self._pieces(self.schema.names, _CURRENT)

    def rows_at(self, seq: int, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield these columns of the versions that there were at the moment *seq*."""
        to = ds.field(TO_SEQ)
        there = (ds.field(FROM_SEQ) <= seq) & (to.is_null() | (to > seq))
        return self._pieces(columns, there)

    def borders(self, first: str, last: str) -> pa.Table:
        """Return key and borders of the versions whose keys are from *first* up to *last*."""
        key = pc.utf8_slice_codeunits(ds.field(KEY_COLUMN), 0, len(first))
        wanted = (key >= first) & (key <= last)
        names = [KEY_COLUMN, FROM_SEQ, TO_SEQ, IS_CURRENT]
        return self._dataset(self._opened()).to_table(columns=names, filter=wanted)

    @property
    def versions(self) -> int:
        """How many versions there are."""
        counted: int = self._dataset(self._opened()).count_rows()
        return counted

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
        wanted = _CURRENT & key.isin(sorted(keys))
        names = [KEY_COLUMN, *self.schema.names]
        return self._dataset(self._opened()).to_table(columns=names, filter=wanted)

    def copies_of(self, digests: Collection[str]) -> dict[str, int]:
        """Return how many rows there are now of each content; contents without any are left out."""
        digest = pc.utf8_slice_codeunits(ds.field(KEY_COLUMN), 0, DIGEST_CHARACTERS)
        wanted = _CURRENT & digest.isin(sorted(digests))
        found = self._dataset(self._opened()).to_table(columns={"digest": digest}, filter=wanted)
        counts = found.group_by("digest").aggregate([([], "count_all")])
        return dict(zip(*(counts.column(name).to_pylist() for name in ("digest", "count_all"))))  # noqa: B905

    def _series(
        self, shape: HistoryShape, rows: Iterator[pa.Table], at: Moment
    ) -> Iterator[pa.Table]:
        """Yield all versions, ended now, and then those that begin with *rows*."""
        if self._table is not None:
            for batch in self._all():
                yield shape.kept(ended(batch, at))
        for batch in rows:
            yield shape.begun(batch, since(at, batch.num_rows))

    def _all(self) -> Iterator[pa.Table]:
        return self._pieces(self._full_schema().names, None)

    def _pieces(self, columns: Sequence[str], wanted: Any) -> Iterator[pa.Table]:
        dataset = self._dataset(self._opened())
        options: Any = {"columns": list(columns), "filter": wanted, "batch_size": REWRITE_ROWS}
        for batch in dataset.to_batches(**options):
            yield pa.Table.from_batches([batch])


def _certain(column: ShapedColumn, old: pa.Schema, reshape: Reshape) -> ShapedColumn:
    """Return *column* without its source where versions of before may have values too large."""
    if column.source is None or reshape.has_rows:
        return column
    same = old.field(column.source).type == column.field.type
    return column if same else ShapedColumn(column.field, None)


def _marked(changes: VersionMerge, full: pa.Schema) -> pa.Table:
    """Return the source of a merge: versions that are new, and keys whose version ends."""
    keys, moments = list(changes.ends), list(changes.ends.values())
    ours = validity(moments, moments)
    known = {**dict(zip(ours.column_names, ours.columns, strict=True))}
    ends = [known.get(field.name, pa.nulls(len(keys), field.type)) for field in full]
    rows = changes.versions
    begins = [
        rows.column(field.name).cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in full
    ]
    together = pa.concat_tables([pa.table(begins, schema=full), pa.table(ends, schema=full)])
    mark = pa.array([None] * rows.num_rows + keys, pa.string())
    return together.append_column(ENDS_COLUMN, mark)
