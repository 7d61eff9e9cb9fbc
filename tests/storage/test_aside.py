"""What is set aside is there for good before anything is cleared."""

import random

import pytest

from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.aside import set_aside

from ..faults.sim_disk import PowerLost, SimDisk
from .events import transaction

OPTIONS = StoreOptions(
    page_size=512, max_binlog_size=512 * 16, redo_segment_size=256 << 10, background=False
)
FILE = "/s/binlog-000000.ibb"
FOUND = b"what somebody has left here" * 30
OPERATIONS_MAX = 200  # of one opening
LOSSES = 8  # at each operation


def damaged_disk():
    """Return the disk of a closed store, with bytes behind its end."""
    disk = SimDisk()
    with Store.open("/s", OPTIONS, disk=disk) as store:
        with store.begin() as group:
            group.write(transaction("all"))
            group.commit(Gtid(0, 1, 1))
        end = store.end().offset
    disk.damage(FILE, -(-end // 512) * 512, FOUND)
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
