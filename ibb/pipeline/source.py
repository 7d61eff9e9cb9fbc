"""
The Spark data source `ibb`.

    spark.read.format("ibb").option("mode", "groups").load("/var/lib/ibb/binlogs")

Spark finds it by itself where ibb is installed, through the module `pyspark_ibb`.
"""

from __future__ import annotations

import sys
from typing import Final

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from .batch_reader import BatchReader, PushdownReader
from .columns import Column, columns_of_schema
from .errors import OptionError
from .options import SourceOptions
from .rows import columns_of
from .spark_worker import spare_collections
from .stream_reader import StreamReader
from .table_rows import NEVER_NULL

FORMAT: Final = "ibb"
_ORIGIN: Final = "mariadb"  # of a column's metadata: what it is there
_PUSHDOWN_WORKER: Final = "pyspark.sql.worker.data_source_pushdown_filters"


class IbbDataSource(DataSource):
    """Event groups, events and row changes as tables; see docs/spark.md."""

    @classmethod
    def name(cls) -> str:
        """Return what `format` calls it."""
        return FORMAT

    def schema(self) -> StructType:
        """
        Return the columns of the mode.

        Raises:
            OptionError: an option is wrong.
        """
        schema = StructType(
            [
                StructField(
                    column.name,
                    from_arrow_type(column.type, prefer_timestamp_ntz=True),
                    nullable=column.nullable,
                    metadata={_ORIGIN: column.origin} if column.origin else None,
                )
                for column in columns_of(SourceOptions.parse(self.options))
            ]
        )
        spare_collections()
        return schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """
        Return what plans and does a batch read.

        Raises:
            OptionError: an option is wrong.
        """
        options = SourceOptions.parse(self.options)
        columns = _columns_in(schema)
        kind = PushdownReader if _pushes_filters() else BatchReader
        return kind(options, columns)

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802 - Spark's name
        """
        Return what plans and does the micro-batches of a stream.

        Raises:
            OptionError: an option is wrong, or not for streams.
        """
        reader = StreamReader(SourceOptions.parse(self.options), _columns_in(schema))
        spare_collections()
        return reader


def _columns_in(schema: StructType) -> tuple[Column, ...]:
    """Return a schema's columns; raises OptionError if one is of no kind that there is here."""
    columns = columns_of_schema((field.name, field.dataType.simpleString()) for field in schema)
    for field in schema:  # Spark would take a user's word for it, and make something of nulls
        if not (field.nullable or field.name.lower() in NEVER_NULL):
            raise OptionError("schema", f"column {field.name} may be null: say it without NOT NULL")
    return tuple(
        column._replace(origin=field.metadata.get(_ORIGIN, ""), nullable=field.nullable)
        for column, field in zip(columns, schema, strict=True)
    )


def _pushes_filters() -> bool:
    """
    Tell whether Spark asks for a reader that takes filters.

    It does so in a process of its own, and refuses such a reader where filters are not pushed
    (spark.sql.python.filterPushdown.enabled).
    """
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _PUSHDOWN_WORKER in sys.modules or getattr(main, "name", "") == _PUSHDOWN_WORKER
