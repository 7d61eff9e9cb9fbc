"""The background brings pages to the files, and makes and closes these in time."""

import errno
import threading

import pytest

from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions, housekeeper
from ibb.storage.errors import DiskError, StoreFailed
from ibb.storage.file_name import binlog_name, parse_binlog_name

from ..faults.sim_disk import SimDisk
from .events import transaction

WAIT_SECONDS = 15.0


class WatchingDisk(SimDisk):
    """When a file is made it looks whether all but the one before it are on the disk."""

    made = 0

    def step(self, kind, path):
        number = parse_binlog_name(path.rpartition("/")[2])
        if kind == "allocate" and number is not None and number >= 2:
            self.made += 1
            complete = self._names[f"/s/{binlog_name(number - 2)}"]
            assert any(complete.durable[-512:]), f"file {number} is made before the rest is certain"
        super().step(kind, path)


def test_a_file_is_made_when_all_but_the_one_before_it_are_certain():
    """Nobody has waited for what is in them, and the page FIFO has room for it."""
    options = StoreOptions(
        page_size=512, max_binlog_size=512 * 8, redo_segment_size=1 << 20, fifo_pages_max=512,
        format_description="upstream", flush_log_at_commit=0, flush_log_interval=1e6,
        background=False,
    )  # fmt: skip
    disk = WatchingDisk()
    with Store.open("/s", options, disk=disk) as store:
        for seq in range(1, 60):
            with store.begin() as group:
                group.write(transaction("x" * 400))
                group.commit(Gtid(0, 1, seq))
    assert disk.made > 3


class SyncsOfFiles(SimDisk):
    """Counts how often a binlog file is synced once they are made; may fail to."""

    count, fails = 0, False

    def step(self, kind, path):
        if kind == "sync" and parse_binlog_name(path.rpartition("/")[2]) is not None:
            self.count += 1
            if self.fails:
                raise DiskError(errno.EIO, "lost", operation="sync", path=path)
        super().step(kind, path)


AHEAD = StoreOptions(
    page_size=512, max_binlog_size=512 * 512, redo_segment_size=1 << 20,
    format_description="upstream", background=False,
)  # fmt: skip


def write_pages(store, first, count):
    for seq in range(first, first + count):
        with store.begin() as group:
            group.write(transaction("x" * 400))
            group.commit(Gtid(0, 1, seq))


def test_files_are_synced_ahead_of_a_checkpoint_when_there_is_much(monkeypatch):
    """Nobody can write during a checkpoint, which waits for all that the files lack."""
    monkeypatch.setattr(housekeeper, "UNSYNCED_BYTES_MAX", 20 * 512)
    disk = SyncsOfFiles()
    with Store.open("/s", AHEAD, disk=disk) as store:
        write_pages(store, 1, 1)  # the next file is made, and synced for that
        before = disk.count
        write_pages(store, 2, 100)  # one a page
        assert disk.count - before == 100 // 20
        monkeypatch.setattr(housekeeper, "UNSYNCED_BYTES_MAX", 1 << 30)
        before = disk.count
        write_pages(store, 102, 100)
        assert disk.count == before


def test_a_file_that_cannot_be_synced_ahead_ends_the_store(monkeypatch):
    """What is in it is not known any more, and the log would be used again behind a checkpoint."""
    monkeypatch.setattr(housekeeper, "UNSYNCED_BYTES_MAX", 20 * 512)
    disk = SyncsOfFiles()
    with pytest.raises((StoreFailed, DiskError)), Store.open("/s", AHEAD, disk=disk) as store:
        disk.fails = True
        with pytest.raises((StoreFailed, DiskError)):
            write_pages(store, 1, 100)
        disk.fails = False
        with pytest.raises(StoreFailed):
            write_pages(store, 101, 1)
        store.sync()


def test_a_housekeeper_that_breaks_is_no_secret(monkeypatch):
    """Nobody would write pages or make files any more, and commits would go on for a while."""
    broken, told = threading.Event(), []

    def note(args):
        told.append(args.exc_value)
        broken.set()

    monkeypatch.setattr(threading, "excepthook", note)
    options = StoreOptions(
        page_size=512, max_binlog_size=1 << 16, redo_segment_size=256 << 10,
        format_description="upstream",
    )  # fmt: skip
    with pytest.raises(StoreFailed), Store.open("/s", options, disk=SimDisk()) as store:
        keeper = store._engine._housekeeper
        monkeypatch.setattr(keeper, "work", lambda: {}["a bug"])
        keeper.wake()
        assert broken.wait(WAIT_SECONDS)
        with store.begin() as group:
            group.write(transaction("alone"))
            group.commit(Gtid(0, 1, 1))
    assert [type(error) for error in told] == [KeyError]
