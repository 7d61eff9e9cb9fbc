"""
Plain Parquet files with a manifest, which makes them the table all at once.

Small files are put together on the way.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from .delta_commits import key_of, visible
from .errors import PipelineError
from .parquet_manifest import DATA_PREFIX, DataFile, Manifest
from .state_folder import StateFolder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .place import Place

FILE_ROWS: Final = 1_000_000  # in a file, at most
SMALL_ROWS: Final = FILE_ROWS // 4  # a file with fewer is put together with others
SMALL_FILES_MAX: Final = 8  # when there are more, they become one
PIECE_ROWS: Final = 65_536  # read and written at a time; of a row group


class ParquetFiles:
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

    def advance(self, place: Place) -> None:
        """Store *place* without a change."""
        manifest = self._opened()
        self._publish(manifest.schema, manifest.files, place)

    def _put_together(
        self, files: list[DataFile], schema: pa.Schema, names: Iterator[str]
    ) -> list[DataFile]:
        """Return *files*, the small ones as few large ones if they are too many."""
        small = [file for file in files if file.rows < SMALL_ROWS]
        if len(small) <= SMALL_FILES_MAX:
            return files
        rows = (part for file in small for part in self._of_file(file, schema.names))
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

    def _of_file(self, file: DataFile, columns: Sequence[str]) -> Iterator[pa.Table]:
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

    def _names(self, kind: str = "") -> Iterator[str]:
        """Yield names for the files of the next version; *kind* is a part of them."""
        return (f"{DATA_PREFIX}{kind}{self._next}-{number}.parquet" for number in count(1))


def _cut(table: pa.Table) -> Iterator[pa.Table]:
    for first in range(0, table.num_rows, PIECE_ROWS):
        yield table.slice(first, PIECE_ROWS)
