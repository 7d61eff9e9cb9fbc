"""What tests of tables share: a real server, and a model of one with a pipeline that dies."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from ...integration.conftest import mariadb_10, new_rig
from .deaths import Deaths
from .test_deaths import begun
from .topology import ROW_OPTIONS, Topology

__all__ = ["mariadb_10"]

MEMORY = Path("/dev/shm")
MEMORY_BYTES = 1 << 30  # that must be free there
PREFIX = "ibb-tests-"  # and the number of a process


@pytest.fixture(scope="session")
def memory():
    """A folder in memory for this process; those that killed ones have left go. None: no room."""
    for left in MEMORY.glob(f"{PREFIX}*"):
        if not Path("/proc", left.name.removeprefix(PREFIX)).exists():
            shutil.rmtree(left, ignore_errors=True)  # somebody else may do the same
    if not os.access(MEMORY, os.W_OK) or shutil.disk_usage(MEMORY).free < MEMORY_BYTES:
        yield None
        return
    folder = MEMORY / f"{PREFIX}{os.getpid()}"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def tmp_path(tmp_path, memory):
    """
    A folder in memory, where there is room.

    A disk is copied for each write that a pipeline may die before, thousands of files a test, and
    ext4 without a journal passes by all inodes that were deleted a while ago to find a new one.
    """
    if memory is None:
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


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
