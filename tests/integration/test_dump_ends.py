"""How dumps of real replicas end: by KILL, by a namesake, by the server's end; and go on."""

from contextlib import closing

import pymysql
import pytest

from . import compare
from .mariadb_server import PASSWORD, USER
from .steady_writer import SteadyWriter
from .waiting import wait_until

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("dump ends")]

SECONDS = 60.0
NAMESAKE = 777
VERSIONS = ("10.11", "11.8")


@pytest.fixture(scope="module")
def topology(rig, mariadb_10):
    primary = rig.primary(mariadb_10)
    return primary, rig.ibb().relay_from(primary.port).start()


@pytest.fixture
def installations(mariadb_10, mariadb_11):
    return mariadb_10, mariadb_11


@pytest.fixture
def replicas(rig, topology, installations):
    """Two replicas, one of each version, that follow and end with the test."""
    found = [rig.replica(installation) for installation in installations]
    for replica in found:
        replica.replicate_from(topology[1].port)
        compare.wait_for_position(replica, topology[0].binlog_position())
    yield found
    for replica in found:
        replica.stop()


def rows(port, statement):
    connection = pymysql.connect(host="127.0.0.1", port=port, user=USER, password=PASSWORD)
    with closing(connection), connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


def dumps(port):
    """Return the connection ids of the dumps that run."""
    return {row[0] for row in rows(port, "SHOW PROCESSLIST") if row[4] == "Binlog Dump"}


def error_log(replica):
    return replica.error_log.read_text(errors="replace")


def test_replicas_whose_dumps_are_killed_connect_again_and_go_on(topology, replicas):
    primary, ibb = topology
    wait_until(lambda: len(dumps(ibb.port)) == len(replicas), SECONDS)
    killed = dumps(ibb.port)
    for connection in killed:
        rows(ibb.port, f"KILL {connection}")
    wait_until(lambda: len(dumps(ibb.port) - killed) == len(replicas), SECONDS)
    primary.run("CREATE DATABASE killed")
    for replica in replicas:
        compare.assert_equal(primary, replica)


def test_of_two_replicas_with_one_server_id_the_older_dump_is_ended(rig, topology, installations):
    primary, ibb = topology
    first, second = (
        rig.replica(installation, f"--server-id={NAMESAKE}") for installation in installations
    )
    first.replicate_from(ibb.port)
    compare.wait_for_position(first, primary.binlog_position())
    second.replicate_from(ibb.port)
    wait_until(lambda: "server_errno=4052" in error_log(first), SECONDS, lambda: error_log(first))
    assert "A slave with the same server_id as this slave has connected" in error_log(first)
    first.stop()
    primary.run("CREATE DATABASE namesakes")
    compare.assert_equal(primary, second)
    second.stop()


def test_a_server_that_ends_tells_its_replicas_and_they_come_back(topology, replicas):
    primary, ibb = topology
    with SteadyWriter(primary) as writer:
        for _ in range(3):
            writer.wait_for_more(50)
            wait_until(lambda: len(dumps(ibb.port)) == len(replicas), SECONDS)
            assert ibb.stop() == 0
            ibb.start()
    for replica in replicas:
        compare.assert_equal(primary, replica)
        assert error_log(replica).count("server_errno=1053") >= 3, error_log(replica)
