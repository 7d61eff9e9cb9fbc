"""
The history of a change table as plain Parquet files with a manifest.

Versions that have ended are put into files of their own, which no merge reads; the others may have
some that have ended too, until a merge writes them anew.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from .history_rows import HistoryRows, begun_versions
from .parquet_files import ParquetFiles
from .parquet_manifest import DATA_PREFIX
from .row_key import KEY_COLUMN
from .validity import IS_CURRENT, TO_NAMES, VALIDITY, ended, validity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from .parquet_manifest import DataFile
    from .place import Place
    from .row_changes import GroupRun
    from .row_versions import VersionMerge
    from .validity import Moment

ENDED: Final = "ended-"  # in names of files all versions of which have ended


class ParquetHistory(ParquetFiles, HistoryRows):
    """
    The versions of a table's rows.

    Args:
        name: of the table at the source, for errors.
        uri: a folder or an URL that fsspec knows.
        application: under which places are stored.
        storage: options of the object store.
        moment: says which moment a group of the batch under way is.
    """

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

    @property
    def versions(self) -> int:
        """How many versions there are."""
        return self.rows

    def merge(self, changes: VersionMerge, place: Place) -> None:
        """Bring the history to *place*, of which *changes* are the difference."""
        schema, ends = self._full_schema(), _Ends(changes)
        names, ended_names = self._names(), self._names(ENDED)
        open_files: list[DataFile] = []
        ended_files: list[DataFile] = []
        for file in self.files:
            if _has_ended(file):
                ended_files.append(file)
            elif not any(map(ends.touch, self._of_file(file, [KEY_COLUMN, IS_CURRENT]))):
                open_files.append(file)
            else:
                left = map(ends.left, self._of_file(file, schema.names))
                open_files += self._written(left, schema, names)
                gone = map(ends.gone, self._of_file(file, schema.names))
                ended_files += self._written(gone, schema, ended_names)
        begun = begun_versions(changes, schema)
        is_current = begun.column(IS_CURRENT)
        open_files += self._written(iter([begun.filter(is_current)]), schema, names)
        over = begun.filter(pc.invert(is_current))
        ended_files += self._written(iter([over]), schema, ended_names)
        files = [
            *self._put_together(open_files, schema, names),
            *self._put_together(ended_files, schema, ended_names),
        ]
        self._publish(schema, files, place)

    def _full_schema(self) -> pa.Schema:
        return self._opened().schema

    def _replace(self, schema: pa.Schema, rows: Iterable[pa.Table], place: Place) -> None:
        files = self._written(iter(rows), schema, self._names())
        self._publish(schema, files, place)

    def _append_columns(self, fields: Sequence[pa.Field], place: Place) -> None:
        schema = pa.schema([*self._full_schema(), *fields])

        def wider(rows: pa.Table) -> pa.Table:
            for field in fields:
                rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
            return rows

        self._replace(schema, map(wider, self.all_versions()), place)

    def _pieces(
        self, columns: Sequence[str], wanted: Any, *, current: bool = False
    ) -> Iterator[pa.Table]:
        needed = list(dict.fromkeys([*columns, KEY_COLUMN, *VALIDITY.names]))
        files = [file for file in self.files if not (current and _has_ended(file))]
        for rows in chain.from_iterable(self._of_file(file, needed) for file in files):
            chosen = rows.filter(rows.column(IS_CURRENT)) if current else rows
            chosen = chosen if wanted is None else chosen.filter(wanted)
            yield chosen.select(list(columns))


class _Ends:
    """Tells which current versions a merge ends, and ends them."""

    def __init__(self, changes: VersionMerge) -> None:
        self._keys = pa.array(list(changes.ends), pa.string())
        moments = list(changes.ends.values())
        self._borders = validity(moments, moments)
        self._emptied = changes.emptied

    def touch(self, rows: pa.Table) -> bool:
        return bool(pc.any(self._hit(rows)).as_py())

    def left(self, rows: pa.Table) -> pa.Table:
        """Return the versions that are current still."""
        return rows.filter(pc.and_not(rows.column(IS_CURRENT), self._hit(rows)))

    def gone(self, rows: pa.Table) -> pa.Table:
        """Return the versions that have ended, now or before."""
        current = rows.column(IS_CURRENT)
        over = rows.filter(pc.invert(current))
        now = rows.filter(self._hit(rows))
        index = pc.index_in(now.column(KEY_COLUMN), self._keys)
        named = now.filter(index.is_valid())
        borders = self._borders.take(index.drop_null())
        for name in TO_NAMES:
            at = named.schema.get_field_index(name)
            kind = named.schema.field(at)
            named = named.set_column(at, kind, borders.column(name).cast(kind.type))
        at = named.schema.get_field_index(IS_CURRENT)
        no_more = pa.repeat(pa.scalar(value=False), named.num_rows)
        named = named.set_column(at, named.schema.field(at), no_more)
        others = now.filter(index.is_null())
        if self._emptied is not None:
            others = ended(others, self._emptied)
        return pa.concat_tables([over, named, others])

    def _hit(self, rows: pa.Table) -> pa.ChunkedArray:
        current = rows.column(IS_CURRENT)
        if self._emptied is not None:
            return current
        return pc.and_(current, pc.is_in(rows.column(KEY_COLUMN), self._keys))


def _has_ended(file: DataFile) -> bool:
    return file.name.startswith(f"{DATA_PREFIX}{ENDED}")
