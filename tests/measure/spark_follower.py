"""
A Spark stream over a running server, as a program of its own: `python -m` with PORT and FOLDER.

It says which groups each micro-batch had, and what ended the stream, which it then starts again
from its checkpoint. SIGTERM ends it in order.
"""

from __future__ import annotations

import gc
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pyspark.errors.exceptions.base import StreamingQueryException
from pyspark.java_gateway import ensure_callback_server_started

from ibb.pipeline.session import local_session

from ..integration.mariadb_server import PASSWORD, USER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

EVERY = "5 seconds"  # a micro-batch
LOOK_SECONDS = 0.5
AGAIN_SECONDS = 1.0
FINALIZED_SECONDS_MAX = 60.0


def follow(port: int, folder: Path, stop: threading.Event) -> None:
    """Follow the server until *stop*."""
    spark = local_session(
        "soak",
        cores=1,
        spark__ui__enabled="false",
        spark__driver__memory="512m",
        spark__driver__extraJavaOptions=f"-Djava.io.tmpdir={folder}",
        spark__local__dir=str(folder),
        spark__sql__warehouse__dir=str(folder / "warehouse"),
    )
    spark.sparkContext.setLogLevel("OFF")  # what ends the stream is told here
    meet_finalizer(spark)
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


def meet_finalizer(spark: SparkSession) -> None:
    """
    Have Java's finalizer connect to this process, as it will once anyhow.

    It does when it finds the first Python object that Java has done with, which of a stream that
    was started again may be half an hour later: a soak would take the thread for one that grows.
    """
    ensure_callback_server_started(spark.sparkContext._gateway)
    jvm, before = spark.sparkContext._jvm, threading.active_count()
    assert jvm is not None
    jvm.java.util.Optional.of(Callback())
    deadline = time.monotonic() + FINALIZED_SECONDS_MAX
    while threading.active_count() == before:
        assert time.monotonic() < deadline, "Java's finalizer does not connect"
        gc.collect()
        jvm.System.gc()
        time.sleep(LOOK_SECONDS)


class Callback:
    """Something of Python that Java may hold."""

    def run(self) -> None:
        """Be a Runnable."""

    class Java:
        """What it is there."""

        implements: ClassVar = ["java.lang.Runnable"]


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
