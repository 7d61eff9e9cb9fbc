"""The writer's open files."""

import errno
import threading

import pytest

from ibb.storage.binlog_files import BinlogFiles, list_files
from ibb.storage.disk import OsDisk
from ibb.storage.errors import DiskError, StoreFull

from ..faults.sim_disk import Fault, SimDisk


class SlowFile:
    """A file whose sync tells that it began, and waits until it may end."""

    def __init__(self, file):
        self.file = file
        self.began = threading.Event()
        self.may_end = threading.Event()
        self.closed = False

    def sync(self):
        assert not self.closed
        self.began.set()
        self.may_end.wait(10)
        assert not self.closed, "closed while it was synced"
        self.file.sync()

    def close(self):
        self.closed = True
        self.file.close()


def test_a_file_is_not_closed_while_all_are_synced(tmp_path):
    files = BinlogFiles(OsDisk(), str(tmp_path))
    files.create(0, 4096)
    slow = files._open[0] = SlowFile(files.file(0))
    failures = []

    def run(call):
        try:
            call()
        except AssertionError as error:
            failures.append(error)

    syncing = threading.Thread(target=run, args=(files.sync_all,))
    syncing.start()
    assert slow.began.wait(10)
    closing = threading.Thread(target=run, args=(lambda: files.close(0),))
    closing.start()
    slow.may_end.set()
    syncing.join(10)
    closing.join(10)
    assert failures == []
    assert slow.closed
    assert 0 not in files._open
    files.sync_all()


@pytest.mark.parametrize("kind", ["allocate", "sync", "sync_dir"])
@pytest.mark.parametrize(("code", "error"), [(errno.EIO, DiskError), (errno.ENOSPC, StoreFull)])
def test_a_file_that_cannot_be_made_leaves_no_trace(kind, code, error):
    """A part of it would be listed, and gone when somebody asks for it."""
    disk = SimDisk()
    disk.faults.append(Fault(lambda op: op.kind == kind, code))
    files = BinlogFiles(disk, "/s")
    with pytest.raises(error):
        files.create(0, 4096)
    assert list_files(disk, "/s") == []
    files.create(0, 4096)
    assert list_files(disk, "/s") == [0]


def test_a_file_that_vanishes_is_not_listed(monkeypatch):
    """Somebody may purge between a look at the directory and one at the file."""
    disk = SimDisk()
    files = BinlogFiles(disk, "/s")
    for file_no in range(3):
        files.create(file_no, 4096)
    listed = disk.list("/s")
    disk.unlink(files.path(0))
    monkeypatch.setattr(disk, "list", lambda _: listed)
    assert list(files.sizes()) == [(1, 4096), (2, 4096)]
