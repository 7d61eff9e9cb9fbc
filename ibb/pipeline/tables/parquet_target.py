"""
A change table as plain Parquet files with a manifest, for readers that know nothing of Delta.

A commit writes files anew of which a row changed, and one with rows that came; then the manifest
makes them the table, all at once. Small files are put together on the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from .change_target import Version
from .counted_rows import CountedRows
from .delta_commits import visible
from .delta_target import described, keyed
from .first_touches import Trust
from .latest_rows import LatestRows
from .parquet_files import ParquetFiles
from .parquet_manifest import DataFile
from .row_key import DIGEST_CHARACTERS, KEY_COLUMN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from .place import Place
    from .row_changes import GroupRun
    from .row_merge import MergeBuilder, RowMerge
    from .shape import Reshape


class ParquetTarget(ParquetFiles):
    """The rows of a table as they are now."""

    trust = Trust.ALL
    """What is known of its rows, which merges must find as changes say."""

    def versions(self) -> Iterator[Version]:
        """Yield the versions that are left, newest first."""
        for found in self._manifest.kept(self._folder) if self._manifest else ():
            place = found.places.get(self._application)
            if place is not None:
                yield Version(found.version, place.position, found.table, found.made)

    def create(self, schema: pa.Schema, key: Sequence[str], place: Place) -> None:
        """Make the table empty, in place of what may be there."""
        self._publish(described(schema, key), [], place, made=True)

    def fill(
        self, schema: pa.Schema, key: Sequence[str], rows: Iterable[pa.Table], place: Place
    ) -> None:
        """Put a table of *rows* in place of what may be there, in one commit."""
        full, names = described(schema, key), self._names()
        files = self._written(keyed(rows, schema.names, key), full, names)
        self._publish(full, files, place)

    def builder(self) -> MergeBuilder[RowMerge]:
        """Return what takes changes for `merge`."""
        key = self.key
        if key:
            return LatestRows(self.name, self.schema, key, trust=self.trust)
        return CountedRows(self.name, self.schema)

    def merge(self, changes: RowMerge, place: Place) -> None:
        """
        Bring the table to *place*, of which *changes* are the difference.

        Raises:
            PipelineError: rows are not there that must be, or are there; nothing was published.
        """
        manifest, names = self._opened(), self._names()
        files: list[DataFile] = []
        if not changes.replace:
            keys = changes.upserts.column(KEY_COLUMN).to_pylist() + changes.deletes
            gone = pa.array(keys, pa.string())
            found: set[str] = set()
            for file in manifest.files:
                there = self._found(file, gone)
                files += self._without(file, gone, manifest.schema, names) if there else [file]
                found.update(there)
            if changes.before is not None:
                changes.before.check(keys, found)
        files += self._written(iter([changes.upserts]), manifest.schema, names)
        self._publish(manifest.schema, self._put_together(files, manifest.schema, names), place)

    def reshape(self, reshape: Reshape, _at: GroupRun, place: Place) -> None:
        """Write all rows anew in another shape, in one commit."""
        rows = (reshape.rows(batch) for batch in self.batches())
        self.fill(reshape.schema, reshape.key, rows, place)

    def batches(self, version: int | None = None) -> Iterator[pa.Table]:
        """Yield the rows, without the hidden column, in pieces of a bounded number."""
        manifest = self._opened(version)
        columns = visible(manifest.schema).names
        for file in manifest.files:
            yield from self._of_file(file, columns)

    def rows_of(self, keys: Collection[str]) -> pa.Table:
        """Return the rows with these *keys*, in any order, with the hidden column."""
        manifest, wanted = self._opened(), pa.array(sorted(keys), pa.string())
        found = (
            rows.filter(pc.is_in(rows.column(KEY_COLUMN), wanted))
            for file in manifest.files
            for rows in self._of_file(file, manifest.schema.names)
        )
        return pa.concat_tables([manifest.schema.empty_table(), *found])

    def copies_of(self, digests: Collection[str]) -> dict[str, int]:
        """Return how many rows there are of each content; contents without any are left out."""
        wanted = pa.array(sorted(digests), pa.string())
        counts: dict[str, int] = {}
        for file in self._opened().files:
            for rows in self._of_file(file, [KEY_COLUMN]):
                digest = pc.utf8_slice_codeunits(rows.column(KEY_COLUMN), 0, DIGEST_CHARACTERS)
                found = digest.filter(pc.is_in(digest, wanted)).value_counts()
                for value in found.to_pylist():
                    counts[value["values"]] = counts.get(value["values"], 0) + value["counts"]
        return counts

    def _found(self, file: DataFile, keys: pa.Array) -> list[str]:
        """Return those of *keys* that *file* has."""
        found: list[str] = []
        for rows in self._of_file(file, [KEY_COLUMN]):
            there = rows.column(KEY_COLUMN)
            found += there.filter(pc.is_in(there, keys)).to_pylist()
        return found

    def _without(
        self, file: DataFile, gone: pa.Array, schema: pa.Schema, names: Iterator[str]
    ) -> list[DataFile]:
        """Return a file in place of *file*, without the rows whose keys are *gone*."""
        rows = self._of_file(file, schema.names)
        left = (part.filter(pc.invert(pc.is_in(part.column(KEY_COLUMN), gone))) for part in rows)
        return self._written(left, schema, names)
