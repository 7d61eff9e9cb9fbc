"""Statistics of a history: how much changed, by table, operation, day, server; large groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions

from ibb.pipeline.options import SourceOptions
from ibb.pipeline.read_plan import plan_read

from .change_counts import CountRow, check_dimensions, count_rows
from .job_source import with_defaults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from ibb.pipeline.event_groups import ReadTask

DEFAULT_BY: Final = ("database", "table", "op")
LARGEST_MAX: Final = 10_000
_SCHEMA: Final = (
    "day date, server bigint, domain bigint, database string, table string, op string,"
    " rows bigint, bytes bigint, groups bigint,"
    " gtid string, commit_time timestamp, tables array<string>"
)


class Statistics(NamedTuple):
    """
    What a history comes to.

    Attributes:
        counts: a row for each key: what it is counted by, then rows, bytes and groups.
        largest: the largest groups: gtid, commit_time, server, rows, bytes and tables.
    """

    counts: DataFrame
    largest: DataFrame


def statistics(
    spark: SparkSession,
    options: Mapping[str, str],
    *,
    by: Sequence[str] = DEFAULT_BY,
    largest: int = 10,
) -> Statistics:
    """
    Count what is in a history, reading it once.

    Args:
        spark: a session of the cluster.
        options: of the data source: what is read.
        by: of `change_counts.DIMENSIONS`; nothing: the whole history in one row.
        largest: how many groups, up to `LARGEST_MAX`.

    Raises:
        OptionError: an option does not fit what is there.
        FormatError, DiskError: a directory cannot be read.
        ServerRefused: a server is not there, or not to be read.
    """
    check_dimensions(by)
    by, most = tuple(by), max(0, min(largest, LARGEST_MAX))
    parsed = SourceOptions.parse(with_defaults(options, mode="changes", allowStatements="true"))
    tasks = plan_read(parsed)

    def counted(task: ReadTask) -> Iterator[CountRow]:
        return count_rows(task, parsed, by, most)

    rows = spark.sparkContext.parallelize(tasks, max(len(tasks), 1)).flatMap(counted)
    found = spark.createDataFrame(rows, _SCHEMA).persist()
    zero = functions.lit(0)
    sums = [
        functions.coalesce(functions.sum(name), zero).alias(name)
        for name in ("rows", "bytes", "groups")
    ]
    counts = found.where("gtid is null").groupBy(*by).agg(*sums)
    if by:
        counts = counts.orderBy(*by)
    groups = found.where("gtid is not null").orderBy(functions.desc("bytes"), "gtid").limit(most)
    return Statistics(
        counts, groups.select("gtid", "commit_time", "server", "rows", "bytes", "tables")
    )
