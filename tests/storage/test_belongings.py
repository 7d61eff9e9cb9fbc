"""Directories that are a binlog's, and those that a person has mistyped."""

from dataclasses import replace

import pytest

from ibb.storage import Store
from ibb.storage.belongings import Contents, check_holds_binlog, contents_of
from ibb.storage.errors import DiskError, NoBinlog
from ibb.storage.os_disk import OsDisk

from ..faults.sim_disk import PowerLost, SimDisk
from ..tiny import SMALL

DISK = OsDisk()


def test_a_store_is_known_by_its_files(tmp_path):
    path = str(tmp_path)
    assert contents_of(DISK, path) == Contents(binlog=False, server_data=[], strangers=[])
    with pytest.raises(NoBinlog, match="its file system mounted"):
        check_holds_binlog(DISK, path)
    with Store.open(tmp_path, SMALL) as store:
        store.leases.renew("spark", store.state().position())
        (tmp_path / "binlog-000003.ibb.aside-0").write_bytes(b"")
        (tmp_path / ".hidden").write_bytes(b"")
        (tmp_path / "lost+found").mkdir()
        check_holds_binlog(DISK, path)
        assert contents_of(DISK, path).strangers == []
    (tmp_path / "accounts.toml").write_bytes(b"")
    assert contents_of(DISK, path).strangers == ["accounts.toml"]


@pytest.mark.parametrize(
    "name", ["binlog-000000.ibb", "binlog-7.ibb", "ibb-redo-1.log", "ibb-reset"]
)
def test_what_is_left_of_a_binlog_is_one(tmp_path, name):
    (tmp_path / name).write_bytes(b"")
    assert contents_of(DISK, str(tmp_path)).binlog


@pytest.mark.parametrize(
    "name", ["ibb.lock", "leases.json", "formats.json", "rising.json", "bin.000001"]
)
def test_what_lies_beside_a_binlog_is_none(tmp_path, name):
    (tmp_path / name).write_bytes(b"")
    assert not contents_of(DISK, str(tmp_path)).binlog


def test_a_directory_of_servers_data_is_told(tmp_path):
    (tmp_path / "mysql").mkdir()
    assert contents_of(DISK, str(tmp_path)).server_data == []  # whatever that is
    (tmp_path / "ibdata1").write_bytes(b"")
    assert contents_of(DISK, str(tmp_path)).server_data == ["ibdata1"]


def test_a_directory_that_is_missing_is_not_an_empty_one(tmp_path):
    with pytest.raises(DiskError, match="nowhere"):
        contents_of(DISK, str(tmp_path / "nowhere"))


def test_a_store_that_lost_its_power_at_any_operation_is_one_or_new():
    """Nothing that an interrupted beginning leaves is taken for somebody else's."""
    for operation in range(1, 60):
        disk = SimDisk()
        disk.crash_at = operation
        try:
            Store.open("/s", replace(SMALL, background=False), disk=disk).close()
        except PowerLost:
            pass
        else:
            return
        if disk.exists("/s"):
            contents = contents_of(disk, "/s")
            assert contents.strangers == contents.server_data == []
    raise AssertionError("the store was never made without a crash")
