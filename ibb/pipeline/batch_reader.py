"""Batch reads: Spark's reader around a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from .known_schemas import NOTHING_KNOWN
from .read_plan import plan_read
from .rows import rows_of
from .schema_sources import schemas_of
from .spark_worker import SentReader, spare_collections

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import Filter

    from ibb.protocol.gtid import GtidPosition

    from .columns import Column
    from .event_groups import ReadTask
    from .known_schemas import KnownSchemas
    from .options import SourceOptions


class TaskPartition(InputPartition):
    """
    A partition.

    Args:
        task: what it reads.
        schemas: what is known of tables for it.
        begun: of a stream of a table, where the history ended when it was started.
    """

    def __init__(
        self, task: ReadTask, schemas: KnownSchemas, begun: GtidPosition | None = None
    ) -> None:
        super().__init__(task)
        self.begun = begun
        self.schemas = schemas


def rows_of_partition(
    partition: InputPartition,
    options: SourceOptions,
    columns: tuple[Column, ...],
) -> Iterator[pa.RecordBatch]:
    """Return what `rows_of` does of a partition; Spark makes one of its own where there is none."""
    if not isinstance(partition, TaskPartition):
        return iter(())
    spare_collections()
    return rows_of(partition.value, options, columns, partition.schemas, partition.begun)


class BatchReader(SentReader, DataSourceReader):
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
            SchemaError: what a server or the history says of tables cannot be.
        """
        tasks = plan_read(self._options)
        schemas = (
            schemas_of(self._options) if tasks and self._options.has_changes else NOTHING_KNOWN
        )
        spare_collections()  # the process that plans is one of Spark's workers, too
        return [TaskPartition(task, schemas) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """
        Return the rows of a partition.

        Raises:
            FormatError, DiskError: while iterating: the files cannot be read as planned.
            ServerRefused, DataLossError: nor can the server.
        """
        return rows_of_partition(partition, self._options, self._columns)


class PushdownReader(BatchReader):
    """A batch read that is told what its rows are filtered by."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Read less where filters allow it; Spark applies all of them once more."""
        from .pushed_filters import narrowed_by  # noqa: PLC0415 - PySpark 4.0 has no filters

        self._options = narrowed_by(self._options, filters)
        return filters
