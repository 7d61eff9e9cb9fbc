"""One change table as a Delta table, written by delta-rs."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake.exceptions import DeltaError

from ibb.protocol.gtid import GtidPosition

from .change_target import Version
from .counted_rows import CountedRows, numbered_keys
from .delta_commits import KEY_CHARACTERS_MAX, KEY_METADATA, DeltaCommits, quoted
from .first_touches import Trust
from .latest_rows import LatestRows
from .place import MADE_KEY, POSITION_KEY, TABLE_KEY, Place, place_properties
from .row_key import DIGEST_CHARACTERS, KEY_COLUMN, row_keys
from .row_merge import with_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from .row_changes import GroupRun
    from .row_merge import MergeBuilder, RowMerge
    from .shape import Reshape

MARK_COLUMN: Final = "_ibb_delete"
THERE_COLUMN: Final = "_ibb_there"  # in the source of a merge: whether the table must have the key
REWRITE_ROWS: Final = 65_536  # read and written at a time when a table changes its shape


# Fails where it is asked for a row: before anything of the merge is committed, and at no cost.
_REFUSED: Final = "CAST(CAST(concat('refused:', s._ibb_key) AS BIGINT) AS VARCHAR)"
_REFUSED_KEY: Final = re.compile(r"'refused:([0-9a-f]+)'")


class DeltaTarget(DeltaCommits):
    """The rows of a table as they are now."""

    trust = Trust.ALL
    """What is known of its rows, which merges must find as changes say."""

    def versions(self) -> Iterator[Version]:
        """Yield the versions that are left, newest first."""
        if self._table is None:
            return
        found = False
        for commit in self._table.history():
            made = MADE_KEY in commit
            if made or POSITION_KEY in commit:
                found = True
                position = GtidPosition.parse(commit[MADE_KEY if made else POSITION_KEY])
                name = str(commit.get(TABLE_KEY) or self.name)
                yield Version(commit["version"], position, name, made)
        place = self.place
        if not found and place is not None:  # all that the log has left is of upkeep
            yield Version(self._table.version(), place.position, self.name, made=False)

    def create(self, schema: pa.Schema, key: Sequence[str], place: Place) -> None:
        """Make the table empty, in place of what may be there."""
        self._write(described(schema, key).empty_table(), "overwrite", place, made=True)

    def builder(self) -> MergeBuilder[RowMerge]:
        """Return what takes changes for `merge`."""
        key = self.key
        if key:
            return LatestRows(self.name, self.schema, key, trust=self.trust)
        return CountedRows(self.name, self.schema)

    def fill(
        self, schema: pa.Schema, key: Sequence[str], rows: Iterable[pa.Table], place: Place
    ) -> None:
        """Put a table of *rows* in place of what may be there, in one commit."""
        self._replace(described(schema, key), keyed(rows, schema.names, key), place)

    def merge(self, changes: RowMerge, place: Place) -> None:
        """
        Bring the table to *place*, of which *changes* are the difference.

        Raises:
            PipelineError: rows are not there that must be, or are there; nothing was written.
        """
        if changes.replace:
            self._write(changes.upserts.cast(self._full_schema()), "overwrite", place)
            return
        written = False
        if changes.upserts.num_rows or changes.deletes:
            written = self._merge(changes, place)
        if not written:  # delta-rs makes no commit of a merge without effect
            self.advance(place)

    def reshape(self, reshape: Reshape, _at: GroupRun, place: Place) -> None:
        """Bring columns, key and rows into another shape."""
        added, key = reshape.added_only, self.key
        if added is not None and key and reshape.key == key:
            self.add_columns(added, place)
        else:
            self.rewrite(reshape.schema, reshape.key, reshape.rows, place)

    def add_columns(self, fields: Iterable[pa.Field], place: Place) -> None:
        """Add nullable columns at the end; rows that are there have null."""
        schema = pa.schema([*self._full_schema(), *fields])
        self._write(schema.empty_table(), "append", place, "merge")

    def rewrite(
        self,
        schema: pa.Schema,
        key: Sequence[str],
        change: Callable[[pa.Table], pa.Table],
        place: Place,
    ) -> None:
        """
        Write all rows anew in another shape, in one commit.

        Args:
            schema: the new columns.
            key: the new key.
            change: makes rows of the old shape into those of the new.
            place: where the table is then.
        """
        self.fill(schema, key, (change(batch) for batch in self.batches()), place)

    def batches(self, version: int | None = None) -> Iterator[pa.Table]:
        """Yield the rows, without the hidden column, in pieces of a bounded number."""
        table = self._opened(version)
        columns = [field.name for field in pa.schema(table.schema()) if field.name != KEY_COLUMN]
        dataset = self._dataset(table)
        for batch in dataset.to_batches(columns=columns, batch_size=REWRITE_ROWS):
            yield pa.Table.from_batches([batch])

    @property
    def rows(self) -> int:
        """How many rows there are."""
        counted: int = self._dataset(self._opened()).count_rows()
        return counted

    def rows_of(self, keys: Collection[str]) -> pa.Table:
        """Return the rows with these *keys*, in any order, with the hidden column."""
        # Sliced to no effect, so that Arrow does not compare it with the files' statistics: these
        # come as a kind of string that it cannot compare.
        key = pc.utf8_slice_codeunits(ds.field(KEY_COLUMN), 0, KEY_CHARACTERS_MAX)
        wanted = key.isin(sorted(keys))
        return self._dataset(self._opened()).to_table(filter=wanted)

    def copies_of(self, digests: Collection[str]) -> dict[str, int]:
        """Return how many rows there are of each content; contents without any are left out."""
        digest = pc.utf8_slice_codeunits(ds.field(KEY_COLUMN), 0, DIGEST_CHARACTERS)
        wanted = digest.isin(sorted(digests))
        found = self._dataset(self._opened()).to_table(columns={"digest": digest}, filter=wanted)
        counts = found.group_by("digest").aggregate([([], "count_all")])
        return dict(zip(*(counts.column(name).to_pylist() for name in ("digest", "count_all"))))  # noqa: B905

    def _merge(self, changes: RowMerge, place: Place) -> bool:
        table, full = self._opened(), self._full_schema()
        before = table.version()
        source = _marked(changes, full)
        columns = {f't."{quoted(name)}"': f's."{quoted(name)}"' for name in full.names}
        merger = table.merge(
            source,
            predicate=f"t.{KEY_COLUMN} = s.{KEY_COLUMN}",
            source_alias="s",
            target_alias="t",
            commit_properties=place_properties(self._application, place, self.name),
            post_commithook_properties=self._hooks,
        )
        if changes.before is not None:  # the first clause that holds is the one
            refused = {f't."{KEY_COLUMN}"': _REFUSED}
            merger = merger.when_matched_update(refused, predicate=f"NOT s.{THERE_COLUMN}")
            if changes.before.trust is Trust.ALL:
                merger = merger.when_not_matched_insert(refused, predicate=f"s.{THERE_COLUMN}")
        merger = (
            merger.when_matched_delete(f"s.{MARK_COLUMN}")
            .when_matched_update(columns)
            .when_not_matched_insert(columns, predicate=f"NOT s.{MARK_COLUMN}")
        )
        try:
            merger.execute()
        except DeltaError as error:
            refusal = _REFUSED_KEY.search(str(error))
            if refusal is None or changes.before is None:
                raise
            raise changes.before.error(refusal[1]) from None
        return table.version() != before


def described(schema: pa.Schema, key: Sequence[str]) -> pa.Schema:
    """Return all columns of a table: the hidden one, which says what the key is, then *schema*."""
    metadata = {KEY_METADATA: json.dumps(list(key)).encode()}
    return pa.schema([pa.field(KEY_COLUMN, pa.string(), metadata=metadata), *schema])


def keyed(
    batches: Iterable[pa.Table], names: Sequence[str], key: Sequence[str]
) -> Iterator[pa.Table]:
    """Yield all rows of a table with their keys in the hidden column, then columns of *names*."""
    if key:
        for batch in batches:
            yield with_keys(batch, row_keys(batch, key), names)
        return
    seen: dict[str, int] = {}
    for batch in batches:
        yield with_keys(batch, numbered_keys(row_keys(batch, names), seen), names)


def _marked(changes: RowMerge, full: pa.Schema) -> pa.Table:
    """Return the source of a merge: whole rows, and keys that go, which have a mark."""
    rows = changes.upserts.num_rows
    marks = pa.array([False] * rows + [True] * len(changes.deletes))
    gone = pa.table(
        [
            pa.array(changes.deletes, pa.string())
            if field.name == KEY_COLUMN
            else pa.nulls(len(changes.deletes), field.type)
            for field in full
        ],
        schema=full,
    )
    together = pa.concat_tables([changes.upserts.select(full.names).cast(full), gone])
    together = together.append_column(MARK_COLUMN, marks)
    if changes.before is None:
        return together
    known = changes.before.there
    there = pa.array([key in known for key in together.column(KEY_COLUMN).to_pylist()], pa.bool_())
    return together.append_column(THERE_COLUMN, there)
