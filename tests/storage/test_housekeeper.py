"""The background brings pages to the files, and makes and closes these in time."""

import threading

import pytest

from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.errors import StoreFailed
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
        housekeeper = store._engine._housekeeper
        monkeypatch.setattr(housekeeper, "work", lambda: {}["a bug"])
        housekeeper.wake()
        assert broken.wait(WAIT_SECONDS)
        with store.begin() as group:
            group.write(transaction("alone"))
            group.commit(Gtid(0, 1, 1))
    assert [type(error) for error in told] == [KeyError]
