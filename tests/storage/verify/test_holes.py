"""What a file holds nothing of is not read, and what it holds is."""

import os

import pytest

from ibb.storage.os_disk import OsDisk
from ibb.storage.verify import Totals, verify_directory
from ibb.storage.verify.holes import TRIES_MAX, Holes

from .both_ways import checked
from .verify_rig import SIZE, Binlog

MIB = 1 << 20


class FakeFile:
    """A file that tells of data, of which forgetting helps for some."""

    def __init__(self, data, cached=()):
        self.data, self.cached, self.forgotten = set(data), set(cached), []

    def next_data(self, offset):
        return min((at for at in self.data | self.cached if at >= offset), default=None)

    def forget_cached(self, offset, size):
        self.forgotten.append((offset, size))
        self.cached -= set(range(offset, offset + size))


def test_what_is_cached_of_a_hole_is_forgotten():
    file = FakeFile(data=[70], cached=range(40, 60))
    holes = Holes(file)
    assert holes.has(0, 40)
    assert file.forgotten == []
    assert holes.has(40, 10)
    assert not file.cached
    assert holes.has(50, 20)
    assert not holes.has(50, 21)


def test_stored_zeros_are_not_forgotten_for_ever():
    """They would have to be read from the device again each time."""
    file = FakeFile(data=range(1000))
    holes = Holes(file)
    assert not any(holes.has(at, 10) for at in range(0, 1000, 10))
    assert len(file.forgotten) == TRIES_MAX


class ReadsDisk(OsDisk):
    """Notes what is read of a file."""

    def __init__(self, name):
        super().__init__()
        self._name = name
        self.reads = []

    def open(self, path, *, create=False, read_only=False):
        file = super().open(path, create=create, read_only=read_only)
        if path.endswith(self._name):
            return NotedFile(file, self.reads)
        return file


class NotedFile:
    def __init__(self, file, reads):
        self._file, self._reads = file, reads

    def __getattr__(self, name):
        return getattr(self._file, name)

    def read_at(self, offset, size):
        self._reads.append((offset, size))
        return self._file.read_at(offset, size)


def lengthen(path, size, *stored):
    """Make a file longer, with zeros that are stored at some places."""
    with path.open("r+b") as file:
        file.truncate(size)
        for offset in stored:
            file.seek(offset)
            file.write(bytes(4096))
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@pytest.fixture
def binlog(tmp_path):
    return Binlog(tmp_path).groups(40).write()


@pytest.mark.parametrize("file_no", [2, 3])
def test_a_large_file_of_which_little_is_used(binlog, file_no):
    """File 2 is the newest that is used, file 3 is empty: of a hole neither is read."""
    lengthen(binlog.file(file_no), 64 * MIB)
    disk, totals, steps = ReadsDisk(binlog.file(file_no).name), Totals(), []
    found = verify_directory(
        disk, str(binlog.path), totals=totals, progress=lambda *step: steps.append(step)
    )
    assert list(found) == []
    assert totals.size == 64 * MIB + 3 * 8 * SIZE
    assert steps[-1] == (totals.size, totals.size)
    behind = [offset for offset, _ in disk.reads if offset > 2 * MIB]
    assert len(behind) < 20
    if file_no == 2:
        assert len(steps) > 64  # as often as if it were read
    lengthen(binlog.file(file_no), 64 * MIB, 9 * MIB)
    assert list(verify_directory(OsDisk(), str(binlog.path))) == []


@pytest.mark.parametrize("offset", [3 * MIB, 3 * MIB + 5, 63 * MIB + 4095, 64 * MIB - 1])
@pytest.mark.parametrize("file_no", [2, 3])
def test_a_byte_in_the_midst_of_nothing(binlog, file_no, offset):
    lengthen(binlog.file(file_no), 64 * MIB)
    with binlog.file(file_no).open("r+b") as file:
        file.seek(offset)
        file.write(b"x")
    (found,) = checked(OsDisk(), str(binlog.path)).findings
    if file_no == 3:
        assert (found.kind, found.page) == ("header-zero", 0)
    else:
        assert (found.kind, found.page) == ("page-checksum", offset // SIZE)
