"""A failure on a cluster is told in the words of whoever failed."""

import pytest

from ibb.pipeline.errors import OptionError
from ibb.pipeline.jobs.errors import LINE_MAX, told_by
from ibb.pipeline.jobs.job_session import job_session

STACKS = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collect.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed
Traceback (most recent call last):
  File "worker.py", line 1, in main
ibb.storage.errors.DiskError: open /b/binlog-000001.ibb: no such file

	at org.apache.spark.api.python.BasePythonRunner.java:581
"""


def test_what_went_wrong_is_told_in_a_line():
    assert told_by(STACKS) == "open /b/binlog-000001.ibb: no such file"
    of_java = STACKS.replace("ibb.storage.errors.DiskError: open", "open")
    assert told_by(of_java).startswith("SparkException: Job aborted due to stage failure")
    assert told_by("An error\njava.net.ConnectException: refused") == "ConnectException: refused"
    assert told_by("\n\nsomething else\nmore") == "something else"
    assert told_by("") == "no reason given"
    assert len(told_by("x" * 10_000)) == LINE_MAX


@pytest.mark.parametrize("setting", ["spark.executor.memory", "executor.memory=1g", "=1"])
def test_a_setting_that_is_none_is_refused_before_spark_begins(setting):
    with (
        pytest.raises(OptionError, match=r"option --conf: .* is not spark.NAME=VALUE"),
        job_session("test", "local[1]", [setting]),
    ):
        pytest.fail("a session was begun")
