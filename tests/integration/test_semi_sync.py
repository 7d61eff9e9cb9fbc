"""Real semi-synchronous replicas: what a commit waited for is theirs, whenever they are killed."""

import threading
from contextlib import closing

import pymysql
import pytest

from .mariadb_server import PASSWORD, USER
from .publisher import publishing
from .semi_sync_rounds import DEFINITIONS, LONG_MS, REPLICA_OPTIONS, run_rounds, source_of
from .stored_groups import stored_groups
from .waiting import wait_until

pytestmark = [
    pytest.mark.live,
    pytest.mark.slow,
    pytest.mark.xdist_group("semi sync"),
    pytest.mark.timeout(300),
]

SECONDS = 60.0
COMMITS = 150
KILLS = 3
NEVER = f"--rpl-semi-sync-master-timeout={LONG_MS}"


@pytest.mark.parametrize("seed", [1])
@pytest.mark.parametrize(
    ("kind", "version"), [("publisher", "10.11"), ("publisher", "11.8"), ("relay", "11.8")]
)
def test_every_acknowledged_commit_is_the_replicas(
    rig, mariadb_10, mariadb_11, tmp_path, kind, version, seed
):
    replica = rig.replica(mariadb_10 if version == "10.11" else mariadb_11, *REPLICA_OPTIONS)
    with source_of(kind, rig, mariadb_10, tmp_path) as source:
        counts = run_rounds(source, replica, commits=COMMITS, kills=KILLS, seed=seed)
    assert counts["acknowledged"] == COMMITS + len(DEFINITIONS)
    assert counts["not acknowledged"] == 0


@pytest.mark.parametrize("version", ["10.11", "11.8"])
def test_a_replica_that_stops_makes_commits_asynchronous_until_it_is_back(
    rig, mariadb_10, mariadb_11, tmp_path, version
):
    replica = rig.replica(mariadb_10 if version == "10.11" else mariadb_11, *REPLICA_OPTIONS)
    with publishing(
        tmp_path / "store", rpl_semi_sync_master_enabled=True, rpl_semi_sync_master_timeout=500
    ) as publisher:

        def shown(name):
            return publisher.server.status()[f"Rpl_semi_sync_master_{name}"]

        replica.replicate_from(publisher.port)
        wait_until(lambda: shown("clients") == "1", SECONDS)
        publisher.define("CREATE DATABASE d")
        publisher.define("CREATE TABLE d.t (id INT PRIMARY KEY)")
        assert [shown("yes_tx"), shown("status")] == ["2", "ON"]
        assert replica.rows("SHOW STATUS LIKE 'Rpl_semi_sync_slave_status'")[0][1] == "ON"
        replica.run("STOP SLAVE")
        wait_until(lambda: shown("clients") == "0", SECONDS)
        for number in range(20):
            publisher.change(f"INSERT INTO d.t VALUES ({number})")
        assert [shown("no_tx"), shown("no_times"), shown("status")] == ["20", "1", "OFF"]
        replica.run("START SLAVE")
        wait_until(lambda: shown("status") == "ON", SECONDS, publisher.server.status)
        publisher.change("INSERT INTO d.t VALUES (100)")
        assert shown("yes_tx") == "3"


def connect(port):
    return pymysql.connect(host="127.0.0.1", port=port, user=USER, password=PASSWORD)


def test_a_relay_that_waits_for_a_replica_stops_when_it_is_told_to(rig, mariadb_10):
    primary = rig.primary(mariadb_10, "--rpl-semi-sync-master-enabled=1", NEVER)
    relay = rig.ibb("--rpl-semi-sync-master-enabled", "--rpl-semi-sync-slave-enabled", NEVER)
    relay.relay_from(primary.port).start()
    committing = threading.Thread(target=primary.run, args=["CREATE DATABASE waiting"])
    committing.start()
    wait_until(lambda: stored_groups(relay.directory), SECONDS, relay.log_tail)
    with closing(connect(relay.port)) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW STATUS LIKE 'Rpl_semi_sync_slave%'")
        assert dict(cursor.fetchall()) == {
            "Rpl_semi_sync_slave_send_ack": "0",
            "Rpl_semi_sync_slave_status": "ON",
        }
    assert relay.stop() == 0
    assert committing.is_alive()  # the relay has acknowledged nothing: no replica has it
    primary.run("SET GLOBAL rpl_semi_sync_master_enabled = 0")
    committing.join()
