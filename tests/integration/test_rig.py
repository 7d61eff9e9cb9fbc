"""The rig itself: a real replica of a real primary, no `ibb` between, passes its comparisons."""

import pytest

from . import compare
from .workload import mixed_workload

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("rig")]


def test_the_mixed_workload_reaches_both_versions_and_differences_are_seen(
    rig, mariadb_10, mariadb_11
):
    primary = rig.primary(mariadb_10)
    replicas = [rig.replica(installation) for installation in (mariadb_10, mariadb_11)]
    for replica in replicas:
        replica.replicate_from(primary.port)
    mixed_workload(primary)
    for replica in replicas:
        compare.assert_equal(primary, replica)

    replicas[0].run("UPDATE shop.customer SET name = 'changed' WHERE id = 1")
    assert list(compare.differences(primary, replicas[0])) == ["`shop`.`customer`"]
