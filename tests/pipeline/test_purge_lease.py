"""The lease of a stream moves with its batches; passwords come from files and variables only."""

import logging

import pymysql
import pytest

from ibb.demo.serve_process import ServeProcess
from ibb.pipeline.errors import LeaseFailed, OptionError
from ibb.pipeline.group_rows import GROUP_COLUMNS
from ibb.pipeline.options import SourceOptions
from ibb.pipeline.stream_reader import StreamReader

from .published import made_store

PASSWORD = "not to be shown"


def parse(**options):
    return SourceOptions.parse({"path": "/d", **options})


@pytest.fixture
def server(tmp_path):
    made_store(tmp_path / "binlogs", 100)
    folder = tmp_path / "folder"
    folder.mkdir()
    grants = "REPLICATION SLAVE, BINLOG MONITOR, BINLOG ADMIN"
    process = ServeProcess(
        tmp_path / "binlogs", folder, user="spark", password=PASSWORD, grants=grants
    )
    yield process.start()
    process.kill()


def leases(server):
    with pymysql.connect(
        host="127.0.0.1", port=server.port, user="spark", password=PASSWORD
    ) as connection:
        cursor = connection.cursor(pymysql.cursors.DictCursor)
        cursor.execute("SHOW BINLOG LEASES")
        return cursor.fetchall()


def test_a_lease_moves_with_the_batches(server, tmp_path, caplog):
    secret = tmp_path / "password"
    secret.write_text(PASSWORD + "\n")
    options = SourceOptions.parse(
        {
            "path": str(tmp_path / "binlogs"),
            "maxGroupsPerTrigger": "30",
            "lease": "the lake",
            "leaseUrl": f"mariadb://spark@127.0.0.1:{server.port}",
            "leasePasswordFile": str(secret),
        }
    )
    assert PASSWORD not in repr(options)
    reader = StreamReader(options, GROUP_COLUMNS)
    start = reader.initialOffset()
    (lease,) = leases(server)
    assert "the lake" in lease.values()
    end = reader.latestOffset(start)
    reader.commit(end)
    (lease,) = leases(server)
    assert end["gtid"] in lease.values()
    server.kill()
    with caplog.at_level(logging.WARNING):
        reader.commit(end)
    assert "lease the lake on 127.0.0.1" in caplog.text
    assert PASSWORD not in caplog.text
    with pytest.raises(LeaseFailed, match=r"lease the lake on 127\.0\.0\.1"):
        StreamReader(options, GROUP_COLUMNS).initialOffset()


def test_a_server_that_is_read_keeps_the_lease(server):
    url = f"ibb://spark@127.0.0.1:{server.port}"
    options = {"url": url, "password": PASSWORD, "lease": "of the source"}
    reader = StreamReader(SourceOptions.parse(options), GROUP_COLUMNS)
    end = reader.latestOffset(reader.initialOffset())
    reader.commit(end)
    (lease,) = leases(server)
    assert {"of the source", end["gtid"]} <= {str(value) for value in lease.values()}
    reader.stop()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"lease": "a"}, "option leaseUrl: it must be"),
        ({"leaseUrl": "mariadb://u@127.0.0.1"}, "option lease: 1 to 200 characters"),
        ({"lease": "o'k", "leaseUrl": "mariadb://u@127.0.0.1"}, "option lease: 1 to 200"),
        ({"lease": "a", "leaseUrl": "mariadb://u:p@127.0.0.1"}, "option leaseUrl: put the pass"),
        ({"lease": "a", "leaseUrl": "mariadb://u@primary"}, "option leaseTlsCa: missing: primary"),
        ({"leaseSeconds": "0"}, "option leaseSeconds"),
    ],
)
def test_options_of_a_lease_are_checked(options, says):
    with pytest.raises(OptionError, match=says) as caught:
        parse(**options)
    assert "u:p@" not in str(caught.value)


def test_a_password_that_is_not_there_names_its_option(monkeypatch):
    named = {"lease": "a", "leaseUrl": "mariadb://u@127.0.0.1:1"}
    with pytest.raises(OptionError, match="option leasePasswordEnv: IBB_TEST_NONE is not set"):
        parse(**named, leasePasswordEnv="IBB_TEST_NONE").lease.move_to("")
    with pytest.raises(OptionError, match="option leasePasswordFile: /nowhere cannot be read"):
        parse(**named, leasePasswordFile="/nowhere").lease.move_to("")
