"""
A Spark session with what PySpark leaves to its user: Java, and the right Python.

    from ibb.pipeline.session import local_session

    spark = local_session()
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ibb.protocol.errors import IbbError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

JAVA_MIN: Final = 17  # what PySpark 4 needs
ANSWER_SECONDS_MAX: Final = 60
_VERSION: Final = re.compile(r'version "(?:1\.)?(\d{1,3})')
_ADVICE: Final = (
    f"Spark needs Java {JAVA_MIN} or newer: install it (Debian, Ubuntu: apt-get install"
    " default-jre-headless), or set JAVA_HOME to where it is"
)


class NoJava(IbbError):  # noqa: N818 - a state of the world
    """There is no Java that Spark could run on."""


def find_java() -> Path:
    """
    Return the program that Spark will start: of JAVA_HOME if that is set, else from PATH.

    Raises:
        NoJava: there is none, or it is too old; the text says what to do.
    """
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if found is None:
        raise NoJava(f"there is no java on PATH, and JAVA_HOME is not set. {_ADVICE}")
    try:
        told = subprocess.run(  # noqa: S603 - the program that Spark would start
            [found, "-version"],
            capture_output=True,
            text=True,
            timeout=ANSWER_SECONDS_MAX,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise NoJava(f"{found} cannot be started: {error}. {_ADVICE}") from error
    version = _VERSION.search(told.stderr + told.stdout)
    if version is not None and int(version[1]) < JAVA_MIN:
        raise NoJava(f"{found} is Java {version[1]}. {_ADVICE}")
    return Path(found)


def local_session(name: str = "ibb", *, cores: int | None = None, **settings: str) -> SparkSession:
    """
    Return a session on this machine, or the one that there is already.

    Args:
        name: shown in Spark's pages.
        cores: threads for executors; None: one for each core.
        settings: of Spark, with `__` for dots: `spark__sql__shuffle__partitions="8"`.

    Raises:
        NoJava: there is no Java that Spark could run on.
    """
    given = {key.replace("__", "."): value for key, value in settings.items()}
    return session_on(f"local[{cores or '*'}]", name, given)


def session_on(master: str, name: str, settings: Mapping[str, str]) -> SparkSession:
    """
    Return a session whose executors are on a cluster, or the session that there is already.

    Args:
        master: as Spark has it: `spark://host:7077`, `yarn`, `k8s://...`, `local[4]`.
        name: shown in Spark's pages.
        settings: of Spark.

    Raises:
        NoJava: there is no Java that Spark could run on.
    """
    find_java()
    from pyspark.sql import SparkSession  # noqa: PLC0415 - Java first: its absence is told best here

    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    ours = {"spark.sql.python.filterPushdown.enabled": "true"}
    if master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers need the same packages
        ours |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    given = {"spark.master": master, "spark.app.name": name, **ours, **settings}
    _start_java(given)
    builder = SparkSession.builder
    for key, value in given.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    from .source import IbbDataSource  # noqa: PLC0415 - needs PySpark

    session.dataSource.register(IbbDataSource)  # an editable installation is not searched by Spark
    return session


def _start_java(settings: Mapping[str, str]) -> None:
    """
    Start the Java that a session will use, unless it runs.

    It ends with this process once it has told us its port. Where we end before, as by Ctrl-C, it
    finds no place to tell it, and stays for ever.
    """
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - likewise

    conf = SparkConf()
    for key, value in settings.items():
        conf.set(key, value)
    with _interrupts_held():
        SparkContext._ensure_initialized(conf=conf)  # noqa: SLF001 - as a session does it


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Let a Ctrl-C come when this is over; only the main thread is told of one."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)
    if came:
        raise KeyboardInterrupt
