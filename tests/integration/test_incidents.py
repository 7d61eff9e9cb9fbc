"""A primary that has lost events: nobody goes on behind that without knowing."""

import pymysql
import pytest

from ibb.protocol.gtid_event import GtidFlag
from ibb.protocol.incident import Incident, IncidentKind

from . import compare
from .publisher import SERVER_ID, publishing
from .waiting import wait_until

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("incidents")]

SECONDS = 30.0
STMT_CACHE_FULL = 1705


def lose_events(primary):
    """Let a statement fail that cannot be rolled back and does not fit into the binlog's cache."""
    primary.run("SET GLOBAL max_binlog_stmt_cache_size = 4096")
    with pytest.raises(pymysql.err.Error) as caught:
        primary.run(
            "SET binlog_format = ROW",
            "INSERT INTO a.t VALUES (10, REPEAT('x', 100000)), (11, REPEAT('x', 100000))",
        )
    assert caught.value.args[0] == STMT_CACHE_FULL


@pytest.fixture(params=["mariadb_10", "mariadb_11"])
def installation(request):
    return request.getfixturevalue(request.param)


def test_a_relay_stops_at_an_incident_until_it_is_told_to_go_on(rig, mariadb_10):
    primary = rig.primary(mariadb_10)
    ibb = rig.ibb().relay_from(primary.port).start()
    replica = rig.replica(mariadb_10)
    replica.replicate_from(ibb.port)
    primary.run(
        "CREATE DATABASE a",
        "CREATE TABLE a.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=MyISAM",
        "INSERT INTO a.t VALUES (1, '')",
    )
    before = primary.binlog_position()
    lose_events(primary)
    primary.run("INSERT INTO a.t VALUES (2, '')")
    wait_until(lambda: "relay_stopped" in ibb.log.read_text(), SECONDS, ibb.log_tail)
    assert "The incident LOST_EVENTS occurred on the master" in ibb.log.read_text()
    compare.wait_for_position(replica, before)
    assert replica.rows("SELECT id FROM a.t") == [(1,)]
    assert ibb.stop() == 0
    ibb.start()  # asking again brings the same incident again
    wait_until(lambda: ibb.log.read_text().count("relay_stopped") == 2, SECONDS, ibb.log_tail)
    assert ibb.stop() == 0
    ibb.arguments.append("--skip-incidents")
    ibb.start()
    compare.wait_for_position(replica, primary.binlog_position())
    assert replica.rows("SELECT id FROM a.t ORDER BY id") == [(1,), (2,)]
    assert ibb.stop() == 0


def test_an_incident_with_a_gtid_stops_replicas_as_a_primarys_does(rig, installation, tmp_path):
    replica = rig.replica(installation)
    with publishing(tmp_path / "store") as publisher:
        replica.replicate_from(publisher.port)
        publisher.define("CREATE DATABASE d")
        lost = Incident(IncidentKind.LOST_EVENTS, "published", 1_700_000_000, SERVER_ID)
        publisher.commit(GtidFlag.STANDALONE, lost.encode())
        publisher.define("CREATE DATABASE e")
        wait_until(
            lambda: replica.replica_status()["Last_SQL_Errno"] == 1590,
            SECONDS,
            replica.replica_status,
        )
        assert "LOST_EVENTS" in replica.replica_status()["Last_SQL_Error"]
        assert replica.replica_position() == f"0-{SERVER_ID}-1"
    replica.stop()
