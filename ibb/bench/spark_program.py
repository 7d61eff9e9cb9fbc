"""
What Spark reads, measured in a process of its own, whose Java ends with it.

Run as `python -m ibb.bench.spark_program '{"options": {...}, "cores": N}'`, the source's options.
It prints a first batch when Spark is warm, then a line for each line of JSON on stdin.

    {"read": "batch"}                          {"rows": ROWS, "seconds": SECONDS}
    {"read": "stream", "options": {...}}       the same, and "batches": SECONDS of each
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main() -> None:
    """Answer until nobody asks."""
    given = json.loads(sys.argv[1])
    from ibb.pipeline.session import local_session  # noqa: PLC0415 - Spark is an extra

    spark = local_session("ibb bench", cores=given["cores"], spark__ui__enabled="false")
    spark.sparkContext.setLogLevel("ERROR")
    _answer(_batch(spark, given["options"]))  # Java has compiled then, and workers are there
    for line in sys.stdin:
        asked = json.loads(line)
        options = {**given["options"], **asked.get("options", {})}
        _answer(_batch(spark, options) if asked["read"] == "batch" else _stream(spark, options))
    spark.stop()


def _answer(found: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


def _batch(spark: SparkSession, options: dict[str, str]) -> dict[str, Any]:
    """Read everything, with all columns, for nobody."""
    begun = time.perf_counter()
    rows = spark.read.format("ibb").options(**options).load()
    rows.write.format("noop").mode("overwrite").save()
    seconds = time.perf_counter() - begun
    return {"rows": _rows_read(spark), "seconds": seconds}


def _rows_read(spark: SparkSession) -> int:
    """
    Return how many rows the last execution took from its source, by Spark's own count of them.

    An `Observation` counts them once more, within the read: a fifteenth of its time.
    """
    context: Any = spark.sparkContext._jsc.sc()  # noqa: SLF001 - PySpark shows none of its metrics
    state: Any = spark._jsparkSession.sharedState()  # noqa: SLF001 - as above
    context.listenerBus().waitUntilEmpty()
    stages = state.statusStore().executionsList().last().stages().iterator()
    rows = 0
    while stages.hasNext():
        rows += context.statusStore().lastStageAttempt(stages.next()).inputRecords()
    return rows


def _stream(spark: SparkSession, options: dict[str, str]) -> dict[str, Any]:
    """Stream to where the history ends, for nobody."""
    rows = spark.readStream.format("ibb").options(**options).load()
    with tempfile.TemporaryDirectory(prefix="ibb-bench-") as folder:
        begun = time.perf_counter()
        writer = rows.writeStream.format("noop").option("checkpointLocation", folder)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        seconds = time.perf_counter() - begun
    done = [batch for batch in query.recentProgress if batch["numInputRows"]]
    return {
        "rows": sum(batch["numInputRows"] for batch in done),
        "seconds": seconds,
        "batches": [batch["durationMs"]["triggerExecution"] / 1000 for batch in done],
    }


if __name__ == "__main__":
    main()
