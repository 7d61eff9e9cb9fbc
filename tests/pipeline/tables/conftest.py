"""What tests of tables share: a real server, and a model of one with a pipeline that dies."""

import pytest

from ...integration.conftest import mariadb_10, new_rig
from .deaths import Deaths
from .test_deaths import begun
from .topology import ROW_OPTIONS, Topology

__all__ = ["mariadb_10"]


@pytest.fixture(scope="module")
def topology(mariadb_10):
    """A primary that logs rows, and a relay behind it; of one module's tests."""
    with new_rig() as rig:
        primary = rig.primary(mariadb_10, *ROW_OPTIONS)
        relay = rig.ibb().relay_from(primary.port).start()
        yield Topology(primary, relay)


@pytest.fixture
def source():
    """A model of a server with two tables and some rows."""
    return begun()


@pytest.fixture
def deaths(monkeypatch, tmp_path, source):
    """Runs a pipeline on *source*, and keeps the disks that it leaves where it dies."""
    return Deaths(monkeypatch, tmp_path / "disks", source)
