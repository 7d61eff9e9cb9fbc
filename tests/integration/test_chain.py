"""A primary of 11.8, a relay of it, a relay of that relay, and a replica at the end."""

import pytest

from . import compare
from .stored_groups import stored_groups
from .workload import mixed_workload

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("chain")]


def test_a_chain_of_relays_below_11_8_loses_and_changes_nothing(rig, mariadb_11):
    primary = rig.primary(mariadb_11)
    first = rig.ibb("--max-binlog-size=1M").relay_from(primary.port).start()
    second = rig.ibb().relay_from(first.port).start()
    replica = rig.replica(mariadb_11)
    replica.replicate_from(second.port)
    mixed_workload(primary)
    compare.assert_equal(primary, replica)
    assert first.stop() == 0
    assert second.stop() == 0
    contents = [
        [(group["gtid"], group["sha256"]) for group in stored_groups(ibb.directory)]
        for ibb in (first, second)
    ]
    assert contents[0] == contents[1]
    assert len(contents[0]) > 100
