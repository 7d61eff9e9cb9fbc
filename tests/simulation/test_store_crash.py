"""
A store under power loss, again and again, by seed.

Each run publishes interleaved groups of all sizes into tiny files, loses power at some operation,
keeps of the unsynced writes what chance says, torn and in any order, opens the store again and
goes on. Whatever was acknowledged must be there, once, whole, in order; of what was not, any
beginning may be, but nothing out of order and nothing in part.
"""

import random
from dataclasses import dataclass, field

import pytest

from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.directory import BinlogDirectory
from ibb.storage.group_reader import GroupReader
from ibb.storage.position import Position

from ..faults.sim_disk import PowerLost, SimDisk
from ..storage.events import transaction

SEEDS = 60
ROUNDS = 5


@dataclass
class Published:
    """What was sent to be committed, in order, and how many of them were acknowledged."""

    groups: list[tuple[str, bytes]] = field(default_factory=list)
    acknowledged: int = 0


def options(rng: random.Random) -> StoreOptions:
    page_size = rng.choice((512, 1024, 4096, 16384))
    return StoreOptions(
        page_size=page_size,
        max_binlog_size=page_size * rng.choice((8, 13, 32)),
        state_interval=page_size * rng.choice((1, 2, 4, 64)),
        fifo_pages_max=rng.choice((4, 16, 512)),
        redo_segment_size=256 << 10,
        oob_piece_size=rng.choice((256, 1000, 5000)),
        format_description=rng.choice(("own", "upstream")),
        background=False,
    )


def work(store: Store, rng: random.Random, published: Published, steps: int) -> None:
    """Publish at random; returns, or ends in PowerLost."""
    open_groups: list[tuple[object, bytes, int]] = []
    for _ in range(steps):
        dice = rng.random()
        if dice < 0.4 or not open_groups:
            size = rng.choice((0, 30, 480, 2000, 9000, 40_000))
            events = transaction(f"group {rng.random()}", rng.randrange(size + 1))
            open_groups.append((store.begin(), events, 0))
        elif dice < 0.45:
            store.switch_file()
        elif dice < 0.5:
            index = rng.randrange(len(open_groups))
            open_groups.pop(index)[0].rollback()
        else:
            index = rng.randrange(len(open_groups))
            group, events, done = open_groups[index]
            until = min(len(events), done + rng.choice((100, 1000, 20_000)))
            group.write(events[done:until])
            open_groups[index] = (group, events, until)
            if until == len(events):
                del open_groups[index]
                commit(store, group, events, rng, published)


def commit(store: Store, group, events: bytes, rng: random.Random, published: Published) -> None:
    number = len(published.groups) + 1
    gtid = Gtid(rng.randrange(3), rng.randrange(1, 3), number)
    published.groups.append((str(gtid), events))
    if rng.random() < 0.7:
        group.commit(gtid)
        published.acknowledged = number
        return
    group.commit(gtid, wait=False)
    if rng.random() < 0.3:
        store.sync()
        published.acknowledged = number


def stored(store: Store) -> list[tuple[str, bytes]]:
    return [
        (str(group.gtid), b"".join(group.pieces())[len(group.head) :])
        for group in store.reader()
        if group.gtid is not None
    ]


def check(store: Store, published: Published) -> None:
    """Compare what is there with what was promised, and forget what was lost."""
    found = stored(store)
    assert len(found) >= published.acknowledged
    assert found == published.groups[: len(found)]
    del published.groups[len(found) :]
    published.acknowledged = len(found)
    newest: dict[int, str] = {}
    for gtid, _ in found:
        newest[int(gtid.split("-")[0])] = gtid
    assert {gtid.domain: str(gtid) for gtid in store.state().position()} == newest


@pytest.mark.parametrize("seed", range(SEEDS))
def test_acknowledged_groups_survive_power_loss(seed: int) -> None:
    rng = random.Random(seed)
    settings = options(rng)
    disk, published = SimDisk(), Published()
    for _ in range(ROUNDS):
        disk.crash_at = disk.operations + rng.choice((5, 30, 100, 400, 2000))
        try:
            store = Store.open("/s", settings, disk=disk)
            check(store, published)
            work(store, rng, published, steps=rng.choice((5, 50, 200)))
            if rng.random() < 0.5:
                store.close()
        except PowerLost:
            pass
        disk = disk.crashed(rng, keep=rng.choice((0.0, 0.5, 0.9, 1.0)))
    store = Store.open("/s", settings, disk=disk)
    check(store, published)
    assert not store.copies_set_aside
    store.close()

    directory = BinlogDirectory(disk, "/s")
    reader = GroupReader(directory, Position(directory.first_file(), 0))
    at_rest = []
    while (group := reader.next()) is not None:
        data = b"".join(group.pieces())
        if group.gtid is not None:
            at_rest.append((str(group.gtid), data[len(group.head) :]))
    assert at_rest == published.groups


def test_a_crash_in_recovery_is_recovered_too() -> None:
    """Lose power at every single operation of opening a store that crashed."""
    rng = random.Random(4)
    settings = StoreOptions(
        page_size=512, max_binlog_size=8 * 512, state_interval=1024, redo_segment_size=256 << 10,
        oob_piece_size=256, format_description="upstream", background=False,
    )  # fmt: skip
    disk, published = SimDisk(), Published()
    store = Store.open("/s", settings, disk=disk)
    work(store, rng, published, steps=60)
    assert published.acknowledged > 5
    crashed = disk.crashed(random.Random(1), keep=0.3)
    operation = 0
    while True:
        operation += 1
        trial = crashed.crashed(random.Random(0), keep=0.0)
        trial.crash_at = operation
        try:
            Store.open("/s", settings, disk=trial).close()
        except PowerLost:
            trial = trial.crashed(random.Random(operation), keep=0.5)
        else:
            break
        after = Store.open("/s", settings, disk=trial)
        found = stored(after)
        assert len(found) >= published.acknowledged
        assert found == published.groups[: len(found)]
        after.close()
    assert operation > 20
