"""
Streams: micro-batches between two offsets, which are GTID positions.

Spark 4.2 and newer give `latestOffset` the offset to go on from, and a limit; 4.0 and 4.1 give it
nothing, so the reader keeps the last one it gave or was given. No group is split.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from .batch_reader import TaskPartition, rows_of_partition
from .errors import LeaseFailed, OptionError
from .known_schemas import NOTHING_KNOWN
from .options import LATEST
from .rows import columns_of
from .spark_worker import SentReader
from .stream_offset import StreamOffset
from .streamed_history import streamed_history
from .streamed_schemas import StreamedSchemas

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # before PySpark 4.2

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Nothing that Spark would look for."""


if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from ibb.protocol.gtid import GtidPosition

    from .columns import Column
    from .options import SourceOptions


class StreamReader(SentReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """
    A stream from one directory or server.

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
        self._history = streamed_history(options)
        self._schemas = StreamedSchemas(options)
        self._last: StreamOffset | None = None  # given to Spark, or by it
        self._until: StreamOffset | None = None  # Trigger.AvailableNow
        self._begun: GtidPosition | None = None  # of a table: its columns are those of up to there

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """
        Return where a stream without a checkpoint begins.

        Raises:
            OptionError: an option does not fit the history.
            LeaseFailed: the lease could not be made.
        """
        self._begin()
        self._last = self._history.first()
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
        self._begin()
        begun = self._last if start is None else StreamOffset.of(start)
        if begun is None:  # a restart under Spark before 4.2: the checkpoint is not told
            self._last = self._history.end()
        else:
            self._last = self._history.next(begun, self._until)
        return self._last.as_dict()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """
        Return the partitions of the micro-batch between two offsets.

        Raises:
            DataLossError: groups of it were purged, or another history is here.
        """
        self._begin()
        first, last = StreamOffset.of(start), StreamOffset.of(end)
        self._last = last
        if first == last:
            return []
        tasks = self._history.tasks(first, last)
        schemas = self._schemas.between(first, last) if tasks else NOTHING_KNOWN
        return [TaskPartition(task, schemas, self._begun) for task in tasks]

    def _begin(self) -> None:
        """
        Note once where the history ends, and that the table has the columns of the query there.

        Raises:
            OptionError: it has others by now.
        """
        if self._options.table is None or self._begun is not None:
            return
        begun = self._history.end().position
        if any(column.origin for column in self._columns):
            there = {column.name.lower(): column for column in columns_of(self._options)}
            for column in self._columns:
                now = there.get(column.name.lower())
                if now is None or (column.origin and now.origin != column.origin):
                    table = ".".join(self._options.table)
                    raise OptionError(
                        "table",
                        f"column {column.name} of {table} was changed after the query was made:"
                        " load it anew",
                    )
        self._begun = begun

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """
        Return the rows of a partition.

        Raises:
            FormatError, DiskError: while iterating: the files cannot be read as planned.
            ServerRefused, DataLossError: nor can the server.
        """
        return rows_of_partition(partition, self._options, self._columns)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Note where the history ends now: the query stops there."""
        self._until = self._history.end()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """
        Return where the history ends and how far behind it the stream is, for the progress.

        Raises:
            DataLossError, SqlError: groups behind it were purged, or another history is here.
        """
        if self._last is None:
            return self._history.end().as_dict()
        now, lag = self._history.end_and_lag(self._last)
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
        """Close the files or connections."""
        self._history.close()
        self._schemas.close()
