"""Open files are few, and none is closed under a reader."""

import os

import pytest

from ibb.protocol.errors import FormatError
from ibb.storage.errors import DiskError
from ibb.storage.file_name import binlog_name
from ibb.storage.open_files import OPEN_FILES_MAX, OpenFiles
from ibb.storage.os_disk import OsDisk


class CountingDisk(OsDisk):
    """Knows which files are open."""

    def __init__(self):
        self.is_open = set()
        self.during_read = None

    def open(self, path, *, create=False, read_only=False):
        assert read_only
        file = super().open(path, create=create, read_only=read_only)
        close, read_at = file.close, file.read_at
        self.is_open.add(path)

        def closed():
            self.is_open.discard(path)
            close()

        def read(offset, size):
            if self.during_read is not None:
                during, self.during_read = self.during_read, None
                during()
            return read_at(offset, size)

        file.close, file.read_at = closed, read
        return file


@pytest.fixture
def files(tmp_path):
    for number in range(OPEN_FILES_MAX + 10):
        (tmp_path / binlog_name(number)).write_bytes(b"file %d" % number)
    disk = CountingDisk()
    opened = OpenFiles(disk, str(tmp_path))
    opened.disk = disk
    return opened


def test_bytes_come_from_the_file_of_that_number(files):
    assert files.read(7, 0, 100) == b"file 7"
    assert files.read(7, 5, 1) == b"7"
    assert files.size(12) == 7


def test_the_number_of_open_files_is_bounded(files):
    for number in range(OPEN_FILES_MAX + 10):
        files.read(number, 0, 1)
    assert len(files.disk.is_open) == OPEN_FILES_MAX
    assert files.read(0, 0, 10) == b"file 0"


def test_a_dropped_file_stays_open_until_the_read_on_it_is_done(files):
    states = []

    def drop():
        files.drop(3)
        states.append(len(files.disk.is_open))

    files.disk.during_read = drop
    assert files.read(3, 0, 10) == b"file 3"
    assert states == [1]
    assert not files.disk.is_open


def test_a_file_that_is_lent_stays_open_until_it_is_given_back(files):
    with files.lent(3) as descriptor:
        files.drop(3)
        assert len(files.disk.is_open) == 1
        assert os.pread(descriptor, 100, 0) == b"file 3"
    assert not files.disk.is_open
    with pytest.raises(DiskError), files.lent(999):
        pass


def test_closing_closes_all(files):
    for number in range(5):
        files.read(number, 0, 1)
    files.close()
    assert not files.disk.is_open
    assert files.read(4, 0, 10) == b"file 4"


def test_a_missing_file_is_an_error(files):
    with pytest.raises(DiskError) as caught:
        files.read(999, 0, 1)
    assert caught.value.missing


class TwoFaced:
    """A file whose first reads are wrong, until the cache is forgotten."""

    def __init__(self):
        self.forgotten, self.reads = [], 0

    def read_at(self, offset, size):
        self.reads += 1
        return (b"right" if self.forgotten else b"wrong")[:size]

    def forget_cached(self, offset, size):
        self.forgotten.append((offset, size))


def refuse(data):
    if data != b"right":
        raise FormatError(f"read {data}")
    return data.decode()


def test_what_fails_its_check_is_read_once_more_from_the_device(tmp_path, monkeypatch):
    file = TwoFaced()
    monkeypatch.setattr(OsDisk, "open", lambda *_, **__: file)
    files = OpenFiles(OsDisk(), str(tmp_path))
    assert files.read_page(0, 3, 5, refuse) == "right"
    assert (file.forgotten, file.reads) == ([(15, 5)], 2)
    with pytest.raises(FormatError, match="read b'ri'"):
        files.read_page(0, 3, 2, refuse)
    assert file.reads == 4
    assert files.read_page(0, 3, 5, refuse) == "right"
    assert file.reads == 5
