"""The decision to delete a binlog is believed only if it is whole."""

import errno
from pathlib import Path

import pytest

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.errors import FormatError
from ibb.storage import Store
from ibb.storage.errors import DiskError, StoreFailed, StoreFull
from ibb.storage.leases import LEASES_NAME
from ibb.storage.os_disk import OsDisk
from ibb.storage.reset_marker import MARKER_NAME, ResetMarker

from ..faults.sim_disk import Fault, SimDisk
from .test_administration import OPTIONS, gtids, publish


@pytest.mark.parametrize("damage", ["another digit", "a byte too few", "a byte too many", "cut"])
def test_a_damaged_one_deletes_nothing(tmp_path: Path, damage: str) -> None:
    with Store.open(tmp_path, OPTIONS) as store:
        publish(store, "0-1-1")
    ResetMarker(OsDisk(), str(tmp_path)).write(BinlogState.parse("0-1-77"), pytest.fail)
    marker = tmp_path / MARKER_NAME
    whole = marker.read_bytes()
    marker.write_bytes(
        {
            "another digit": whole[:-1] + b"8",
            "a byte too few": whole[:-1],
            "a byte too many": whole + b"7",
            "cut": whole[:3],
        }[damage]
    )
    before = {path.name: path.read_bytes() for path in tmp_path.glob("binlog-*")}
    with pytest.raises(FormatError, match="remove it to keep the binlog as it is") as caught:
        Store.open(tmp_path, OPTIONS)
    assert MARKER_NAME in str(caught.value)
    assert {path.name: path.read_bytes() for path in tmp_path.glob("binlog-*")} == before
    marker.unlink()
    with Store.open(tmp_path, OPTIONS) as store:
        assert gtids(store) == ["0-1-1"]


@pytest.mark.parametrize("kind", ["open", "write", "sync", "rename"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EMFILE])
def test_without_room_for_it_nothing_is_deleted_and_the_store_goes_on(kind: str, code: int) -> None:
    disk = SimDisk()
    with Store.open("/s", OPTIONS, disk=disk) as store:
        publish(store, "0-1-1")
        disk.faults = [Fault(lambda op: op.kind == kind and MARKER_NAME in op.path, code)]
        with pytest.raises(StoreFull, match="no room to note that all is to be deleted"):
            store.reset()
        publish(store, "0-1-2")
        assert gtids(store) == ["0-1-1", "0-1-2"]
        store.reset()
        assert gtids(store) == []


def test_where_it_may_be_there_only_an_opening_can_tell() -> None:
    disk = SimDisk()
    with Store.open("/s", OPTIONS, disk=disk) as store:
        publish(store, "0-1-1")
        disk.faults = [Fault(lambda op: op.kind == "sync_dir", errno.ENOSPC)]
        with pytest.raises(DiskError):
            store.reset()
        with pytest.raises(StoreFailed):
            publish(store, "0-1-2")
    with Store.open("/s", OPTIONS, disk=disk) as store:
        assert gtids(store) == []


def test_a_store_writes_nothing_behind_a_reset_that_failed_with_the_new_files_there() -> None:
    """Leases on the deleted history would hold for the new one: an opening ends them."""
    disk = SimDisk()
    with Store.open("/s", OPTIONS, disk=disk) as store:
        publish(store, "0-1-1")
        store.leases.renew("archive", "0-1-1")
        disk.faults = [
            Fault(lambda op: op.kind == "truncate" and LEASES_NAME in op.path, errno.EIO)
        ]
        with pytest.raises(DiskError):
            store.reset()
        with pytest.raises(StoreFailed):
            publish(store, "0-1-1")
    with Store.open("/s", OPTIONS, disk=disk) as store:
        assert gtids(store) == []
        assert store.leases.all() == []
