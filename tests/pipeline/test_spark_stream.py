"""Streams by a real Spark: micro-batches, failures in mid-batch, restarts from a checkpoint."""

import json
from importlib.util import find_spec

import pytest
from pyspark.errors import StreamingQueryException

from ibb.storage import Store

from ..protocol.rows import row_encoder as enc
from ..storage.events import xid
from .conftest import SPARK
from .published import OPTIONS, publish, publish_events

pytestmark = [*SPARK, pytest.mark.slow]

AVAILABLE_NOW = find_spec("pyspark.sql.streaming.datasource") is not None  # PySpark 4.2 or newer


class Sink:
    """Keeps the GTIDs of each micro-batch by its id, and fails on some of them at first."""

    def __init__(self, *failing):
        self.batches = {}
        self.again = 0
        self._failing = set(failing)

    def take(self, rows, number):
        gtids = [row.gtid for row in rows.select("gtid").collect()]
        if number in self._failing:
            self._failing.discard(number)
            self.batches[number] = gtids  # it was written, and nobody was told
            raise RuntimeError("the sink fails once")
        if number in self.batches:
            assert self.batches[number] == gtids  # the same batch once more
            self.again += 1
        self.batches[number] = gtids


def run(spark, path, checkpoint, sink, **options):
    """Run a query over what is there now."""
    stream = spark.readStream.format("ibb").options(**options).load(str(path))
    query = (
        stream.writeStream.foreachBatch(sink.take)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(240)
    return query


def test_a_stream_is_whole_over_failures_and_restarts(spark, tmp_path):
    path, checkpoint = tmp_path / "binlogs", tmp_path / "checkpoint"
    options = {"maxGroupsPerTrigger": "300", "columns": "gtid", "minPartitions": "2"}
    sink = Sink(1, 3)
    with Store.open(path, OPTIONS) as store:
        wanted = publish(store, 700)
        failures = []
        for _ in range(8):
            try:
                query = run(spark, path, checkpoint, sink, **options)
            except StreamingQueryException as error:
                failures.append("the sink fails once" in str(error))
            else:
                if sum(map(len, sink.batches.values())) == 1300:
                    break
                if len(wanted) == 700:
                    wanted += publish(store, 600, skip=700)
    assert all(failures)
    assert len(failures) == sink.again >= 1
    found = [gtid for number in sorted(sink.batches) for gtid in sink.batches[number]]
    assert sorted(found) == sorted(wanted)
    if not AVAILABLE_NOW:  # a batch for each start, which may be all there is
        return
    assert sink.again == 2
    assert [len(gtids) for _, gtids in sorted(sink.batches.items())] == [300, 300, 100, 300, 300]
    source = json.loads(query.lastProgress.json)["sources"][0]
    assert '"gtid"' in json.dumps(source["endOffset"])
    assert "groupsBehind" in json.dumps(source["latestOffset"])


def test_a_stream_of_a_table_knows_its_types_of_mariadb(spark, tmp_path):
    class Taken:
        rows = ()

        def take(self, rows, number):
            del number
            self.rows = [(row.id, row.y) for row in rows.collect()]

    def add(store, number, spec):
        columns = {"id": enc.integer(4), "y": spec}
        rows = enc.rows_event(enc.WRITE, list(columns.values()), [[(number, 2000 + number)]])
        table = enc.table_map(list(columns.items()))
        publish_events(store, f"0-1-{number}", table, rows, xid(1))

    path, sink = tmp_path / "binlogs", Taken()
    with Store.open(path, OPTIONS) as store:
        add(store, 1, enc.integer(2))
        run(spark, path, tmp_path / "checkpoint", sink, table="d.t")
        assert sink.rows == [(1, 2001)]
        add(store, 2, enc.integer(2))
        add(store, 3, enc.year())
        with pytest.raises(
            StreamingQueryException, match="smallint, and the query has it as year:"
        ):
            run(spark, path, tmp_path / "checkpoint", sink, table="d.t")
