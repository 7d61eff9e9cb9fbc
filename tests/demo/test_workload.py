"""The workload writes exactly as many event groups as it was asked for."""

import tempfile
from pathlib import Path

import pytest

from ibb.demo import workload
from ibb.demo.dump_client import DumpClient
from ibb.demo.installation import Installation
from ibb.demo.scratch_server import ScratchServer, ScratchServerError
from ibb.demo.with_mariadb import groups_in
from ibb.demo.workload import GROUPS_MIN, WRITERS, Workload, writer_statements
from ibb.protocol.errors import SqlError

pytestmark = pytest.mark.xdist_group("demo")


@pytest.fixture(scope="module")
def server():
    installation = Installation.find()
    assert installation is not None, "no mariadbd on this machine: run scripts/setup"
    with tempfile.TemporaryDirectory(prefix="ibb-") as folder:
        server = ScratchServer(installation, Path(folder), server_id=1, options=["--log-bin=bin"])
        server.initialise()
        server.start()
        yield server
        server.stop()


@pytest.mark.parametrize("groups", [4, 5, 17, 1000, 1001])
def test_a_writer_has_one_statement_for_each_group(groups):
    assert len(list(writer_statements(2, groups))) == groups


def test_positions_are_counted_over_all_domains():
    assert groups_in("") == 0
    assert groups_in("0-1-17,5-2-3") == 20


@pytest.mark.live
def test_every_statement_is_a_group_and_a_client_receives_each_once(server):
    groups = 1003
    exact = Workload(server, groups)
    exact.start()
    exact.join()
    assert groups_in(server.sql("SELECT @@gtid_binlog_pos;")[0][0]) == groups
    server.sql("CREATE USER reader@'127.0.0.1' IDENTIFIED BY 'secret';")
    server.sql("GRANT REPLICATION SLAVE ON *.* TO reader@'127.0.0.1';")

    with DumpClient(server.port, "reader", "secret") as client:
        received = [group.gtid for group in client.groups("", server_id=99, wait=False)]
    assert len(received) == len(set(received)) == groups + 2
    assert {gtid.domain for gtid in received} == set(range(WRITERS))

    with DumpClient(server.port, "reader", "secret") as client:
        rest = [group.gtid for group in client.groups(str(received[-2]), server_id=99, wait=False)]
    assert received[-1] in rest
    with pytest.raises(SqlError, match="Access denied"):
        DumpClient(server.port, "reader", "wrong")


@pytest.mark.live
def test_a_statement_that_fails_fails_the_workload(server, monkeypatch):
    server.sql("DROP DATABASE IF EXISTS demo;")
    monkeypatch.setattr(workload, "writer_statements", lambda *_: ["INSERT INTO demo.nowhere ();"])
    failing = Workload(server, GROUPS_MIN)
    failing.start()
    with pytest.raises(ScratchServerError, match=r"(?s)the workload failed: .*ERROR 1064"):
        failing.join()
