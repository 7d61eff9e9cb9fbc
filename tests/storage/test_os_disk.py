"""The real disk: positioned I/O that is whole or fails, and errors that say what and where."""

import errno
import os
from functools import partial
from pathlib import Path

import pytest

from ibb.storage import os_file
from ibb.storage.errors import DiskError, StoreLocked
from ibb.storage.os_disk import OsDisk


@pytest.fixture
def disk():
    return OsDisk()


def test_what_is_written_is_read_at_its_place(disk, tmp_path):
    file = disk.open(f"{tmp_path}/f", create=True)
    file.write_at(3, b"abc")
    file.write_at(6, [b"d", bytearray(b"ef"), memoryview(b"gh"), b""])
    assert file.read_at(0, 100) == b"\0\0\0abcdefgh"
    assert file.read_at(5, 2) == b"cd"
    assert file.read_at(50, 2) == b""
    assert file.size() == 11
    file.sync()
    file.close()
    file.close()


def test_what_is_read_into_room_ends_where_the_file_does(disk, tmp_path):
    file = disk.open(f"{tmp_path}/f", create=True)
    file.write_at(0, b"abcdefgh")
    room = bytearray(b"....")
    assert file.read_into(2, memoryview(room)) == 4
    assert room == b"cdef"
    assert file.read_into(6, memoryview(room)) == 2
    assert room == b"ghef"
    assert file.read_into(8, memoryview(room)) == 0
    assert file.read_into(0, memoryview(b"")) == 0
    file.close()
    (tmp_path / "folder").mkdir()
    with pytest.raises(DiskError, match="read"):
        disk.open(f"{tmp_path}/folder", read_only=True).read_into(0, memoryview(room))


def test_short_reads_and_writes_of_the_system_are_continued(disk, tmp_path, monkeypatch):
    file = disk.open(f"{tmp_path}/f", create=True)
    pread, preadv, pwritev = os.pread, os.preadv, os.pwritev
    monkeypatch.setattr(os, "pread", lambda fd, size, offset: pread(fd, min(size, 3), offset))
    monkeypatch.setattr(os, "preadv", lambda fd, into, at: preadv(fd, [into[0][:3]], at))

    def write_little(fd, buffers, offset):
        first = memoryview(buffers[0])
        if first.nbytes > 2:
            return pwritev(fd, [first.cast("B")[:2]], offset)
        return pwritev(fd, buffers[:2], offset)

    monkeypatch.setattr(os, "pwritev", write_little)
    file.write_at(1, [b"abcdefg", b"hi", b"j"])
    assert file.read_at(1, 10) == b"abcdefghij"
    assert file.read_at(8, 10) == b"hij"
    room = bytearray(12)
    assert file.read_into(1, memoryview(room)) == 10
    assert room == b"abcdefghij\0\0"


def test_more_buffers_than_the_system_takes_at_once(disk, tmp_path):
    file = disk.open(f"{tmp_path}/f", create=True)
    file.write_at(0, [b"x"] * (os_file.WRITE_BUFFERS_MAX + 5))
    assert file.size() == os_file.WRITE_BUFFERS_MAX + 5


def test_allocated_room_is_zero_and_nothing_is_cut(disk, tmp_path):
    file = disk.open(f"{tmp_path}/f", create=True)
    file.write_at(0, b"ab")
    file.allocate(5000)
    assert file.read_at(0, 6000) == b"ab" + bytes(4998)
    file.allocate(100)
    assert file.size() == 5000
    file.truncate(1)
    assert file.read_at(0, 10) == b"a"


def test_allocation_falls_back_where_the_file_system_cannot(disk, tmp_path, monkeypatch):
    file = disk.open(f"{tmp_path}/f", create=True)

    def refuse(*_):
        raise OSError(errno.EOPNOTSUPP, "no")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    file.allocate(700)
    assert file.size() == 700
    file.allocate(600)
    assert file.size() == 700


def test_a_full_disk_is_not_papered_over(disk, tmp_path, monkeypatch):
    file = disk.open(f"{tmp_path}/f", create=True)

    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(DiskError) as caught:
        file.allocate(700)
    assert caught.value.full
    assert file.size() == 0


def test_an_error_names_operation_path_and_offset(disk, tmp_path):
    path = f"{tmp_path}/f"
    disk.open(path, create=True).close()
    file = disk.open(path, read_only=True)
    with pytest.raises(DiskError) as caught:
        file.write_at(70, b"x")
    error = caught.value
    assert (error.operation, error.path, error.offset) == ("write", path, 70)
    assert error.errno == errno.EBADF
    assert str(error) == f"cannot write {path} at 70: Bad file descriptor"


def test_a_missing_file_is_told_from_other_errors(disk, tmp_path):
    with pytest.raises(DiskError) as caught:
        disk.open(f"{tmp_path}/none")
    assert caught.value.missing
    assert not caught.value.full
    assert not disk.exists(f"{tmp_path}/none")
    assert disk.exists(str(tmp_path))


class Killed(BaseException):
    pass


class NotingDisk(OsDisk):
    """
    Notes which directories were there at each sync of one.

    Attributes:
        synced: (the one that is synced, names in it).
        dies_at: number of the sync before which the process is killed.
    """

    dies_at = 0

    def __init__(self):
        self.synced = []

    def sync_dir(self, path):
        self.synced.append((path, self.list(path)))
        if len(self.synced) == self.dies_at:
            raise Killed
        super().sync_dir(path)


def test_each_directory_that_is_made_has_a_name_that_lasts(tmp_path):
    """Nothing below is lost with it, should the power go: not even the store's first files."""
    disk = NotingDisk()
    (tmp_path / "other").mkdir()
    base = str(tmp_path)
    disk.make_dir(f"{base}/a/b/store")
    assert disk.synced == [
        (base, ["a", "other"]),
        (f"{base}/a", ["b"]),
        (f"{base}/a/b", ["store"]),
    ]
    (tmp_path / "a" / "b" / "store" / "file").touch()
    disk.make_dir(f"{base}/a/b/store/")
    assert len(disk.synced) == 3


@pytest.mark.parametrize("dies_at", [1, 2, 3])
def test_a_name_that_a_killed_process_has_left_is_synced_by_the_next(tmp_path, dies_at):
    disk, path = NotingDisk(), f"{tmp_path}/a/b/store"
    (tmp_path / "other").mkdir()
    disk.dies_at = dies_at
    with pytest.raises(Killed):
        disk.make_dir(path)
    unsynced = disk.synced.pop()
    disk.dies_at = 0
    disk.make_dir(path)
    assert unsynced in disk.synced
    assert [folder for folder, _ in disk.synced] == [
        str(tmp_path),
        f"{tmp_path}/a",
        f"{tmp_path}/a/b",
    ]


def test_a_directory_that_cannot_be_made_is_told(disk, tmp_path):
    (tmp_path / "file").touch()
    for path in (f"{tmp_path}/file", f"{tmp_path}/file/store"):
        with pytest.raises(DiskError, match=f"cannot make directory {path}: Not a directory"):
            disk.make_dir(path)


def test_a_relative_path_is_made_where_one_is(disk, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    disk.make_dir("a/b//c/")
    disk.make_dir("d")
    assert disk.list(f"{tmp_path}/a/b") == ["c"]
    assert disk.exists(f"{tmp_path}/d")


@pytest.mark.parametrize("call", ["fdatasync", "fsync"])
def test_a_sync_asks_the_system_for_one_and_tells_if_it_fails(disk, tmp_path, monkeypatch, call):
    """Of the very file, or directory: nothing but the power would show its absence."""
    synced, system = [], {name: getattr(os, name) for name in ("fdatasync", "fsync")}

    def noted(name, descriptor):
        synced.append((name, str(Path(f"/proc/self/fd/{descriptor}").readlink())))
        return system[name](descriptor)

    for name in system:
        monkeypatch.setattr(os, name, partial(noted, name))
    file = disk.open(f"{tmp_path}/f", create=True)
    sync = file.sync if call == "fdatasync" else partial(disk.sync_dir, str(tmp_path))
    sync()
    assert synced == [(call, str(tmp_path / "f" if call == "fdatasync" else tmp_path))]

    def failing(descriptor):
        raise OSError(errno.EIO, "simulated")

    monkeypatch.setattr(os, call, failing)
    with pytest.raises(DiskError, match=r"cannot sync") as caught:
        sync()
    assert str(tmp_path) in str(caught.value)
    file.close()


def test_names_come_and_go(disk, tmp_path):
    folder = f"{tmp_path}/a/b"
    disk.make_dir(folder)
    disk.make_dir(folder)
    for name in "zyx":
        disk.open(f"{folder}/{name}", create=True).close()
    disk.rename(f"{folder}/z", f"{folder}/x")
    disk.unlink(f"{folder}/y")
    disk.sync_dir(folder)
    assert disk.list(folder) == ["x"]
    assert disk.size(f"{folder}/x") == 0
    assert disk.modified_at(f"{folder}/x") > 1_600_000_000


def test_a_lock_is_exclusive_until_released(disk, tmp_path):
    lock = disk.lock(f"{tmp_path}/lock")
    with pytest.raises(StoreLocked):
        disk.lock(f"{tmp_path}/lock")
    lock.release()
    lock.release()
    disk.lock(f"{tmp_path}/lock").release()


def test_who_looks_at_a_lock_reads_its_note_and_takes_nothing(disk, tmp_path):
    path = f"{tmp_path}/lock"
    assert disk.lock_note(path) is None
    lock = disk.lock(path)
    assert disk.lock_note(path) == b""
    lock.write_note(b"first")
    lock.write_note(b"again")
    assert disk.lock_note(path) == b"again"
    lock.release()
    assert disk.lock_note(path) is None
    disk.lock(path).release()


def test_a_note_that_cannot_be_written_says_where(disk, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    path = f"{tmp_path}/lock"
    lock = disk.lock(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", fail)
        with pytest.raises(DiskError) as raised:
            lock.write_note(b"note")
    assert (raised.value.errno, raised.value.operation) == (errno.EDQUOT, "write")
    assert (raised.value.path, raised.value.offset) == (path, 0)
    lock.write_note(b"note")
    assert disk.lock_note(path) == b"note"
    lock.release()
