"""
A Delta table of a pipeline: every commit stores how far it leads.

Every commit brings rows and place together, so that a crash leaves both or neither. What the
table must know of itself (its key) is metadata of the hidden key column, which changes in the
same commit as the rows too.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable, PostCommitHookProperties, write_deltalake
from deltalake.exceptions import DeltaError
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from .delta_retention import keep_known
from .errors import PipelineError
from .open_tables import OpenTables
from .place import Place, place_properties, stored_place
from .read_ahead import read_ahead
from .row_key import KEY_COLUMN
from .storable import HIDDEN_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

KEY_CHARACTERS_MAX: Final = 64  # of the hidden column: digest, dash and number
SMALL_PART: Final = 4  # a file of less than this part of the wanted size is small
KEY_METADATA: Final = b"ibb.key"
CLEAN_LOG_COMMITS: Final = 1000  # from one to the next that looks for what the log may forget


class DeltaCommits:
    """
    A Delta table at *uri* that the pipeline *application* keeps.

    Args:
        name: of the table at the source, for errors.
        uri: a folder or an URL that delta-rs knows.
        application: under which places are stored.
        storage: options of the object store.
        opened: tables that are open already.
    """

    partitions: ClassVar[list[str] | None] = None
    """Columns by whose values files are kept apart."""

    def __init__(
        self,
        name: str,
        uri: str,
        application: str,
        storage: Mapping[str, str] | None = None,
        opened: OpenTables | None = None,
    ) -> None:
        self.name = name
        self.uri = uri
        self._application = application
        self._storage = dict(storage or {})
        self._table = (opened or OpenTables()).table(uri, self._storage)

    @property
    def exists(self) -> bool:
        """Whether there is a table."""
        return self._table is not None

    @property
    def place(self) -> Place | None:
        """How far the table is; None: this pipeline has never written to it."""
        return None if self._table is None else stored_place(self._table, self._application)

    @property
    def schema(self) -> pa.Schema:
        """Its columns, without those that are ours."""
        return self.schema_at(None)

    @property
    def key(self) -> list[str]:
        """Names of the key's columns; empty: the table has no key."""
        return self.key_at(None)

    def schema_at(self, version: int | None) -> pa.Schema:
        """Return the columns of a version, without those that are ours; None: the last."""
        return visible(pa.schema(self._opened(version).schema()))

    def key_at(self, version: int | None) -> list[str]:
        """Return the names of a version's key columns; None: the last."""
        return key_of(pa.schema(self._opened(version).schema()))

    def advance(self, place: Place) -> None:
        """Store *place* without a change."""
        self._write(self._full_schema().empty_table(), "append", place)

    def compact(self, small_files: int, file_bytes: int) -> int:
        """
        Put small files together where there are too many, in one commit of the same rows and place.

        Args:
            small_files: more of them than these are too many.
            file_bytes: that a file is to have; those with less than a quarter of it are small.

        Returns:
            how many files went.
        """
        table, place = self._opened(), self.place
        sizes = pa.table(table.get_add_actions(flatten=True)).column("size_bytes").to_pylist()
        small = sum(size < file_bytes // SMALL_PART for size in sizes)
        if small <= small_files or place is None:
            return 0
        about = place_properties(self._application, place, self.name)
        done = table.optimize.compact(
            target_size=file_bytes, commit_properties=about, post_commithook_properties=self._hooks
        )
        return int(done["numFilesRemoved"])

    def keep_known(self, keep_hours: int) -> bool:
        """Have `vacuum` able to tell; return whether it could only tell of fewer hours before."""
        return keep_known(self._opened(), keep_hours)

    def vacuum(self, keep_hours: int) -> int:
        """
        Remove the files that no version of the last hours needs; return how many there were.

        All files are looked at: those that the log names as removed are only the ones since its
        last checkpoint.
        """
        table = self._opened()
        gone = table.vacuum(keep_hours, dry_run=False, full=True)
        table.update_incremental()
        return len(gone)

    def _replace(self, schema: pa.Schema, rows: Iterable[pa.Table], place: Place) -> None:
        """
        Put *rows* in place of all that is there, in one commit.

        Where they cannot be had, the error is theirs: delta-rs would tell it as its own.
        """
        batches = (batch for table in rows for batch in table.cast(schema).to_batches())
        errors: list[Exception] = []

        def told(ready: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            try:
                yield from ready
            except Exception as error:
                errors.append(error)
                raise

        with read_ahead(batches) as ready:
            reader = pa.RecordBatchReader.from_batches(schema, told(ready))
            try:
                self._write(reader, "overwrite", place)
            except DeltaError:
                if errors:
                    raise errors[0] from None
                raise

    def _write(
        self,
        data: object,
        mode: str,
        place: Place,
        schema_mode: str | None = None,
        *,
        made: bool = False,
    ) -> None:
        write: Any = write_deltalake  # its overloads want literals
        write(
            self.uri if self._table is None else self._table,
            data,
            mode=mode,
            partition_by=self.partitions,
            schema_mode=schema_mode or ("overwrite" if mode == "overwrite" else None),
            storage_options=self._storage or None,
            commit_properties=place_properties(self._application, place, self.name, made=made),
            post_commithook_properties=self._hooks,
        )
        if self._table is None:
            self._table = DeltaTable(self.uri, storage_options=self._storage)

    @property
    def _hooks(self) -> PostCommitHookProperties:
        """
        What follows a commit: a checkpoint when it is due, and a look for what the log may forget.

        Not that at each, as delta-rs would have it: it lists the log, which has an entry for each
        commit of a month.
        """
        version = 0 if self._table is None else self._table.version() + 1
        is_due = version % CLEAN_LOG_COMMITS == 0
        return PostCommitHookProperties(cleanup_expired_logs=None if is_due else False)

    def _opened(self, version: int | None = None) -> DeltaTable:
        if self._table is None:
            raise PipelineError(f"{self.name}: there is no Delta table at {self.uri}")
        if version is not None:
            return DeltaTable(self.uri, version=version, storage_options=self._storage)
        return self._table

    def _dataset(self, table: DeltaTable) -> ds.Dataset:
        """
        Return a version's rows, files of this machine read by Arrow itself.

        Through delta-rs Arrow's threads call Python, and where one comes late, when the program
        is about to end, they end it with SIGABRT.
        """
        local = None if "://" in self.uri else SubTreeFileSystem(self.uri, LocalFileSystem())
        return table.to_pyarrow_dataset(filesystem=local)

    def _full_schema(self) -> pa.Schema:
        return pa.schema(self._opened().schema())


def visible(schema: pa.Schema) -> pa.Schema:
    """Return the columns that are the source's, not ours."""
    return pa.schema([field for field in schema if not field.name.startswith(HIDDEN_PREFIX)])


def key_of(schema: pa.Schema) -> list[str]:
    """Return the key that a table with all these columns, the hidden one too, has."""
    metadata = schema.field(KEY_COLUMN).metadata or {}
    return [str(name) for name in json.loads(metadata.get(KEY_METADATA, b"[]"))]


def quoted(name: str) -> str:
    """Return the name of a column as delta-rs takes it in expressions, within quotes."""
    return name.replace('"', '""')
