"""A server as the source, by a real Spark: rows, a stream, and a password that is nowhere."""

import pytest

from ibb.demo.serve_process import ServeProcess

from .conftest import SPARK
from .published import made_store

pytestmark = [*SPARK, pytest.mark.slow]
PASSWORD = "not-to-be-shown"
COUNT = 300


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    gtids = made_store(folder / "binlogs", COUNT)
    process = ServeProcess(folder / "binlogs", folder, user="spark", password=PASSWORD)
    yield process.start(), gtids
    process.kill()


def options(server, **more):
    url = f"mariadb://spark@127.0.0.1:{server.port}"
    return {"url": url, "password": PASSWORD, **more}


def test_a_batch_has_every_group_and_its_plan_no_password(spark, server, capsys):
    process, gtids = server
    found = spark.read.format("ibb").options(**options(process, minPartitions="3")).load()
    assert found.rdd.getNumPartitions() == 3
    rows = found.select("gtid", "file").where("domain < 10").collect()
    assert sorted(row.gtid for row in rows) == sorted(gtids)
    assert {row.file for row in rows} == {None}
    found.explain("extended")
    plan = capsys.readouterr().out + str(found._jdf.queryExecution())
    assert "ibb" in plan
    assert PASSWORD not in plan


def test_an_error_has_no_password(spark, server):
    process, _ = server
    wrong = options(process) | {"password": "wrong-" + PASSWORD}
    with pytest.raises(Exception, match="Access denied") as caught:
        spark.read.format("ibb").options(**wrong).load().count()
    assert PASSWORD not in str(caught.value)


def test_a_stream_reads_what_there_is(spark, server, tmp_path):
    process, gtids = server
    found = []
    stream = spark.readStream.format("ibb").options(**options(process, columns="gtid")).load()
    query = (
        stream.writeStream.foreachBatch(lambda rows, _: found.extend(rows.collect()))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(240)
    assert sorted(row.gtid for row in found) == sorted(gtids)
    files = [path.read_bytes() for path in (tmp_path / "checkpoint").rglob("*") if path.is_file()]
    assert not any(PASSWORD.encode() in data for data in files)
