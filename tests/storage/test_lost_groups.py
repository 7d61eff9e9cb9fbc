"""What a power loss took from the redo log stays lost, whatever the segment's next uses write."""

import random

import pytest

from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import encode_gtid_event
from ibb.storage import Store, StoreOptions
from ibb.storage.group_shape import TRANSACTION_FLAGS2
from ibb.storage.redo_segment import SEGMENT_NAMES, find_newest_segment

from ..faults.sim_disk import SimDisk
from .events import transaction
from .runs import events_of, run_of

DIRECTORY = "/s"
OPTIONS = StoreOptions(
    max_binlog_size=4 << 20,
    redo_segment_size=1 << 20,
    format_description="upstream",
    background=False,
    flush_log_at_commit=2,
    flush_log_interval=1e6,
)
OF_THE_OLD_PRIMARY = Gtid(9, 9, 77)
GROUPS = 700
UNBLANKED_BYTES = 256 << 10  # a write that is longer brings no zeros behind it


def a_run():
    """Return a run of groups that are a write of their own; each time the same."""
    groups = []
    for seq in range(1, GROUPS + 1):
        head = encode_gtid_event(Gtid(0, 1, seq), 5, TRANSACTION_FLAGS2)
        groups.append(head + b"".join(events_of(transaction("x", 400))))
    return run_of(groups, 32767)


def publish(store, gtid):
    with store.begin() as group:
        group.write(transaction(str(gtid)))
        group.commit(gtid)


def found(store):
    store.sync()
    return [group.gtid for group in store.reader()]


def power_lost(disk):
    """Return the disk when what had reached the operating system happens to be left."""
    return disk.crashed(random.Random(1), keep=1)


def lost_write():
    """
    Return the disk of a store that lost power in mode 2, with a hole in its redo log.

    The log's last but one write is lost, the last one is not: nobody had synced either.
    """
    disk = SimDisk()
    Store.open(DIRECTORY, OPTIONS, disk=disk).close()
    store = Store.open(DIRECTORY, OPTIONS, disk=disk)
    redo = store._engine._redo
    path, begin = f"{DIRECTORY}/{SEGMENT_NAMES[redo._slot]}", redo._offset
    before = disk.contents(path)
    store.wait_for(store.commit_run(a_run()))
    assert redo._offset - begin > UNBLANKED_BYTES
    lost = before[begin : redo._offset]
    publish(store, OF_THE_OLD_PRIMARY)
    disk = power_lost(disk)
    disk.damage(path, begin, lost)
    return disk


@pytest.mark.parametrize("idle", ["killed", "closed", "reset"])
def test_a_lost_group_does_not_come_back_behind_the_groups_of_a_later_use(idle):
    """The same groups are published once more, so that each lies where it lay before."""
    disk = lost_write()
    store = Store.open(DIRECTORY, OPTIONS, disk=disk)
    assert found(store) == []
    if idle == "reset":
        store.reset()
    if idle == "closed":
        store.close()
    else:
        disk = power_lost(disk)
    store = Store.open(DIRECTORY, OPTIONS, disk=disk)
    run = a_run()
    store.wait_for(store.commit_run(run))
    published = [run.gtid(index) for index in range(run.count)]
    assert found(store) == published
    assert found(Store.open(DIRECTORY, OPTIONS, disk=power_lost(disk))) == published


def test_no_lsn_is_given_out_twice_and_no_use_of_a_segment_begins_where_another_did():
    disk, rng = SimDisk(), random.Random(7)
    given_out, begins = 0, []
    for _ in range(30):
        store = Store.open(DIRECTORY, OPTIONS, disk=disk)
        begins.append(find_newest_segment(disk, DIRECTORY).first_lsn)
        assert begins[-1] > given_out
        for seq in range(1, rng.randrange(3)):
            publish(store, Gtid(0, 1, seq))
        if rng.random() < 0.3:
            store.reset()
            begins.append(find_newest_segment(disk, DIRECTORY).first_lsn)
        given_out = store._engine._redo.next_lsn - 1
        if rng.random() < 0.5:
            store.close()
        disk = disk.crashed(rng, keep=0)
    assert begins == sorted(set(begins))
