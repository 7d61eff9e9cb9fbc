"""What tests with a real server share."""

import pytest

from ...integration.conftest import mariadb_10, new_rig
from .topology import ROW_OPTIONS, Topology

__all__ = ["mariadb_10"]


@pytest.fixture(scope="module")
def topology(mariadb_10):
    """A primary that logs rows, and a relay behind it; of one module's tests."""
    with new_rig() as rig:
        primary = rig.primary(mariadb_10, *ROW_OPTIONS)
        relay = rig.ibb().relay_from(primary.port).start()
        yield Topology(primary, relay)
