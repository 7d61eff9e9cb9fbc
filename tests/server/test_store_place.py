"""Directories in which `ibb serve` makes a store, and those in which it does not."""

import subprocess
import sys

import pytest

from ibb.server.config import ConfigError
from ibb.server.store_place import check_store
from ibb.storage.os_disk import OsDisk

DISK = OsDisk()
HOLD = """
import fcntl, sys
file = open(sys.argv[1], "rb+")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_new_or_empty_directory_is_for_a_store(tmp_path, capfd):
    check_store(DISK, str(tmp_path))
    check_store(DISK, str(tmp_path / "new"))
    assert not capfd.readouterr().err
    assert not (tmp_path / "new").exists()


def test_the_data_of_a_server_is_not_mixed_with_a_store(tmp_path):
    (tmp_path / "ibdata1").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"holds the data of a database server .ibdata1."):
        check_store(DISK, str(tmp_path))


@pytest.mark.parametrize("name", ["ibdata1", "aria_log_control"])
@pytest.mark.parametrize("inside", ["", "binlogs"])
def test_a_binlog_that_mariadb_writes_is_not_taken_over(tmp_path, name, inside):
    """MariaDB 12.3 keeps its binlog beside its data or inside, and both locked while it runs."""
    place = tmp_path / inside
    place.mkdir(exist_ok=True)
    (place / "binlog-000000.ibb").write_bytes(b"")
    (tmp_path / name).write_bytes(b"x")
    check_store(DISK, str(place))
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / name)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(ConfigError, match=r"a MariaDB server is running on .* --read-only"):
            check_store(DISK, str(place))
        holder.communicate()
    check_store(DISK, str(place))


def test_others_in_a_new_stores_directory_are_told_of(tmp_path, capfd):
    for number in range(7):
        (tmp_path / f"file{number}").write_bytes(b"")
    check_store(DISK, str(tmp_path))
    told = capfd.readouterr()
    assert "store_beside_others" in told.out + told.err
    assert "file4" in told.out + told.err
    assert "file5" not in told.out + told.err
    (tmp_path / "binlog-000000.ibb").write_bytes(b"")
    check_store(DISK, str(tmp_path))
    told = capfd.readouterr()
    assert not told.out + told.err
