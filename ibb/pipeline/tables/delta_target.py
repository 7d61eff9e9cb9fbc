"""
One change table as a Delta table, written by delta-rs.

Every commit brings rows and place together, so that a crash leaves both or neither. What the
table must know of itself (its key) is metadata of the hidden key column, which changes in the
same commit as the rows too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable, write_deltalake
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from ibb.protocol.gtid import GtidPosition

from .counted_rows import CountedRows, numbered_keys
from .errors import PipelineError
from .latest_rows import LatestRows
from .place import MADE_KEY, POSITION_KEY, TABLE_KEY, Place, place_properties, stored_place
from .read_ahead import read_ahead
from .row_key import DIGEST_CHARACTERS, KEY_COLUMN, row_keys
from .row_merge import with_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from .row_merge import MergeBuilder, RowMerge

MARK_COLUMN: Final = "_ibb_delete"
REWRITE_ROWS: Final = 65_536  # read and written at a time when a table changes its shape
KEY_CHARACTERS_MAX: Final = 64  # digest, dash and number
KEY_METADATA: Final = b"ibb.key"


class Version(NamedTuple):
    """
    A version of a table.

    Attributes:
        number: Delta's.
        position: how far it is.
        name: of the table then.
        made: it is empty, and that only by the group behind *position*.
    """

    number: int
    position: GtidPosition
    name: str
    made: bool


class DeltaTarget:
    """
    A Delta table at *uri* that the pipeline *application* keeps.

    Args:
        name: of the table at the source, for errors.
        uri: a folder or an URL that delta-rs knows.
        application: under which places are stored.
        storage: options of the object store.
    """

    def __init__(
        self, name: str, uri: str, application: str, storage: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.uri = uri
        self._application = application
        self._storage = dict(storage or {})
        self._table: DeltaTable | None = None
        if DeltaTable.is_deltatable(uri, self._storage):
            self._table = DeltaTable(uri, storage_options=self._storage)

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
        """Its columns, without the hidden one."""
        return self.schema_at(None)

    @property
    def key(self) -> list[str]:
        """Names of the key's columns; empty: the table has no key."""
        return self.key_at(None)

    def schema_at(self, version: int | None) -> pa.Schema:
        """Return the columns of a version, without the hidden one; None: the last."""
        full = pa.schema(self._opened(version).schema())
        return pa.schema([field for field in full if field.name != KEY_COLUMN])

    def key_at(self, version: int | None) -> list[str]:
        """Return the names of a version's key columns; None: the last."""
        field = pa.schema(self._opened(version).schema()).field(KEY_COLUMN)
        return [str(name) for name in json.loads((field.metadata or {}).get(KEY_METADATA, b"[]"))]

    def versions(self) -> Iterator[Version]:
        """Yield the versions that are left, newest first."""
        for commit in self._table.history() if self._table else ():
            made = MADE_KEY in commit
            if made or POSITION_KEY in commit:
                position = GtidPosition.parse(commit[MADE_KEY if made else POSITION_KEY])
                name = str(commit.get(TABLE_KEY) or self.name)
                yield Version(commit["version"], position, name, made)

    def create(self, schema: pa.Schema, key: Sequence[str], place: Place) -> None:
        """Make the table empty, in place of what may be there."""
        self._write(_described(schema, key).empty_table(), "overwrite", place, made=True)

    def builder(self) -> MergeBuilder:
        """Return what takes changes for `merge`."""
        key = self.key
        if key:
            return LatestRows(self.name, self.schema, key)
        return CountedRows(self.name, self.schema)

    def fill(
        self, schema: pa.Schema, key: Sequence[str], rows: Iterable[pa.Table], place: Place
    ) -> None:
        """Put a table of *rows* in place of what may be there, in one commit."""
        self._replace(_described(schema, key), _keyed(rows, schema.names, key), place)

    def merge(self, changes: RowMerge, place: Place) -> None:
        """Bring the table to *place*, of which *changes* are the difference."""
        if changes.replace:
            self._write(changes.upserts.cast(self._full_schema()), "overwrite", place)
            return
        written = False
        if changes.upserts.num_rows or changes.deletes:
            written = self._merge(changes, place)
        if not written:  # delta-rs makes no commit of a merge without effect
            self.advance(place)

    def advance(self, place: Place) -> None:
        """Store *place* without a change."""
        self._write(self._full_schema().empty_table(), "append", place)

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
        columns = {f't."{_quoted(name)}"': f's."{_quoted(name)}"' for name in full.names}
        (
            table.merge(
                source,
                predicate=f"t.{KEY_COLUMN} = s.{KEY_COLUMN}",
                source_alias="s",
                target_alias="t",
                commit_properties=place_properties(self._application, place, self.name),
            )
            .when_matched_delete(f"s.{MARK_COLUMN}")
            .when_matched_update(columns)
            .when_not_matched_insert(columns, predicate=f"NOT s.{MARK_COLUMN}")
            .execute()
        )
        return table.version() != before

    def _replace(self, schema: pa.Schema, rows: Iterator[pa.Table], place: Place) -> None:
        batches = (batch for table in rows for batch in table.cast(schema).to_batches())
        with read_ahead(batches) as ready:
            self._write(pa.RecordBatchReader.from_batches(schema, ready), "overwrite", place)

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
            schema_mode=schema_mode or ("overwrite" if mode == "overwrite" else None),
            storage_options=self._storage or None,
            commit_properties=place_properties(self._application, place, self.name, made=made),
        )
        if self._table is None:
            self._table = DeltaTable(self.uri, storage_options=self._storage)
        else:
            self._table.update_incremental()

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


def delta_uri(target: str, database: str, table: str) -> str:
    """Return where below *target* the table is: names that no folder can have are escaped."""
    folder = "/".join(_folder_name(name) for name in (database, table))
    return f"{target.rstrip('/')}/{folder}" if "://" in target else str(Path(target) / folder)


def _folder_name(name: str) -> str:
    """Return *name* as MariaDB names files: all but letters, digits, `_`, `-` is `@` and hex."""
    return "".join(
        char if char.isascii() and (char.isalnum() or char in "_-") else f"@{ord(char):04x}"
        for char in name
    )


def _described(schema: pa.Schema, key: Sequence[str]) -> pa.Schema:
    metadata = {KEY_METADATA: json.dumps(list(key)).encode()}
    return pa.schema([pa.field(KEY_COLUMN, pa.string(), metadata=metadata), *schema])


def _keyed(
    batches: Iterable[pa.Table], names: Sequence[str], key: Sequence[str]
) -> Iterator[pa.Table]:
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
    return together.append_column(MARK_COLUMN, marks)


def _quoted(name: str) -> str:
    return name.replace('"', '""')
