"""What replicas are told when they cannot be served, and that others notice nothing."""

import socket

import pytest

from . import compare
from .waiting import wait_until

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("relayed")]

SECONDS = 30.0


@pytest.fixture
def replica(relayed, mariadb_10):
    """A replica of its own, that may break."""
    server = relayed.rig.replica(mariadb_10)
    yield server
    server.stop()


def wait_for_error(replica, number):
    """Wait until the replica shows the I/O error *number*; return its text."""
    wait_until(
        lambda: replica.replica_status()["Last_IO_Errno"] == number, SECONDS, replica.replica_status
    )
    return replica.replica_status()["Last_IO_Error"]


def test_a_wrong_password_is_1045_and_the_right_one_works_after_it(relayed, replica):
    replica.replicate_from(relayed.ibb.port, password="wrong")
    text = wait_for_error(replica, 1045)
    assert "Access denied for user 'repl'@" in text
    assert "(using password: YES)" in text
    replica.replicate_from(relayed.ibb.port)
    compare.wait_for_position(replica, relayed.primary.binlog_position())


def test_a_position_beyond_the_end_is_1236_in_mariadbs_words(relayed, replica):
    replica.replicate_from(relayed.ibb.port, position="0-101-999999")
    text = wait_for_error(replica, 1236)
    assert "connecting slave requested to start from GTID 0-101-999999" in text
    assert "which is not in the master's binlog" in text
    assert replica.replica_status()["Slave_IO_Running"] == "No"


def test_a_diverged_position_is_1236_in_mariadbs_words(relayed, replica):
    replica.replicate_from(relayed.ibb.port, position="0-555-3")
    assert "it probably means that the slave has diverged" in wait_for_error(replica, 1236)


def test_garbage_on_the_port_disturbs_nobody(relayed):
    junk = [
        b"",
        b"\0",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff" * 5000,
        b"\xff\xff\xff\x01" + bytes(100_000),
    ]
    strangers = []
    for data in junk * 4:
        stranger = socket.create_connection(("127.0.0.1", relayed.ibb.port), SECONDS)
        strangers.append(stranger)
        try:
            stranger.sendall(data)
        except ConnectionError:
            continue  # refused in the middle: fine
    relayed.primary.run("INSERT INTO shop.customer (name) VALUES ('among strangers')")
    for replica in relayed.replicas:
        compare.wait_for_position(replica, relayed.primary.binlog_position())
        assert replica.replica_status()["Slave_IO_Running"] == "Yes"
    for stranger in strangers:
        stranger.close()
    assert relayed.ibb.running
