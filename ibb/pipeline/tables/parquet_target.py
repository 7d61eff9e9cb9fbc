"""
A change table as plain Parquet files with a manifest, for readers that know nothing of Delta.

A commit writes files anew of which a row changed, and one with rows that came; then the manifest
makes them the table, all at once. Small files are put together on the way.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .change_target import Version
from .counted_rows import CountedRows
from .delta_commits import key_of, visible
from .delta_target import described, keyed
from .errors import PipelineError
from .latest_rows import LatestRows
from .parquet_manifest import DATA_PREFIX, DataFile, Manifest
from .row_key import DIGEST_CHARACTERS, KEY_COLUMN
from .state_folder import StateFolder

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from .place import Place
    from .row_changes import GroupRun
    from .row_merge import MergeBuilder, RowMerge
    from .shape import Reshape

FILE_ROWS: Final = 1_000_000  # in a file, at most
SMALL_ROWS: Final = FILE_ROWS // 4  # a file with fewer is put together with others
SMALL_FILES_MAX: Final = 8  # when there are more, they become one
PIECE_ROWS: Final = 65_536  # read and written at a time; of a row group


class ParquetTarget:
    """
    The Parquet files at *uri* that the pipeline *application* keeps.

    Args:
        name: of the table at the source.
        uri: a folder or an URL that fsspec knows.
        application: under which places are stored.
        storage: options of the object store.
    """

    def __init__(
        self, name: str, uri: str, application: str, storage: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.uri = uri
        self._application = application
        self._folder = StateFolder(uri, storage)
        self._manifest = Manifest.load(self._folder)

    @property
    def exists(self) -> bool:
        """Whether there is a table."""
        return self._manifest is not None

    @property
    def place(self) -> Place | None:
        """How far the table is; None: this pipeline has never written to it."""
        return self._manifest.places.get(self._application) if self._manifest else None

    @property
    def schema(self) -> pa.Schema:
        """Its columns, without those that are ours."""
        return self.schema_at(None)

    @property
    def key(self) -> list[str]:
        """Names of the key's columns; empty: the table has no key."""
        return self.key_at(None)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(file.rows for file in self._opened().files)

    @property
    def files(self) -> list[DataFile]:
        """The files that are the table."""
        return list(self._opened().files)

    def schema_at(self, version: int | None) -> pa.Schema:
        """Return the columns of a version, without those that are ours; None: the last."""
        return visible(self._opened(version).schema)

    def key_at(self, version: int | None) -> list[str]:
        """Return the names of a version's key columns; None: the last."""
        return key_of(self._opened(version).schema)

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
            return LatestRows(self.name, self.schema, key)
        return CountedRows(self.name, self.schema)

    def merge(self, changes: RowMerge, place: Place) -> None:
        """Bring the table to *place*, of which *changes* are the difference."""
        manifest, names = self._opened(), self._names()
        files: list[DataFile] = []
        if not changes.replace:
            keys = changes.upserts.column(KEY_COLUMN).to_pylist() + changes.deletes
            gone = pa.array(keys, pa.string())
            for file in manifest.files:
                files += self._without(file, gone, manifest.schema, names)
        files += self._written(iter([changes.upserts]), manifest.schema, names)
        self._publish(manifest.schema, self._put_together(files, manifest.schema, names), place)

    def advance(self, place: Place) -> None:
        """Store *place* without a change."""
        manifest = self._opened()
        self._publish(manifest.schema, manifest.files, place)

    def reshape(self, reshape: Reshape, _at: GroupRun, place: Place) -> None:
        """Write all rows anew in another shape, in one commit."""
        rows = (reshape.rows(batch) for batch in self.batches())
        self.fill(reshape.schema, reshape.key, rows, place)

    def batches(self, version: int | None = None) -> Iterator[pa.Table]:
        """Yield the rows, without the hidden column, in pieces of a bounded number."""
        manifest = self._opened(version)
        columns = visible(manifest.schema).names
        for file in manifest.files:
            yield from self._pieces(file, columns)

    def rows_of(self, keys: Collection[str]) -> pa.Table:
        """Return the rows with these *keys*, in any order, with the hidden column."""
        manifest, wanted = self._opened(), pa.array(sorted(keys), pa.string())
        found = (
            rows.filter(pc.is_in(rows.column(KEY_COLUMN), wanted))
            for file in manifest.files
            for rows in self._pieces(file, manifest.schema.names)
        )
        return pa.concat_tables([manifest.schema.empty_table(), *found])

    def copies_of(self, digests: Collection[str]) -> dict[str, int]:
        """Return how many rows there are of each content; contents without any are left out."""
        wanted = pa.array(sorted(digests), pa.string())
        counts: dict[str, int] = {}
        for file in self._opened().files:
            for rows in self._pieces(file, [KEY_COLUMN]):
                digest = pc.utf8_slice_codeunits(rows.column(KEY_COLUMN), 0, DIGEST_CHARACTERS)
                found = digest.filter(pc.is_in(digest, wanted)).value_counts()
                for value in found.to_pylist():
                    counts[value["values"]] = counts.get(value["values"], 0) + value["counts"]
        return counts

    def _without(
        self, file: DataFile, gone: pa.Array, schema: pa.Schema, names: Iterator[str]
    ) -> list[DataFile]:
        """Return *file*, or in its place one without the rows whose keys are *gone*."""
        keys = self._pieces(file, [KEY_COLUMN])
        if not any(pc.any(pc.is_in(rows.column(KEY_COLUMN), gone)).as_py() for rows in keys):
            return [file]
        rows = self._pieces(file, schema.names)
        left = (part.filter(pc.invert(pc.is_in(part.column(KEY_COLUMN), gone))) for part in rows)
        return self._written(left, schema, names)

    def _put_together(
        self, files: list[DataFile], schema: pa.Schema, names: Iterator[str]
    ) -> list[DataFile]:
        """Return *files*, the small ones as few large ones if they are too many."""
        small = [file for file in files if file.rows < SMALL_ROWS]
        if len(small) <= SMALL_FILES_MAX:
            return files
        rows = (part for file in small for part in self._pieces(file, schema.names))
        large = [file for file in files if file.rows >= SMALL_ROWS]
        return large + self._written(rows, schema, names)

    def _written(
        self, rows: Iterator[pa.Table], schema: pa.Schema, names: Iterator[str]
    ) -> list[DataFile]:
        """Write *rows* into files that no manifest has yet."""
        files: list[DataFile] = []
        pieces = (piece for table in rows for piece in _cut(table.cast(schema)))
        piece = next(pieces, None)
        while piece is not None:
            name, written = next(names), 0
            with self._folder.new_file(name) as file, pq.ParquetWriter(file, schema) as writer:
                while piece is not None and written + piece.num_rows <= FILE_ROWS:
                    writer.write_table(piece, PIECE_ROWS)
                    written += piece.num_rows
                    piece = next(pieces, None)
            files.append(DataFile(name, written))
        return files

    def _publish(
        self, schema: pa.Schema, files: Sequence[DataFile], place: Place, *, made: bool = False
    ) -> None:
        places = dict(self._manifest.places) if self._manifest else {}
        places[self._application] = place
        manifest = Manifest(self._next, self.name, schema, tuple(files), places, made)
        manifest.publish(self._folder)
        self._manifest = manifest
        manifest.remove_others(self._folder)

    def _pieces(self, file: DataFile, columns: Sequence[str]) -> Iterator[pa.Table]:
        with self._folder.opened(file.name) as source, pq.ParquetFile(source) as parquet:
            for batch in parquet.iter_batches(PIECE_ROWS, columns=list(columns), use_threads=False):
                yield pa.Table.from_batches([batch])

    def _opened(self, version: int | None = None) -> Manifest:
        found = self._manifest
        if found is not None and version is not None:
            found = Manifest.load(self._folder, version)
        if found is None:
            raise PipelineError(f"{self.name}: there is no Parquet table at {self.uri}")
        return found

    @property
    def _next(self) -> int:
        return self._manifest.version + 1 if self._manifest else 1

    def _names(self) -> Iterator[str]:
        """Yield names for the files of the next version."""
        return (f"{DATA_PREFIX}{self._next}-{number}.parquet" for number in count(1))


def _cut(table: pa.Table) -> Iterator[pa.Table]:
    for first in range(0, table.num_rows, PIECE_ROWS):
        yield table.slice(first, PIECE_ROWS)
