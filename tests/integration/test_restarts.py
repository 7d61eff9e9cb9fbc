"""Relay, primary and replica go away and come back, in turn and under load."""

import pytest

from . import compare
from .binlog_text import gtids_in_order
from .steady_writer import SteadyWriter
from .stored_groups import stored_groups

pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.xdist_group("restarts")]

ROUNDS = 10
GROUPS_BETWEEN = 30


@pytest.mark.timeout(600)
def test_nothing_is_lost_or_doubled_whoever_restarts(rig, mariadb_10):
    primary = rig.primary(mariadb_10)
    ibb = rig.ibb("--max-binlog-size=1M").relay_from(primary.port).start()
    replica = rig.replica(mariadb_10)
    replica.replicate_from(ibb.port)

    with SteadyWriter(primary) as writer:

        def stop_ibb():
            assert ibb.stop() == 0
            ibb.start()

        def kill_ibb():
            ibb.kill()
            ibb.start()

        def kill_idle_ibb():
            writer.pause()
            compare.wait_for_position(replica, primary.binlog_position())
            kill_ibb()
            writer.resume()

        def restart_primary():
            primary.stop()
            primary.start()

        def restart_replica():
            replica.stop()
            replica.start()

        for _ in range(ROUNDS):
            for event in (stop_ibb, kill_ibb, kill_idle_ibb, restart_primary, restart_replica):
                writer.wait_for_more(GROUPS_BETWEEN)
                event()

    compare.assert_equal(primary, replica)
    wanted = gtids_in_order(primary.binlog_files())
    assert ibb.stop() == 0
    assert len(wanted) > ROUNDS * 5 * GROUPS_BETWEEN
    assert [group["gtid"] for group in stored_groups(ibb.directory)] == wanted
