"""
The history of a change table as a Delta table.

Versions that are current are in files of their own, so that a merge leaves those alone that
have ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import pyarrow as pa
import pyarrow.dataset as ds

from .delta_commits import DeltaCommits, quoted
from .delta_target import REWRITE_ROWS
from .history_rows import HistoryRows, begun_versions
from .place import place_properties
from .row_key import KEY_COLUMN
from .validity import IS_CURRENT, TO_NAMES, Moment, end_expressions, validity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from .open_tables import OpenTables
    from .place import Place
    from .row_changes import GroupRun
    from .row_versions import VersionMerge

ENDS_COLUMN: Final = "_ibb_ends"  # in the source of a merge: the key whose version ends
_CURRENT: Final = ds.field(IS_CURRENT) == True  # noqa: E712 - an expression


class HistoryTarget(DeltaCommits, HistoryRows):
    """
    The versions of a table's rows.

    Args:
        name: of the table at the source, for errors.
        uri: a folder or an URL that delta-rs knows.
        application: under which places are stored.
        storage: options of the object store.
        moment: says which moment a group of the batch under way is.
        opened: tables that are open already.
    """

    partitions: ClassVar[list[str] | None] = [IS_CURRENT]

    def __init__(
        self,
        name: str,
        uri: str,
        application: str,
        storage: Mapping[str, str] | None,
        moment: Callable[[GroupRun], Moment],
        opened: OpenTables | None = None,
    ) -> None:
        super().__init__(name, uri, application, storage, opened)
        self._moment = moment

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
            post_commithook_properties=self._hooks,
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

    @property
    def versions(self) -> int:
        """How many versions there are."""
        counted: int = self._dataset(self._opened()).count_rows()
        return counted

    def _append_columns(self, fields: Sequence[pa.Field], place: Place) -> None:
        schema = pa.schema([*self._full_schema(), *fields])
        self._write(schema.empty_table(), "append", place, "merge")

    def _pieces(
        self, columns: Sequence[str], wanted: Any, *, current: bool = False
    ) -> Iterator[pa.Table]:
        if current:
            wanted = _CURRENT if wanted is None else _CURRENT & wanted
        dataset = self._dataset(self._opened())
        options: Any = {"columns": list(columns), "filter": wanted, "batch_size": REWRITE_ROWS}
        for batch in dataset.to_batches(**options):
            yield pa.Table.from_batches([batch])


def _marked(changes: VersionMerge, full: pa.Schema) -> pa.Table:
    """Return the source of a merge: versions that are new, and keys whose version ends."""
    keys, moments = list(changes.ends), list(changes.ends.values())
    ours = validity(moments, moments)
    known = {**dict(zip(ours.column_names, ours.columns, strict=True))}
    ends = [known.get(field.name, pa.nulls(len(keys), field.type)) for field in full]
    begins = begun_versions(changes, full)
    together = pa.concat_tables([begins, pa.table(ends, schema=full)])
    mark = pa.array([None] * begins.num_rows + keys, pa.string())
    return together.append_column(ENDS_COLUMN, mark)
