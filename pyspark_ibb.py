"""Registers the data source `ibb`: Spark looks for `DefaultSource` in modules named pyspark_*."""

from ibb.pipeline.source import IbbDataSource as DefaultSource

__all__ = ["DefaultSource"]
