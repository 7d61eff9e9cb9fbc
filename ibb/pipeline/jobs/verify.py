"""`ibb verify` on a cluster: parts of a directory checked by its executors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ibb.pipeline.directories import disk_of

from .verify_part import Part, PartResult, check_part
from .verify_plan import verify_in_parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from ibb.storage.verify import Finding, Totals


def verify_on(spark: SparkSession, path: str, *, totals: Totals | None = None) -> Iterator[Finding]:
    """
    Yield everything that is wrong or odd in a directory, as `verify_directory` does.

    The driver reads headers, the states at the borders of parts and the newest file; executors
    open the others themselves, by the same path.

    Args:
        spark: a session of the cluster.
        path: of the directory; local, or a URL.
        totals: filled in when all is checked.

    Raises:
        DiskError: the directory cannot be listed.
        TooManyFindings: a part has more than can be kept.
    """
    disk, where = disk_of(path)
    context = spark.sparkContext

    def check(parts: list[Part]) -> list[PartResult]:
        return context.parallelize(parts, len(parts)).map(check_on_executor).collect()

    readers = context.defaultParallelism
    yield from verify_in_parts(disk, where, check, readers=readers, totals=totals)


def check_on_executor(part: Part) -> PartResult:
    """
    Check a part where it was sent to.

    Raises:
        DiskError: the directory is not there, or cannot be read.
        TooManyFindings: there are very many.
    """
    disk, _ = disk_of(part.path)
    return check_part(disk, part)
