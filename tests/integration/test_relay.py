"""A real primary, `ibb` as a relay, real replicas of two versions."""

import pytest

from . import compare
from .binlog_text import gtids_in_order
from .stored_groups import stored_groups

pytestmark = [pytest.mark.live, pytest.mark.tiny, pytest.mark.xdist_group("relayed")]


def test_the_mixed_workload_reaches_replicas_of_both_versions(relayed):
    for replica in relayed.replicas:
        compare.assert_equal(relayed.primary, replica)


def test_every_group_is_stored_once_and_in_the_primarys_order(relayed):
    compare.wait_for_position(relayed.replicas[0], relayed.primary.binlog_position())
    assert relayed.ibb.stop() == 0  # the last page reaches its file
    groups = stored_groups(relayed.ibb.directory)
    relayed.ibb.start()
    assert [group["gtid"] for group in groups] == gtids_in_order(relayed.primary.binlog_files())
    assert len({group["file"] for group in groups}) > 1  # the size limit makes several files


def test_a_replica_that_comes_late_gets_everything(relayed, mariadb_11):
    replica = relayed.rig.replica(mariadb_11)
    replica.replicate_from(relayed.ibb.port)
    compare.assert_equal(relayed.primary, replica)
    replica.stop()


def test_a_replica_can_move_between_primary_and_relay(relayed, mariadb_10):
    replica = relayed.rig.replica(mariadb_10)
    replica.replicate_from(relayed.primary.port)
    compare.wait_for_position(replica, relayed.primary.binlog_position())
    replica.replicate_from(relayed.ibb.port, position=replica.replica_position())
    relayed.primary.run("INSERT INTO shop.customer (name) VALUES ('after the move')")
    compare.assert_equal(relayed.primary, replica)
    replica.stop()
