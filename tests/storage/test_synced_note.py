"""How far the log of an open store is synced, as others read it in the lock file."""

import errno

import pytest

from ibb.storage import Store
from ibb.storage.errors import DiskError
from ibb.storage.os_disk import OsDisk
from ibb.storage.synced_note import LOCK_NAME, NOTHING_SYNCED, SyncedNote, certain_lsn

from ..faults.sim_disk import SimDisk
from .verify.verify_rig import SMALL, publish


def test_the_note_says_what_is_synced_and_is_gone_with_the_lock(tmp_path):
    disk, directory = OsDisk(), str(tmp_path)
    assert certain_lsn(disk, directory) is None
    lock = disk.lock(f"{directory}/{LOCK_NAME}")
    assert certain_lsn(disk, directory) == NOTHING_SYNCED
    note = SyncedNote(lock)
    note.write(7 << 40)
    assert certain_lsn(disk, directory) == 7 << 40
    lock.release()
    assert certain_lsn(disk, directory) is None


def test_the_note_of_an_earlier_process_says_nothing(tmp_path):
    disk, directory = OsDisk(), str(tmp_path)
    lock = disk.lock(f"{directory}/{LOCK_NAME}")
    SyncedNote(lock).write(99)
    lock.release()
    disk.lock(f"{directory}/{LOCK_NAME}")
    assert certain_lsn(disk, directory) == NOTHING_SYNCED


@pytest.mark.parametrize("at", range(12))
def test_a_note_that_is_just_being_written_says_nothing(tmp_path, at):
    disk, directory = OsDisk(), str(tmp_path)
    lock = disk.lock(f"{directory}/{LOCK_NAME}")
    SyncedNote(lock).write(99)
    found = bytearray(disk.lock_note(f"{directory}/{LOCK_NAME}"))
    found[at] ^= 1
    lock.write_note(found)
    assert certain_lsn(disk, directory) == NOTHING_SYNCED


class RefusingLock:
    """A lock whose file cannot be written."""

    def __init__(self, lock):
        self.lock, self.calls = lock, 0

    def write_note(self, data):
        self.calls += 1
        raise DiskError(errno.EIO, "simulated", operation="write", path=LOCK_NAME)

    def release(self):
        self.lock.release()


class RefusingDisk(SimDisk):
    def lock(self, path):
        self.locked = RefusingLock(super().lock(path))
        return self.locked


def test_a_store_that_cannot_write_the_note_goes_on():
    disk = RefusingDisk()
    with Store.open("/s", SMALL, disk=disk) as store:
        for number in range(1, 4):
            publish(store, number)
        assert certain_lsn(disk, "/s") == NOTHING_SYNCED
        assert str(store.state()) == "0-1-3"
    assert disk.locked.calls == 1
    with Store.open("/s", SMALL, disk=disk) as store:
        assert str(store.state()) == "0-1-3"
