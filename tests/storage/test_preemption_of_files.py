"""Whoever comes in between finds the right files open: those that are read, and the writer's."""

import pytest

from ibb.storage.binlog_files import BinlogFiles
from ibb.storage.open_files import OpenFiles

from .preemption import Meeting, meet_everywhere, swapped


class CountedFile:
    def __init__(self, disk):
        self._disk = disk
        self.is_closed = False

    def read_at(self, offset, size):
        assert not self.is_closed
        return bytes(size)

    def size(self):
        return 1

    def sync(self):
        assert not self.is_closed

    def close(self):
        assert not self.is_closed, "closed twice"
        self.is_closed = True
        self._disk.open_count -= 1


class CountingDisk:
    """Counts the files that are open."""

    def __init__(self):
        self.open_count = 0

    def open(self, path, *, create=False, read_only=False):
        self.open_count += 1
        return CountedFile(self)


def two_readers_of_one_file():
    disk = CountingDisk()
    files = OpenFiles(disk, "/s")
    read = lambda: files.read(0, 0, 1)  # noqa: E731
    return Meeting(read, read, lambda: check_open(disk, 1))


def a_read_and_its_file_goes():
    disk = CountingDisk()
    files = OpenFiles(disk, "/s")
    files.size(0)
    return Meeting(lambda: files.read(0, 0, 1), lambda: files.drop(0), lambda: drop(files, disk))


def a_read_and_all_files_are_closed():
    disk = CountingDisk()
    files = OpenFiles(disk, "/s")
    files.size(0)
    return Meeting(lambda: files.read(0, 0, 1), files.close, lambda: drop(files, disk))


def two_reads_of_a_file_that_is_gone():
    disk = CountingDisk()
    files = OpenFiles(disk, "/s")
    handles = [files._take(0), files._take(0)]
    files.drop(0)
    return Meeting(
        lambda: files._give_back(handles[0]),
        lambda: files._give_back(handles[1]),
        lambda: check_open(disk, 0),
    )


def drop(files, disk):
    files.drop(0)
    check_open(disk, 0)


def check_open(disk, count):
    assert disk.open_count == count


def one_file_for_two_writers():
    disk = CountingDisk()
    files = BinlogFiles(disk, "/s")
    file = lambda: files.file(0)  # noqa: E731
    return Meeting(file, file, lambda: check_open(disk, 1))


def open_binlog_files():
    disk = CountingDisk()
    files = BinlogFiles(disk, "/s")
    files.file(0)
    files.file(1)
    return files


def a_sync_of_all_and_one_is_closed():
    files = open_binlog_files()
    return Meeting(files.sync_all, lambda: files.close(1), lambda: None)


def a_sync_of_the_older_and_one_is_closed():
    files = open_binlog_files()
    return Meeting(lambda: files.sync_before(2), lambda: files.close(1), lambda: None)


def a_sync_of_the_older_and_a_new_one():
    files = open_binlog_files()
    return Meeting(lambda: files.sync_before(2), lambda: files.file(2), lambda: None)


def a_sync_of_all_and_a_new_one():
    files = open_binlog_files()
    return Meeting(files.sync_all, lambda: files.file(2), lambda: None)


SCENES = [
    two_readers_of_one_file,
    a_read_and_its_file_goes,
    a_read_and_all_files_are_closed,
    two_reads_of_a_file_that_is_gone,
    one_file_for_two_writers,
    a_sync_of_all_and_one_is_closed,
    a_sync_of_the_older_and_one_is_closed,
    a_sync_of_the_older_and_a_new_one,
    a_sync_of_all_and_a_new_one,
]


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
@pytest.mark.parametrize("is_swapped", [False, True], ids=["", "swapped"])
def test_no_file_is_lost_or_closed_twice(scene, is_swapped):
    assert meet_everywhere(lambda: swapped(scene()) if is_swapped else scene()) > 0
