"""Changed rows of one table, in commit order, as they travel from the stream to the tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from ibb.pipeline.ddl.session_modes import DEFAULT_MODES, SessionModes
from ibb.pipeline.history_mark import NO_MARK, HistoryMark
from ibb.protocol.gtid import Gtid, GtidPosition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .prepared_xa import Prepared


class Op(IntEnum):
    """What happened to a row."""

    INSERT = 0
    UPDATE = 1
    DELETE = 2


class TableName(NamedTuple):
    """A table of the source, as its server spells it; in lower case if that compares it so."""

    database: str
    table: str

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"

    def lower(self) -> TableName:
        """Return the name in lower case."""
        return TableName(self.database.lower(), self.table.lower())


class GroupRun(NamedTuple):
    """*rows* rows in a row, all of the event group *gtid*, committed at *time* (Unix seconds)."""

    gtid: Gtid
    time: int
    rows: int


@dataclass(frozen=True)
class RowChanges:
    """
    Rows of one table and one shape: the same columns are present in each image.

    Args:
        ops: an `Op` a row.
        groups: whose rows they are; their `rows` add up to the number of rows.
        before: the images before, a row for each change; only columns that the binlog holds.
            Rows of inserts say nothing.
        after: the same after the change; rows of deletes say nothing.
        columns: all columns that the table had then, where that is known.
        key: names of the primary key's columns then, where that is known.
        unsaid: why columns that updates leave out may not be as they were; empty: they are.
    """

    ops: bytes
    groups: tuple[GroupRun, ...]
    before: pa.Table
    after: pa.Table
    columns: pa.Schema | None = None
    key: tuple[str, ...] | None = None
    unsaid: str = ""

    def __post_init__(self) -> None:
        rows = len(self.ops)
        assert sum(run.rows for run in self.groups) == rows
        assert not self.before.num_columns or self.before.num_rows == rows
        assert not self.after.num_columns or self.after.num_rows == rows

    def lacking(self, schema: pa.Schema) -> list[pa.Field]:
        """Return the columns of *schema* that neither image has."""
        found = {*self.before.column_names, *self.after.column_names}
        return [field for field in schema if field.name not in found]

    def gtid_of(self, row: int) -> Gtid:
        """Return the group of a row, by its number."""
        ends = accumulate(run.rows for run in self.groups)
        return self.groups[sum(end <= row for end in ends)].gtid

    def only(self, wanted: Callable[[Gtid], bool]) -> RowChanges:
        """Return the rows of the groups that *wanted* says yes to."""
        if all(wanted(run.gtid) for run in self.groups):
            return self
        rows: list[int] = []
        first = 0
        for run in self.groups:
            if wanted(run.gtid):
                rows.extend(range(first, first + run.rows))
            first += run.rows
        taken = pa.array(rows, pa.int64())
        return RowChanges(
            bytes(self.ops[row] for row in rows),
            tuple(run for run in self.groups if wanted(run.gtid)),
            self.before.take(taken) if self.before.num_columns else self.before,
            self.after.take(taken) if self.after.num_columns else self.after,
            self.columns,
            self.key,
            self.unsaid,
        )


class Statement(NamedTuple):
    """
    A statement of the stream that is not rows: DDL, mostly.

    Args:
        gtid: of its group.
        time: of its commit, Unix seconds.
        database: the session's.
        sql: its text.
        modes: of the session.
        error: by which it failed at the source, having done a part; 0: it did not.
        uses_temporary: tables that it names may be the session's temporary ones.
    """

    gtid: Gtid
    time: int
    database: str
    sql: str
    modes: SessionModes = DEFAULT_MODES
    error: int = 0
    uses_temporary: bool = False


class Undecoded(NamedTuple):
    """Something of table *name* that could not be decoded, with the bytes and the reason."""

    gtid: Gtid
    time: int
    name: TableName
    reason: str
    data: bytes


class Changed(NamedTuple):
    """Rows of the table *name*."""

    name: TableName
    changes: RowChanges


@dataclass(frozen=True)
class MicroBatch:
    """
    Everything between two positions, in commit order, whole groups only.

    Args:
        start: the position behind which it begins.
        end: the position that its last group leads to.
        time: the latest commit time in it, Unix seconds.
        steps: what happened: each table's in commit order, statements in order with all. Rows of
            one table may come together, so groups do not follow one another here.
        groups: every group with its commit time, in commit order.
        prepared: the XA transactions that are prepared at its end, by their XID.
        mark: of the history up to its end.
    """

    start: GtidPosition
    end: GtidPosition
    time: int
    steps: tuple[Changed | Statement | Undecoded, ...]
    groups: tuple[tuple[Gtid, int], ...]
    prepared: Mapping[str, Prepared] = field(default_factory=dict)
    mark: HistoryMark = NO_MARK
