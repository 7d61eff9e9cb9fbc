"""In a Python worker of Spark, and there alone, imported modules are no garbage's business."""

import gc
import subprocess
import sys

from ibb.pipeline.spark_worker import spare_collections

WORKER = """
import gc, sys
from types import SimpleNamespace
from ibb.pipeline.spark_worker import spare_collections

sys.modules["__main__"].__spec__ = SimpleNamespace(name=sys.argv[1])
loop = []
loop.append(loop)
del loop
spare_collections()
frozen = gc.get_freeze_count()
kept = [[] for _ in range(1000)]
spare_collections()
print(frozen, gc.get_freeze_count() == frozen, gc.collect())
"""


def worker(name):
    done = subprocess.run(
        [sys.executable, "-c", WORKER, name], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_a_worker_of_spark_freezes_what_it_has_once():
    frozen, is_same, _ = worker("pyspark.daemon")
    assert int(frozen) > 1000
    assert is_same == "True"


def test_no_other_program_does():
    assert worker("my.program")[0] == "0"
    before = gc.get_freeze_count()
    spare_collections()
    assert gc.get_freeze_count() == before
