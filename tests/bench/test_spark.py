"""The rows that a real Spark is measured by: it reads all there are, as a batch and as a stream."""

import pytest

from ibb.bench.errors import BenchError
from ibb.bench.rows import spark
from ibb.bench.rows.spark import SparkReader
from ibb.bench.suite import rows_named, run
from ibb.bench.workbench import TINY, Workbench

from ..pipeline.conftest import SMALL_JVM, SPARK

pytestmark = [*SPARK, pytest.mark.slow, pytest.mark.timeout(600)]


def test_every_row_is_read_and_a_read_that_lacks_some_is_no_figure(tmp_path, monkeypatch):
    monkeypatch.setenv("JDK_JAVA_OPTIONS", SMALL_JVM)
    monkeypatch.setattr(spark, "STREAM_BATCHES", 2)
    monkeypatch.setattr(spark, "SMALL_BATCHES", 2)
    monkeypatch.setattr(spark, "WARM_READS_MAX", 1)
    with Workbench(TINY, tmp_path, None) as bench:
        data = bench.data("one-row")
        with SparkReader(bench, data) as reader:
            assert reader.ask(read="batch")["rows"] == data.facts.groups
            last = data.facts.last
            behind = str(last._replace(seq=last.seq - 2))
            with pytest.raises(BenchError, match=r"Spark read 2 rows as a batch, \d+ before"):
                reader.rate("batch", startingGtid=behind)
            with pytest.raises(BenchError, match="Spark: "):
                reader.rate("batch", nothing="1")
        (measured,) = run(bench, rows_named(["stream-one-row"]), 1).rows
    rate, cost = measured.figures
    assert rate.ours[0] > 0
    assert cost.ours[0] > 0
