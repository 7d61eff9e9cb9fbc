"""Batch reads by a real Spark."""

import json
import subprocess
import sys

import pytest

from ibb.storage import Store

from ..protocol.rows import row_encoder as enc
from ..storage.events import xid
from .conftest import ROOT, SPARK
from .published import OPTIONS, made_store, publish_events

pytestmark = [*SPARK, pytest.mark.slow]
COUNT = 3000


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    path = tmp_path_factory.mktemp("binlogs")
    return path, made_store(path, COUNT)


def test_groups_are_those_of_the_command_line(spark, directory):
    path, _gtids = directory
    found = spark.read.format("ibb").option("minPartitions", "5").load(str(path))
    assert found.rdd.getNumPartitions() > 2
    rows = {row.gtid: row for row in found.collect()}
    assert len(rows) == found.count() == COUNT
    listed = subprocess.run(
        [sys.executable, "-m", "ibb", "groups", str(path), "--json"],
        capture_output=True,
        check=True,
        cwd=ROOT,
    )
    for line in listed.stdout.splitlines():
        group = json.loads(line)
        row = rows[group["gtid"]]
        assert (row.bytes, row.events, row.sha256, row.offset) == (
            group["bytes"],
            group["events"],
            group["sha256"],
            group["offset"],
        )
        assert row.commit_time.strftime("%Y-%m-%dT%H:%M:%SZ") == group["time"]


def test_events_filters_and_columns(spark, directory):
    path, _ = directory
    events = spark.read.format("ibb").options(mode="events", minPartitions="3").load(str(path))
    assert events.count() == 3 * COUNT
    wanted = events.where(
        "domain = 2 and database = 'demo' and commit_time < '2023-11-14 22:13:21'"
    )
    assert wanted.count() == 333
    assert {row.type for row in wanted.select("type").distinct().collect()} == {"Query"}
    few = spark.read.format("ibb").option("columns", "seq_no,gtid").load(str(path))
    assert few.columns == ["seq_no", "gtid"]
    assert few.agg({"seq_no": "max"}).collect()[0][0] == COUNT // 3


def test_changes_are_maps_of_texts(spark, tmp_path):
    with Store.open(tmp_path, OPTIONS) as store:
        rows = enc.rows_event(enc.WRITE, [enc.integer(4)], [[(number,)] for number in range(40)])
        publish_events(store, "0-1-1", enc.table_map([("id", enc.integer(4))]), rows, xid(1))
        found = spark.read.format("ibb").option("mode", "changes").load(str(tmp_path))
        ids = found.where("op = 'insert'").selectExpr("int(after['id']) as id")
        assert ids.agg({"id": "sum"}).collect()[0][0] == sum(range(40))


def test_a_table_has_columns_of_every_kind(spark, tmp_path):
    columns = [
        *(("tiny", enc.integer(1)), ("small", enc.integer(2)), ("medium", enc.integer(3))),
        *(("big", enc.integer(8)), ("ubig", enc.integer(8, unsigned=True)), ("real", enc.real(4))),
        *(("double", enc.real(8)), ("exact", enc.decimal(20, 4)), ("day", enc.a_date())),
        *(("moment", enc.a_datetime(6)), ("stamp", enc.a_timestamp(3)), ("time", enc.a_time(0))),
        *(("text", enc.varchar(30)), ("bytes", enc.blob(2)), ("kind", enc.enum("a", "b"))),
        *(("bits", enc.bits(9)), ("year", enc.year()), ("set", enc.a_set("x", "y"))),
    ]
    rows = enc.rows_event(enc.WRITE, [spec for _, spec in columns], [[(None,) * len(columns)]])
    with Store.open(tmp_path, OPTIONS) as store:
        publish_events(store, "0-1-1", enc.table_map(columns), rows, xid(1))
    found = spark.read.format("ibb").option("table", "d.t").load(str(tmp_path))
    (row,) = found.collect()
    assert row["_op"] == "insert"
    assert all(row[name] is None for name, _ in columns)
    types = {field.name: field.dataType.simpleString() for field in found.schema}
    assert types["exact"] == "decimal(20,4)"
    assert (types["moment"], types["stamp"]) == ("timestamp_ntz", "timestamp")


def test_a_type_that_only_mariadb_tells_apart_stops_a_table(spark, tmp_path):
    with Store.open(tmp_path, OPTIONS) as store:
        for number, (spec, value) in enumerate(((enc.integer(2), 24), (enc.year(), 2024)), 1):
            rows = enc.rows_event(enc.WRITE, [spec], [[(value,)]])
            publish_events(store, f"0-1-{number}", enc.table_map([("y", spec)]), rows, xid(1))
    table = spark.read.format("ibb").option("table", "d.t").load(str(tmp_path))
    with pytest.raises(Exception, match="y is of type smallint, and the query has it as year:"):
        table.collect()


def test_errors_name_the_option(spark, directory):
    path, _ = directory
    with pytest.raises(Exception, match=r"option startgtid: .*did you mean startingGtid"):
        spark.read.format("ibb").option("startGtid", "0-1-1").load(str(path)).count()
    with pytest.raises(Exception, match=r"option startingGtid: .*0-9-9"):
        spark.read.format("ibb").option("startingGtid", "0-9-9").load(str(path)).count()


def test_of_columns_that_are_never_null_spark_knows_it_and_of_others_takes_nobodys_word(
    spark, tmp_path
):
    rows = enc.rows_event(enc.WRITE, [enc.integer(4)], [[(None,)]])
    with Store.open(tmp_path, OPTIONS) as store:
        publish_events(store, "0-1-1", enc.table_map([("id", enc.integer(4))]), rows, xid(1))
    reads = spark.read.format("ibb").option("table", "d.t")
    known = reads.load(str(tmp_path)).schema
    assert [field.name for field in known if field.nullable] == ["id", "_missing"]
    for schema in ("id int, _gtid string", "id int, _gtid string not null", known):
        (row,) = reads.schema(schema).load(str(tmp_path)).collect()
        assert (row["id"], row["_gtid"]) == (None, "0-1-1")
    with pytest.raises(Exception, match="option schema: column id may be null"):
        reads.schema("id int not null, _gtid string").load(str(tmp_path)).collect()
