"""Batch reads: Spark's reader around a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from .pushed_filters import narrowed_by
from .read_plan import plan_read
from .rows import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import Filter

    from .columns import Column
    from .options import SourceOptions


class TaskPartition(InputPartition):
    """A partition of which the value is a task."""


class BatchReader(DataSourceReader):
    """
    A batch read.

    Args:
        options: what it was asked for.
        columns: that Spark expects, in this order.
    """

    def __init__(self, options: SourceOptions, columns: tuple[Column, ...]) -> None:
        self._options = options
        self._columns = columns

    def partitions(self) -> list[InputPartition]:
        """
        Return the partitions, planned now.

        Raises:
            OptionError: an option does not fit what is there.
            FormatError, DiskError: a directory cannot be read.
            ServerRefused: a server is not there, or not to be read.
        """
        return [TaskPartition(task) for task in plan_read(self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """
        Return the rows of a partition.

        Raises:
            FormatError, DiskError: while iterating: the files cannot be read as planned.
            ServerRefused, DataLossError: nor can the server.
        """
        task = partition.value  # None: Spark's own partition where there is nothing to read
        if task is None:
            return iter(())
        return rows_of(task, self._options, self._columns)


class PushdownReader(BatchReader):
    """A batch read that is told what its rows are filtered by."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Read less where filters allow it; Spark applies all of them once more."""
        self._options = narrowed_by(self._options, filters)
        return filters
