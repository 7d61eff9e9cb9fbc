"""A transaction far larger than memory may grow passes through the relay."""

import pytest

from . import compare
from .ibb_process import MemoryWatch
from .workload import HUGE_ROW_BYTES, HUGE_ROWS, huge_transaction

pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.xdist_group("memory")]

GROWTH_BYTES_MAX = 64 << 20


def test_memory_stays_small_while_300_mb_pass_in_one_group(rig, mariadb_10, mariadb_11):
    primary = rig.primary(mariadb_10)
    primary.run("CREATE DATABASE shop")
    ibb = rig.ibb().relay_from(primary.port).start()
    replicas = [rig.replica(installation) for installation in (mariadb_10, mariadb_11)]
    for replica in replicas:
        replica.replicate_from(ibb.port)
        compare.wait_for_position(replica, primary.binlog_position())

    with MemoryWatch(ibb) as memory:
        huge_transaction(primary)
        for replica in replicas:
            compare.assert_equal(primary, replica)

    stored = sum(path.stat().st_size for path in ibb.directory.glob("*.ibb"))
    assert stored > HUGE_ROWS * HUGE_ROW_BYTES
    assert memory.peak - memory.before < GROWTH_BYTES_MAX
