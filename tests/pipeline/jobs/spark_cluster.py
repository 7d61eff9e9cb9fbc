"""A standalone Spark cluster on this machine: a master and workers, each a process of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pyspark

from ...integration.waiting import wait_until
from ..conftest import ROOT, SMALL_JVM

SETTINGS = {
    "spark.cores.max": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": SMALL_JVM,
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": SMALL_JVM,
    "spark.executor.memory": "512m",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # wait for both
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "200s",
    "spark.ui.enabled": "false",
}
START_SECONDS = 200


class SparkCluster:
    """
    The processes of a cluster.

    Args:
        folder: for their logs and work.
    """

    def __init__(self, folder):
        self._folder = folder
        self._processes = []
        self.environment = os.environ | {
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}",
            "SPARK_DAEMON_JAVA_OPTS": SMALL_JVM,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_LOCAL_IP": "127.0.0.1",
        }

    def start(self, workers):
        """Start a master and workers of one core each; return its URL when all are there."""
        ports = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        log = self._run("master", "org.apache.spark.deploy.master.Master", *ports)
        told = re.compile(r"Starting Spark master at (spark://\S+)")
        wait_until(lambda: told.search(log.read_text()), START_SECONDS)
        url = told.search(log.read_text())[1]
        for number in range(workers):
            work = self._folder / f"work-{number}"
            size = ("--cores", "1", "--memory", "512m", "--work-dir", str(work))
            self._run(
                f"worker-{number}", "org.apache.spark.deploy.worker.Worker", *size, *ports, url
            )
        wait_until(lambda: log.read_text().count("Registering worker") >= workers, START_SECONDS)
        return url

    def stop(self):
        """End all of them; workers end their executors."""
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _run(self, name, main, *arguments):
        log = self._folder / f"{name}.log"
        program = Path(pyspark.__file__).parent / "bin" / "spark-class"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [program, main, *arguments],
                env=self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
            )
        self._processes.append(process)
        return log
