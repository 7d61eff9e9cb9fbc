"""The writer's open files."""

import errno
import threading

import pytest

from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.binlog_files import BinlogFiles
from ibb.storage.errors import DiskError, StoreFull
from ibb.storage.listing import LISTINGS_MAX, list_files
from ibb.storage.os_disk import OsDisk

from ..faults.sim_disk import Fault, SimDisk
from .events import transaction


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


def test_a_file_whose_closing_is_interrupted_is_in_nobodys_way(monkeypatch):
    """A signal's handler may raise anywhere; other threads go on."""
    files = BinlogFiles(SimDisk(), "/s")
    files.create(0, 4096)
    file = files.file(0)
    close = file.close

    def closes_and_raises():
        close()
        raise KeyboardInterrupt

    monkeypatch.setattr(file, "close", closes_and_raises)
    with pytest.raises(KeyboardInterrupt):
        files.close(0)
    files.sync_all()
    files.close(0)
    assert files.file(0).size() == 4096


def test_a_file_that_holds_something_is_not_taken_for_a_new_one(tmp_path):
    disk = OsDisk()
    path = tmp_path / "binlog-000000.ibb"
    path.write_bytes(b"x" * 100)
    with pytest.raises(DiskError, match="there is a file that this store has not made"):
        BinlogFiles(disk, str(tmp_path)).create(0, 4096)
    assert path.read_bytes() == b"x" * 100
    path.write_bytes(bytes(100))
    BinlogFiles(disk, str(tmp_path)).create(0, 4096)
    assert path.read_bytes() == bytes(4096)


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


@pytest.mark.parametrize("vanish", [[0], [0, 1], [3], [3, 2]])
@pytest.mark.parametrize("measured_before", [0, 1, 2, 3])
def test_files_that_vanish_are_not_listed(monkeypatch, vanish, measured_before):
    """Between a look at the directory and one at each file; the list is that of one moment."""
    disk = SimDisk()
    files = BinlogFiles(disk, "/s")
    for file_no in range(4):
        files.create(file_no, 4096)
    measure, measured = disk.size, []

    def size(path):
        if len(measured) == measured_before:
            for file_no in vanish:
                disk.unlink(files.path(file_no))
        measured.append(path)
        return measure(path)

    monkeypatch.setattr(disk, "size", size)
    listed = [number for number, _ in files.sizes()]
    gone = range(len(vanish) + 1)
    moments = [[number for number in range(4) if number not in vanish[:count]] for count in gone]
    assert listed in moments
    if measured_before == 0:
        assert listed == moments[-1]


def test_a_listing_ends_though_files_vanish_all_the_time(monkeypatch):
    """A purge of many is not waited for: in each look one that was measured goes, and the next."""
    disk = SimDisk()
    files = BinlogFiles(disk, "/s")
    count = 2 * LISTINGS_MAX + 4
    for file_no in range(count):
        files.create(file_no, 4096)
    measure, look, first = disk.size, disk.list, []

    def list_names(path):
        first[:] = look(path)[:2]
        return look(path)

    def purge_before_the_second(path):
        if path == f"/s/{first[1]}":
            for name in first:
                disk.unlink(f"/s/{name}")
        return measure(path)

    monkeypatch.setattr(disk, "list", list_names)
    monkeypatch.setattr(disk, "size", purge_before_the_second)
    assert [number for number, _ in files.sizes()] == list(range(count - 4, count))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE])
@pytest.mark.parametrize("kind", ["open", "allocate", "sync", "sync_dir"])
def test_a_file_that_cannot_be_made_now_can_be_made_later(code, kind):
    disk = SimDisk()
    disk.make_dir("/s")
    files = BinlogFiles(disk, "/s")
    disk.faults = [Fault(lambda op: op.kind == kind, code)]
    with pytest.raises(StoreFull, match=r"no room for /s/binlog-000000\.ibb"):
        files.create(0, 4096)
    assert disk.list("/s") == []
    files.create(0, 4096)
    assert files.size(0) == 4096


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EMFILE])
def test_a_store_outlives_a_next_file_that_cannot_be_opened(code):
    options = StoreOptions(
        page_size=512, max_binlog_size=512 * 16, redo_segment_size=256 << 10, background=False
    )
    disk = SimDisk()
    with Store.open("/s", options, disk=disk) as store:
        files = len(store.files())
        disk.faults = [
            Fault(lambda op: op.kind == "open" and op.path.endswith(".ibb"), code, times=10**6)
        ]
        published, refused = 0, 0
        while refused < 3:
            try:
                with store.begin() as group:
                    group.write(transaction("x" * 400))
                    group.commit(Gtid(0, 1, published + 1))
                published += 1
            except StoreFull:
                refused += 1
        assert len(store.files()) == files
        disk.faults = []
        with store.begin() as group:
            group.write(transaction("x" * 400))
            group.commit(Gtid(0, 1, published + 1))
    with Store.open("/s", options, disk=disk) as store:
        assert sum(group.gtid is not None for group in store.reader()) == published + 1
