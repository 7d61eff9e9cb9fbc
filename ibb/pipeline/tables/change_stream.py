"""A directory of binlog files as micro-batches of changes."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from ibb.pipeline.cuts import just_behind
from ibb.pipeline.history_mark import is_marked, mark_before
from ibb.pipeline.row_batches import RowBatches
from ibb.protocol.errors import IbbError
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.protocol.rows.row_stage import DELETE, INSERT, UPDATE
from ibb.protocol.rows.table_layout import layout_of
from ibb.storage.inspect.recovered_view import recovered_view
from ibb.storage.os_disk import OsDisk
from ibb.storage.read_only import ReadOnlyHistory

from .errors import PipelineError
from .group_steps import TableRows, steps_of
from .place import is_behind
from .prepared_xa import PassedXa, PreparedXa
from .rising_groups import rising_groups
from .row_changes import (
    Changed,
    GroupRun,
    MicroBatch,
    Op,
    RowChanges,
    Statement,
    TableName,
    Undecoded,
)
from .storable import storable, storable_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ibb.pipeline.history_mark import HistoryMark
    from ibb.pipeline.row_batches import RowBatch
    from ibb.protocol.rows.table_map import TableMap
    from ibb.protocol.rows.table_schema import TableSchema
    from ibb.storage.history import History
    from ibb.storage.position import Position

    from .config import PipelineConfig
    from .ledger import Ledger
    from .prepared_xa import Prepared

_HASH: Final = re.compile(r"DB_ROW_HASH_\d+")
_OPS: Final = {INSERT: Op.INSERT, UPDATE: Op.UPDATE, DELETE: Op.DELETE}


def read_batches(
    config: PipelineConfig,
    ledger: Ledger,
    schema_of: Callable[[TableMap], TableSchema | None],
    until: GtidPosition | None = None,
) -> Iterator[MicroBatch]:
    """
    Yield what is behind *ledger* up to the end at the time of asking, in batches of whole groups.

    A batch ends behind a statement, so that rows behind it meet tables that have followed it.

    Args:
        config: of the pipeline.
        ledger: where the first batch begins, and what is known of the history there.
        schema_of: what else is known of a table.
        until: end behind the last of these groups, all of which were applied before.

    Raises:
        PipelineError: another history is there, it ends before *until*, or numbers fall.
        SqlError: 1236, the position is not in the history, or cannot be told.
        TooOld: groups behind it were purged.
        FormatError: the binlog is damaged.
    """
    history = ReadOnlyHistory(
        recovered_view(OsDisk(), config.source), config.source, follow_unsynced=True
    )
    try:
        check_history(config, history, ledger)
        start = ledger.place.position
        batch = _Batch(start, schema_of, config.table_name)
        pending = PreparedXa(ledger.prepared, history.pages)
        if until is not None:
            pending = PassedXa(history.pages)
        wanted = {gtid for gtid in until or () if is_behind(gtid, start)}

        def wants(name: TableName) -> bool:
            return config.wants(config.table_name(*name))

        for group in rising_groups(history, start, ledger.mark):
            assert group.gtid is not None
            if until is not None and not wanted:
                break
            wanted.discard(group.gtid)
            steps = steps_of(group, wants, pending)
            ends, last = batch.take(group.gtid, group.timestamp, steps), group.position
            if ends or batch.is_full(config):
                yield batch.finished(pending.known, _mark_at(history, last))
                batch = _Batch(batch.end, schema_of, config.table_name)
        if batch.groups:
            yield batch.finished(pending.known, _mark_at(history, last))
        if wanted:
            raise PipelineError(f"{min(wanted)} is not in the history of {config.source}")
    finally:
        history.close()


def _mark_at(history: History, last: Position) -> HistoryMark:
    """Return the mark of a history up to its group at *last*, where reading can go on behind it."""
    marked = mark_before(history.pages, just_behind(last))
    assert marked.file == last.file_no, "a group is there"
    return marked._replace(offset=last.offset)


def check_history(config: PipelineConfig, history: History, ledger: Ledger) -> None:
    """
    Check that *history* is the one that the tables follow.

    Raises:
        PipelineError: it is another one.
        FormatError: it is damaged.
    """
    if not is_marked(history.pages, ledger.mark):
        raise PipelineError(
            f"source.path: the history in {config.source} was begun anew (RESET MASTER), or is "
            f"another one, since the tables were at {ledger.place.position}: its file "
            f"{ledger.mark.file} is not the same. Read all tables anew: --snapshot '*.*'"
        )


class _Batch:
    """A batch that is being read."""

    def __init__(
        self,
        start: GtidPosition,
        schema_of: Callable[[TableMap], TableSchema | None],
        name_of: Callable[[str, str], TableName],
    ) -> None:
        self.groups = 0
        self.rows = 0
        self.bytes = 0  # of rows events
        self.end = start.copy()
        self._start = start
        self._time = 0
        self._schema_of = schema_of
        self._name_of = name_of
        self._tags: list[tuple[Gtid, int]] = []
        self._steps: list[Changed | Statement | Undecoded] = []
        self._open: dict[TableName, _OpenTable] = {}

    def take(self, gtid: Gtid, time: int, steps: list[TableRows | Statement]) -> bool:
        """Take a group; return whether the batch must end behind it."""
        self.groups += 1
        self.end.set(gtid)
        self._time = max(self._time, time)
        self._tags.append((gtid, time))
        for step in steps:
            if isinstance(step, Statement):
                self._close()
                self._steps.append(step)
            else:
                self._rows(step)
        return any(isinstance(step, Statement) for step in steps)

    def is_full(self, config: PipelineConfig) -> bool:
        """Tell whether it has as much as a batch is to have."""
        return (
            self.groups >= config.batch_groups
            or self.rows >= config.batch_rows
            or self.bytes >= config.batch_bytes
        )

    def finished(self, prepared: dict[str, Prepared], mark: HistoryMark) -> MicroBatch:
        """Return the batch; *prepared* XA transactions and *mark* of the history at its end."""
        self._close()
        steps, groups = tuple(self._steps), tuple(self._tags)
        return MicroBatch(self._start, self.end, self._time, steps, groups, prepared, mark)

    def _rows(self, step: TableRows) -> None:
        name = self._name_of(step.table_map.database, step.table_map.table)
        table = self._open.get(name)
        same = (step.table_map.layout, step.unsaid)
        if table is None or (table.layout_bytes, table.unsaid) != same:
            if table is not None:
                self._steps += table.close()
            table = _OpenTable(name, step, self._schema_of(step.table_map), self._tags)
            self._open[name] = table
        self.rows += table.add(step.event, len(self._tags) - 1)
        self.bytes += len(step.event)
        self._steps += table.full()

    def _close(self) -> None:
        for table in self._open.values():
            self._steps += table.close()
        self._open.clear()


class _OpenTable:
    """Rows of one version of a table, as they come."""

    def __init__(
        self,
        name: TableName,
        first: TableRows,
        schema: TableSchema | None,
        tags: list[tuple[Gtid, int]],
    ) -> None:
        self.layout_bytes, self.unsaid = first.table_map.layout, first.unsaid
        self._name = name
        self._tags = tags
        self._events: list[tuple[bytes, int]] = []  # of the batch that is open
        self._layout = layout_of(first.table_map, schema)
        self._batches: RowBatches | None = None
        self._reason = ""
        try:
            self._batches = RowBatches(self._layout)
        except IbbError as error:
            self._reason = str(error)

    def add(self, event: bytes, tag: int) -> int:
        self._events.append((event, tag))
        if self._batches is None:
            return 0
        try:
            return self._batches.add(event, tag)
        except IbbError as error:
            self._reason = str(error)
            return 0

    def full(self) -> list[Changed | Undecoded]:
        return self.close() if self._batches is not None and self._batches.is_full else []

    def close(self) -> list[Changed | Undecoded]:
        """Return the rows so far; if any of them cannot be decoded, event by event."""
        events, self._events = self._events, []
        if not self._reason and self._batches is not None:
            try:
                return self._taken(self._batches)
            except IbbError:
                self._batches = RowBatches(self._layout)
        found: list[Changed | Undecoded] = []
        for event, tag in events:
            try:
                single = RowBatches(self._layout)
                single.add(event, tag)
                found += self._taken(single)
            except IbbError as error:
                found.append(Undecoded(*self._tags[tag], self._name, str(error), event))
        if self._reason and self._batches is not None:
            self._reason, self._batches = "", RowBatches(self._layout)
        return found

    def _taken(self, batches: RowBatches) -> list[Changed | Undecoded]:
        found: list[Changed | Undecoded] = []
        while batches.rows:
            parts = row_changes(batches.take(), self._tags, self.unsaid)
            found.extend(Changed(self._name, changes) for changes in parts)
        return found


def row_changes(
    batch: RowBatch, tags: list[tuple[Gtid, int]], unsaid: str = ""
) -> Iterator[RowChanges]:
    """Yield the rows of *batch*, cut where other columns are present in the images."""
    presence = [
        [None] * batch.rows if there is None else there.to_pylist()
        for there in (batch.before_present, batch.after_present)
    ]
    codes = batch.op_code.to_pylist()
    is_partial = batch.before_present is not None or batch.after_present is not None
    shapes = list(zip(*presence, codes if is_partial else [0] * batch.rows, strict=True))
    first = 0
    for row in range(1, batch.rows + 1):
        if row == batch.rows or shapes[row] != shapes[first]:
            yield replace(_segment(batch, first, row, shapes[first], tags), unsaid=unsaid)
            first = row


def _segment(
    batch: RowBatch,
    first: int,
    last: int,
    shape: tuple[bytes | None, bytes | None, int],
    tags: list[tuple[Gtid, int]],
) -> RowChanges:
    count = last - first
    images: list[pa.Table] = []
    for image, bits, without in ((batch.before, shape[0], INSERT), (batch.after, shape[1], DELETE)):
        if image is None or shape[2] == without:
            images.append(pa.table({}))
            continue
        names = [
            column.name
            for number, column in enumerate(batch.layout.columns)
            if (bits is None or bits[number // 8] >> number % 8 & 1) and not _is_hash(column.name)
        ]
        rows = pa.Table.from_batches([image.slice(first, count)])
        images.append(storable(rows.select(names)))
    key = batch.layout.key or ()
    columns = pa.schema([field for field in batch.image_schema if not _is_hash(field.name)])
    return RowChanges(
        bytes(_OPS[code] for code in batch.op_code.slice(first, count).to_pylist()),
        _runs(batch.tag.slice(first, count).to_pylist(), tags),
        images[0],
        images[1],
        storable_schema(columns),
        tuple(batch.layout.columns[number].name for number in key),
    )


def _is_hash(name: str) -> bool:
    """Whether a column is one that the server adds, unseen, for a UNIQUE key over long values."""
    return _HASH.fullmatch(name) is not None


def _runs(numbers: list[int], tags: list[tuple[Gtid, int]]) -> tuple[GroupRun, ...]:
    runs: list[GroupRun] = []
    for number in numbers:
        gtid, time = tags[number]
        if runs and runs[-1].gtid == gtid:
            runs[-1] = runs[-1]._replace(rows=runs[-1].rows + 1)
        else:
            runs.append(GroupRun(gtid, time, 1))
    return tuple(runs)
