"""What is set aside is there for good before anything is cleared."""

import os
import random
from dataclasses import replace

import pytest

from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.aside import is_used_from, set_aside
from ibb.storage.os_disk import OsDisk

from ..faults.sim_disk import PowerLost, SimDisk
from .events import transaction

OPTIONS = StoreOptions(
    page_size=512, max_binlog_size=512 * 16, redo_segment_size=256 << 10, background=False
)
FILE = "/s/binlog-000000.ibb"
FOUND = b"what somebody has left here" * 30
OPERATIONS_MAX = 200  # of one opening
LOSSES = 8  # at each operation


def damaged_disk(pages_between=0):
    """Return the disk of a closed store, with bytes behind its end, or so many pages later."""
    disk = SimDisk()
    with Store.open("/s", OPTIONS, disk=disk) as store:
        with store.begin() as group:
            group.write(transaction("all"))
            group.commit(Gtid(0, 1, 1))
        end = store.end().offset
    disk.damage(FILE, (-(-end // 512) + pages_between) * 512, FOUND)
    return disk


def holds(disk):
    return [name for name in disk.list("/s") if FOUND in disk.contents(f"/s/{name}")]


@pytest.mark.parametrize("keep", [0.3, 0.7])
def test_no_power_loss_in_an_opening_takes_away_what_it_clears(keep):
    opened = 0
    for at in range(1, OPERATIONS_MAX):
        for seed in range(LOSSES):
            disk = damaged_disk()
            disk.crash_at = disk.operations + at
            try:
                Store.open("/s", OPTIONS, disk=disk).close()
                opened += 1
            except PowerLost:
                after = disk.crashed(random.Random(seed), keep)
                assert holds(after), f"power lost at operation {at}: {disk.log[-5:]}"
                continue
            assert [name for name in holds(disk) if "aside" in name]
        if opened:
            return
    raise AssertionError("the store never opens")


def test_a_copy_that_was_there_is_certain_too():
    """An opening that was killed has left it, not yet synced."""
    disk = damaged_disk()
    name = set_aside(disk, FILE)
    path = f"{FILE}.again"
    disk.rename(name, path)
    disk.sync_dir("/s")
    file = disk.open(name, create=True)
    file.write_at(0, disk.contents(FILE))
    assert set_aside(disk, FILE) == name
    after = disk.crashed(random.Random(1), keep=0)
    assert after.contents(name) == disk.contents(FILE)


@pytest.mark.parametrize("pages_between", [0, 1, 5])
def test_what_lies_behind_empty_pages_is_cleared_too(pages_between, caplog):
    """Pages that were written without a sync outlive a power loss in any order."""
    disk = damaged_disk(pages_between)
    with Store.open("/s", OPTIONS, disk=disk) as store:
        (copy,) = store.copies_set_aside
        assert f"{copy} is how it was" in caplog.text
        end = store.end().offset
    assert FOUND in disk.contents(copy)
    assert not any(disk.contents(FILE)[-(-end // 512) * 512 :])
    Store.open("/s", OPTIONS, disk=disk).close()
    assert [name for name in holds(disk) if "aside" in name] == [copy.removeprefix("/s/")]


@pytest.mark.parametrize("page", [0, 1, 2, 700])
def test_a_file_that_the_log_does_not_tell_of_is_copied_wherever_something_is_in_it(page):
    disk, options = SimDisk(), replace(OPTIONS, max_binlog_size=512 * 1024)
    Store.open("/s", options, disk=disk).close()
    later = "/s/binlog-000001.ibb"
    assert disk.exists(later)
    disk.damage(later, page * 512, FOUND[:500])
    with Store.open("/s", options, disk=disk) as store:
        (copy,) = store.copies_set_aside
    assert disk.contents(copy)[page * 512 :].startswith(FOUND[:500])
    assert FOUND[:500] not in disk.contents(later)


@pytest.mark.parametrize("zeros", [0, 1, 65_535, 65_536, 65_537, 3 << 20])
def test_zeros_that_were_written_are_nothing(tmp_path, zeros):
    path = tmp_path / "file"
    path.write_bytes(b"head" + b"\0" * zeros)
    file = OsDisk().open(str(path), read_only=True)
    assert is_used_from(file, 0)
    assert is_used_from(file, 3)
    assert not is_used_from(file, 4)
    with path.open("ab") as more:
        more.write(b"x")
    assert is_used_from(file, 4)
    file.close()


def test_what_was_only_reserved_is_copied_by_no_opening(tmp_path):
    options = replace(OPTIONS, max_binlog_size=4 << 20, background=True)
    for number in range(4):
        with Store.open(tmp_path, options) as store:
            assert store.copies_set_aside == []
            with store.begin() as group:
                group.write(transaction("all"))
                group.commit(Gtid(0, 1, number + 1))
            if number == 1:
                store.switch_file()
    assert not list(tmp_path.glob("*.aside*"))


def test_room_that_is_only_reserved_is_not_read(tmp_path, monkeypatch):
    """Whatever a cache holds of it counts as data, and reading brings in what follows."""
    path = tmp_path / "file"
    file = OsDisk().open(str(path), create=True)
    file.allocate(64 << 20)
    file.write_at(0, b"page" * 4096)
    file.sync()
    read, pread = [], os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, at: read.append(size) or pread(fd, size, at))
    with path.open("rb") as other:
        other.read(1 << 20)  # a cache has more of it then
    assert not is_used_from(file, 16384)
    assert sum(read) <= 1 << 20
    file.write_at(50 << 20, b"left behind")
    assert is_used_from(file, 16384)
    file.close()
