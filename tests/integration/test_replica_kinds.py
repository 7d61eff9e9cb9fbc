"""Replicas as people set them up: parallel, strict, stopping at a place, with heartbeats."""

import pytest

from . import compare
from .mariadb_server import PASSWORD, USER
from .side_by_side import Asked, observe, replica_settings
from .waiting import wait_until
from .workload import LANE_TRANSACTIONS, LANES, parallel_lanes

pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.xdist_group("relayed")]

SECONDS = 60.0
HEADER_AND_CHECKSUM = 19 + 4
STRICT = "--gtid-strict-mode=1"
SEMI_SYNC = "--rpl-semi-sync-slave-enabled=1"
PARALLEL = ("--slave-parallel-threads=4", "--slave-parallel-mode=optimistic")
TLS = "MASTER_SSL=1, MASTER_SSL_VERIFY_SERVER_CERT=0"


@pytest.fixture(params=["10.11", "11.8"])
def installation(request, mariadb_10, mariadb_11):
    return mariadb_10 if request.param == "10.11" else mariadb_11


@pytest.fixture
def new_replica(relayed, installation):
    """Return a function that makes a replica of its own."""
    servers = []

    def make(*options):
        server = relayed.rig.replica(installation, *options)
        servers.append(server)
        return server

    yield make
    for server in servers:
        server.stop()


@pytest.fixture(scope="module")
def waiting_relay(relayed, lanes):
    """A relay of the same primary that waits for semi-synchronous replicas."""
    relay = relayed.rig.ibb("--max-binlog-size=1M", "--rpl-semi-sync-master-enabled")
    relay.relay_from(relayed.primary.port).start()
    # A replica that was ahead of it would be refused for good.
    asked = Asked(replica_settings(relayed.primary.binlog_position()))
    wait_until(lambda: observe(relay.port, asked).end == "EOF", SECONDS, relay.log_tail)
    yield relay
    relay.stop()


@pytest.fixture(scope="module")
def lanes(relayed):
    """The position before changes that four writers made at a time in three domains, made once."""
    before = relayed.primary.binlog_position()
    parallel_lanes(relayed.primary)
    return before


def test_a_strict_replica_over_tls_ends_equal(relayed, new_replica):
    replica = new_replica(STRICT)
    replica.replicate_from(relayed.ibb.port, tls=TLS)
    compare.assert_equal(relayed.primary, replica)
    status = replica.replica_status()
    assert (status["Using_Gtid"], status["Master_SSL_Allowed"]) == ("Slave_Pos", "Yes")


def test_a_semi_synchronous_replica_ends_equal(relayed, waiting_relay, new_replica):
    replica = new_replica(SEMI_SYNC)
    replica.replicate_from(waiting_relay.port)
    compare.assert_equal(relayed.primary, replica)
    assert status_of(replica, "Rpl_semi_sync_slave_status") == "ON"


@pytest.mark.parametrize(
    "options", [PARALLEL, (*PARALLEL, STRICT, SEMI_SYNC)], ids=["parallel", "and-all-else"]
)
def test_domains_and_commits_are_applied_in_parallel(
    relayed, waiting_relay, new_replica, lanes, options
):
    replica = new_replica(*options)
    everything = SEMI_SYNC in options
    source, tls = (waiting_relay, TLS) if everything else (relayed.ibb, "MASTER_SSL=0")
    replica.replicate_from(source.port, position=lanes, tls=tls)
    compare.wait_for_position(replica, relayed.primary.binlog_position())
    found = lanes_of(replica)
    assert found == lanes_of(relayed.primary)
    assert len(found) == len(LANES)
    assert replica.rows("SELECT v FROM lane5.t WHERE id = 0") == [(LANE_TRANSACTIONS // 4 * 4,)]
    assert replica.replica_status()["Parallel_Mode"] == "optimistic"


def lanes_of(server):
    """Return what the tables of the domains hold, by name."""
    return {name: found for name, found in compare.checksums(server).items() if "`lane" in name}


def test_a_replica_that_leaves_a_domain_out_gets_the_others(relayed, new_replica, lanes):
    replica = new_replica("--slave-compressed-protocol=1")  # which is not offered
    replica.run("CHANGE MASTER TO IGNORE_DOMAIN_IDS = (5)")
    replica.replicate_from(relayed.ibb.port, position=lanes)
    compare.wait_for_position(replica, relayed.primary.binlog_position())
    wanted = lanes_of(relayed.primary)
    del wanted["`lane5`.`t`"]
    assert lanes_of(replica) == wanted
    assert replica.replica_status()["Replicate_Ignore_Domain_Ids"] == "5"


def test_a_replica_without_gtids_starts_at_the_beginning_and_cannot_come_back(relayed, mariadb_10):
    replica = relayed.rig.replica(mariadb_10)
    replica.run(
        f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={relayed.ibb.port}, "
        f"MASTER_USER='{USER}', MASTER_PASSWORD='{PASSWORD}', MASTER_SSL=0, MASTER_USE_GTID=no",
        "START SLAVE",
    )
    compare.assert_equal(relayed.primary, replica)
    assert replica.replica_status()["Using_Gtid"] == "No"
    replica.run("STOP SLAVE", "START SLAVE")
    wait_until(
        lambda: replica.replica_status()["Last_IO_Errno"] == 1236, SECONDS, replica.replica_status
    )
    assert "connect with a GTID position" in replica.replica_status()["Last_IO_Error"]
    replica.stop()


def status_of(server, name):
    return server.rows(f"SHOW STATUS LIKE '{name}'")[0][1]


def follow_until(replica, port, condition):
    """Start at the beginning and wait until the replica has stopped by itself."""
    replica.run(
        f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='{USER}', "
        f"MASTER_PASSWORD='{PASSWORD}', MASTER_SSL=0, MASTER_USE_GTID=slave_pos",
        f"START SLAVE UNTIL {condition}",
    )

    def stopped():
        status = replica.replica_status()
        return status["Slave_IO_Running"] == status["Slave_SQL_Running"] == "No"

    wait_until(stopped, SECONDS, replica.replica_status)
    status = replica.replica_status()
    assert (status["Last_IO_Errno"], status["Last_SQL_Errno"]) == (0, 0)
    return compare.gtids(replica.replica_position())


def test_until_stops_behind_its_groups(relayed, new_replica):
    number = relayed.primary.server_id
    stop = f"0-{number}-30"
    replica = new_replica("--skip-slave-start")
    assert follow_until(replica, relayed.ibb.port, f"master_gtid_pos = '{stop}'") == {stop}


def test_until_before_stops_in_front_of_its_groups(relayed, mariadb_11):
    number = relayed.primary.server_id
    replica = relayed.rig.replica(mariadb_11, "--skip-slave-start")
    condition = f"SQL_BEFORE_GTIDS = '0-{number}-30'"
    assert follow_until(replica, relayed.ibb.port, condition) == {f"0-{number}-29"}
    replica.stop()


def test_heartbeats_say_the_position_that_the_replica_counts(relayed, new_replica):
    replica = new_replica()
    replica.replicate_from(relayed.ibb.port, position=relayed.primary.binlog_position())
    replica.run("STOP SLAVE", "CHANGE MASTER TO MASTER_HEARTBEAT_PERIOD = 0.1", "START SLAVE")

    def heartbeats():
        return int(status_of(replica, "Slave_received_heartbeats"))

    before = heartbeats()
    wait_until(lambda: heartbeats() > before + 3, SECONDS, replica.replica_status)
    before_them = relayed.primary.binlog_position()
    at_start = int(replica.replica_status()["Read_Master_Log_Pos"])
    relayed.primary.run("CREATE DATABASE beaten", "DROP DATABASE beaten")
    compare.wait_for_position(replica, relayed.primary.binlog_position())
    before = heartbeats()
    wait_until(lambda: heartbeats() > before + 3, SECONDS, replica.replica_status)
    status = replica.replica_status()
    assert (status["Slave_IO_Running"], status["Last_IO_Errno"]) == ("Yes", 0)
    # Had a heartbeat been above the count, the replica would have taken it over.
    sent = observe(relayed.ibb.port, Asked(replica_settings(before_them), annotate=False))
    assert status["Read_Master_Log_Pos"] - at_start == sum(
        len(event[-1]) + HEADER_AND_CHECKSUM for event in sent.events
    )
