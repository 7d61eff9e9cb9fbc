"""
A Spark stream over a running server, as a program of its own: `python -m` with PORT and FOLDER.

It says which groups each micro-batch had, and what ended the stream, which it then starts again
from its checkpoint. SIGTERM ends it in order.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors.exceptions.base import StreamingQueryException

from ibb.pipeline.session import local_session

from ..integration.mariadb_server import PASSWORD, USER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

EVERY = "5 seconds"  # a micro-batch
# Java's finalizer has a connection to Python of its own, from the first collected garbage on. Spark
# has that collected every half hour, where a soak would take it for something that grows.
COLLECT_EVERY = "1min"
LOOK_SECONDS = 0.5
AGAIN_SECONDS = 1.0


def follow(port: int, folder: Path, stop: threading.Event) -> None:
    """Follow the server until *stop*."""
    spark = local_session(
        "soak",
        cores=1,
        spark__ui__enabled="false",
        spark__driver__memory="512m",
        spark__cleaner__periodicGC__interval=COLLECT_EVERY,
        spark__driver__extraJavaOptions=f"-Djava.io.tmpdir={folder}",
        spark__local__dir=str(folder),
        spark__sql__warehouse__dir=str(folder / "warehouse"),
    )
    spark.sparkContext.setLogLevel("OFF")  # what ends the stream is told here
    while not stop.is_set():
        query = start(spark, port, folder)
        try:
            while not (stop.is_set() or query.awaitTermination(LOOK_SECONDS)):
                pass
        except StreamingQueryException as error:
            print(f"failed {time.time():.3f} {' '.join(str(error).split())}", flush=True)
            stop.wait(AGAIN_SECONDS)
        finally:
            query.stop()
    spark.stop()


def start(spark: SparkSession, port: int, folder: Path) -> StreamingQuery:
    """Begin where the checkpoint is."""
    stream = spark.readStream.format("ibb").options(
        url=f"mariadb://{USER}@127.0.0.1:{port}", password=PASSWORD, columns="seq_no"
    )
    writing = stream.load().writeStream.foreachBatch(tell).trigger(processingTime=EVERY)
    return writing.option("checkpointLocation", str(folder / "checkpoint")).start()


def tell(rows: DataFrame, number: int) -> None:
    """Say what a batch had."""
    found = sorted(row.seq_no for row in rows.select("seq_no").collect())
    if found:
        print(f"batch {number} {found[0]} {found[-1]} {len(found)}", flush=True)


def main() -> None:
    """Follow the server that the arguments name."""
    port, folder = sys.argv[1:]
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    follow(int(port), Path(folder), stop)


if __name__ == "__main__":
    main()
