"""
Streams: micro-batches between two offsets, which are GTID positions.

Spark 4.2 and newer give `latestOffset` the offset to go on from, and a limit; 4.0 and 4.1 give it
nothing, so the reader keeps the last one it gave or was given. No group is split.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.errors import SqlError
from ibb.protocol.gtid import GtidPosition
from ibb.storage.group_reader import GroupReader
from ibb.storage.gtid_search import TooOld
from ibb.storage.position import Position
from ibb.storage.state_scan import read_state

from .batch_reader import TaskPartition
from .cuts import (
    Cut,
    cut_behind,
    cut_of_what_is_left,
    position_at_beginning,
)
from .errors import DataLossError, LeaseFailed, OptionError
from .file_ranges import FileRange, within_times
from .lag import lag_behind
from .options import EARLIEST, LATEST
from .read_plan import GroupChoice, ReadTask, tasks_between
from .rows import rows_of
from .stream_offset import StreamOffset, check_same_history, offset_at
from .stream_view import StreamView
from .trigger_limits import limited_end

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # before PySpark 4.2

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Nothing that Spark would look for."""


if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from .columns import Column
    from .directories import DirectoryView
    from .options import SourceOptions


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """
    A stream from one directory.

    Args:
        options: what it was asked for.
        columns: that Spark expects, in this order.

    Raises:
        OptionError: they do not fit a stream.
    """

    def __init__(self, options: SourceOptions, columns: tuple[Column, ...]) -> None:
        if options.end != LATEST:
            raise OptionError("endingGtid", "a stream has no end; use Trigger.AvailableNow")
        self._options = options
        self._columns = columns
        self._view = StreamView(options.paths)
        self._last: StreamOffset | None = None  # given to Spark, or by it
        self._until: StreamOffset | None = None  # Trigger.AvailableNow

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """
        Return where a stream without a checkpoint begins.

        Raises:
            OptionError: an option does not fit the history.
            LeaseFailed: the lease could not be made.
        """
        with self._view.look() as view:
            position = self._first_position(view)
            try:
                cut = cut_behind(view.pages, view.state, position)
            except (SqlError, TooOld) as error:
                raise OptionError("startingGtid", f"'{position}': {error}") from error
            self._last = offset_at(view.pages, position, cut.end)
        if self._options.lease is not None:
            self._options.lease.move_to(self._last.gtid)
        return self._last.as_dict()

    def latestOffset(  # noqa: N802 - Spark's name
        self, start: dict[str, Any] | None = None, limit: object = None
    ) -> dict[str, Any]:
        """
        Return where the next micro-batch ends; *start* if there is nothing new.

        Args:
            start: where it begins; Spark before 4.2 does not say.
            limit: of Spark's own; the options for that are ours.

        Raises:
            DataLossError: groups were purged unread, or another history is here.
        """
        del limit
        begun = self._last if start is None else StreamOffset.of(start)
        with self._view.look() as view:
            if begun is None:  # a restart under Spark before 4.2: the checkpoint is not told
                self._last = self._end_of(view)
            else:
                self._last = self._next_offset(view, begun)
        return self._last.as_dict()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """
        Return the partitions of the micro-batch between two offsets.

        Raises:
            DataLossError: groups of it were purged, or another history is here.
        """
        first, last = StreamOffset.of(start), StreamOffset.of(end)
        self._last = last
        if first == last:
            return []
        with self._view.look() as view:
            return [TaskPartition(task) for task in self._tasks(view, first, last)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """
        Return the rows of a partition.

        Raises:
            FormatError, DiskError: while iterating: the files cannot be read as planned.
        """
        task = partition.value
        if not isinstance(task, ReadTask):
            return iter(())
        return rows_of(task, self._options, self._columns, follows=True)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Note where the history ends now: the query stops there."""
        with self._view.look() as view:
            self._until = self._end_of(view)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """Return where the history ends and how far behind it the stream is, for the progress."""
        with self._view.look() as view:
            now, last = self._end_of(view), self._last
            if last is None:
                return now.as_dict()
            had = last.position
            seqs = ((gtid.seq, had.get(gtid.domain)) for gtid in now.position)
            groups = sum(max(seq - (before.seq if before else 0), 0) for seq, before in seqs)
            lag = lag_behind(view.pages, self._cut(view, last), groups)
        told = {"groupsBehind": lag.groups, "bytesBehind": lag.bytes, "secondsBehind": lag.seconds}
        return {**now.as_dict(), **told}

    def commit(self, end: dict[str, Any]) -> None:
        """
        Move the lease: Spark has finished all up to *end*.

        A server that is away does not stop the stream: what the lease held before, it still holds.

        Raises:
            DataLossError: *end* is no offset of ours.
        """
        if self._options.lease is not None:
            try:
                self._options.lease.move_to(StreamOffset.of(end).gtid)
            except LeaseFailed as error:
                logging.getLogger(__name__).warning("%s", error)

    def stop(self) -> None:
        """Close the files."""
        self._view.close()

    def _first_position(self, view: DirectoryView) -> GtidPosition:
        options = self._options
        if options.start == LATEST:
            return view.state.position()
        if options.start != EARLIEST:
            return GtidPosition.parse(options.start)
        position = position_at_beginning(view.pages)
        if options.since is not None:
            position = _position_at(view, position, options.since)
        return position

    def _next_offset(self, view: DirectoryView, begun: StreamOffset) -> StreamOffset:
        check_same_history(view.pages, begun)
        until = self._until or self._end_of(view)
        if until.position == begun.position:
            return begun
        start, end = self._cut(view, begun), self._cut(view, until)
        options = self._options
        if options.trigger_groups_max is None and options.trigger_bytes_max is None:
            return until if end.end > start.end else begun
        reached = limited_end(
            view.pages,
            start,
            end,
            begun.position,
            groups_max=options.trigger_groups_max,
            bytes_max=options.trigger_bytes_max,
        )
        if reached.place is None:
            return begun
        return offset_at(view.pages, reached.position, reached.place)

    def _end_of(self, view: DirectoryView) -> StreamOffset:
        position = view.state.position()
        return offset_at(view.pages, position, view.pages.end())

    def _tasks(
        self, view: DirectoryView, first: StreamOffset, last: StreamOffset
    ) -> list[ReadTask]:
        for offset in (first, last):
            check_same_history(view.pages, offset)
        options = self._options
        choice = GroupChoice(
            self._cut(view, first),
            self._cut(view, last),
            None,
            options.domains,
            options.since,
            options.before,
        )
        return tasks_between(view, self._view.named, choice, options)

    def _cut(self, view: DirectoryView, offset: StreamOffset) -> Cut:
        try:
            return cut_behind(view.pages, view.state, offset.position)
        except SqlError as error:
            raise DataLossError(
                f"the stream was at '{offset.gtid}', which this history does not have: {error}."
                " Begin with a new checkpoint"
            ) from error
        except TooOld as error:
            if not self._options.fail_on_data_loss:
                return cut_of_what_is_left(view.pages, offset.position)
            left = position_at_beginning(view.pages)
            raise DataLossError(
                f"groups behind '{offset.gtid}' up to '{left}' were purged before they were read;"
                " set failOnDataLoss to false to go on behind them"
            ) from error


def _position_at(view: DirectoryView, position: GtidPosition, since: float) -> GtidPosition:
    """Return the position before the first group that was committed at or after a time."""
    start = cut_behind(view.pages, view.state, position)
    whole = FileRange(start.place, max(view.pages.end(), start.place))
    place = within_times(view.pages, whole, since, None).start
    reached = position.copy()
    if place > start.place:
        place = Position(place.file_no, 0)
        reached = _state_before(view, place)
    reader = GroupReader(view.pages, place)
    while (group := reader.next()) is not None:
        if group.gtid is not None:
            if group.timestamp >= since:
                break
            reached.set(group.gtid)
    return reached


def _state_before(view: DirectoryView, place: Position) -> GtidPosition:
    full = read_state(view.pages, place.file_no, 1)
    return BinlogState(() if full is None else full.entries).position()
