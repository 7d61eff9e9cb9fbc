"""
A driver: read a directory by a cluster and check it there, and print what came of it as JSON.

    python -m tests.pipeline.jobs.run_on_cluster MASTER DIRECTORY
"""

import json
import os
import sys

from ibb.pipeline.jobs import verify_plan
from ibb.pipeline.jobs.verify import verify_on
from ibb.pipeline.session import session_on

from .spark_cluster import SETTINGS


def with_executor(row):
    """Return a GTID and the process of the executor that has read it."""
    return row.gtid, os.getppid()


if __name__ == "__main__":
    master, directory = sys.argv[1:]
    spark = session_on(master, "test", SETTINGS)
    groups = spark.read.format("ibb").options(minPartitions="6", columns="gtid").load(directory)
    read = groups.rdd.map(with_executor).collect()
    verify_plan.PART_BYTES_MIN = 1
    found = [(str(found.kind), found.text, found.lost) for found in verify_on(spark, directory)]
    executors = {executor for _, executor in read}
    told = {
        "gtids": sorted(gtid for gtid, _ in read),
        "executors": len(executors),
        "on_driver": os.getpid() in executors,
        "findings": found,
    }
    spark.stop()
    print(json.dumps(told))
