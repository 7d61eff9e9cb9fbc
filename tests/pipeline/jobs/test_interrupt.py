"""Ctrl-C while Spark begins."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ...integration.waiting import wait_until
from ..conftest import ROOT, SMALL_JVM
from ..published import made_store

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.slow, pytest.mark.timeout(300)]


def sparks_of(session):
    """Return the processes of a session that run Spark, not what looks for Java or starts it."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            _, _, rest = (folder / "stat").read_text().rpartition(")")
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except (OSError, NotADirectoryError):
            continue  # no process, or it has ended
        is_spark = b"org.apache.spark.deploy.SparkSubmit" in words
        is_spark &= b"org.apache.spark.launcher.Main" not in words
        if int(rest.split()[3]) == session and is_spark and words[0].endswith(b"java"):
            found.append(int(folder.name))
    return found


def test_an_interrupt_leaves_no_java_behind(tmp_path):
    made_store(tmp_path, 10)
    command = [sys.executable, "-m", "ibb", "statistics", tmp_path, "--master", "local[1]"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "JDK_JAVA_OPTIONS": SMALL_JVM}
    with (tmp_path / "output").open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env=environment, start_new_session=True
        )
    try:
        wait_until(lambda: sparks_of(process.pid), 100)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(100) == 130
        wait_until(lambda: not sparks_of(process.pid), 60, lambda: sparks_of(process.pid))
    finally:
        for number in sparks_of(process.pid):
            os.kill(number, signal.SIGKILL)
        process.kill()
