"""One Spark session for all tests that need a real one; they carry the marks `SPARK`."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SMALL_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"  # starts, and compiles, with little work
SPARK = [
    pytest.mark.xdist_group("spark"),
    # Spark's own: sockets to its JVM that end with the session
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning"),
]


@pytest.fixture(scope="session")
def spark():
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"
    session = (
        SparkSession.builder.master("local[2]")
        .appName("ibb-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.extraJavaOptions", SMALL_JVM)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.python.filterPushdown.enabled", "true")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
