"""A restart reads what it must, whatever number of files there is and however long they are."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.directory import BinlogDirectory
from ibb.storage.file_name import parse_binlog_name
from ibb.storage.redo_segment import SEGMENT_NAMES

from ..faults.sim_disk import Fault, PowerLost, SimDisk
from ..simulation.disk_steps import lose_last_pages
from .events import transaction
from .state_of_size import entries_of_size

DIRECTORY = "/s"
PAGE = 512
FILE_PAGES = 4096
OPTIONS = StoreOptions(
    page_size=PAGE,
    max_binlog_size=FILE_PAGES * PAGE,
    state_interval=8 * PAGE,
    redo_segment_size=256 << 10,
    background=False,
)
READS_MAX = 60  # a bisection of 4096 pages, two scans of a state interval, headers, the redo log


def killed(files, groups=20, *, prepared=False):
    """Return the disk of a store that was killed with *groups* groups in its last file."""
    disk = SimDisk()
    store = Store.open(DIRECTORY, OPTIONS, disk=disk)
    for seq in range(1, files + groups):
        with store.begin() as group:
            group.write(transaction(f"insert {seq % 7}"))
            group.commit(Gtid(0, 1, (1 << 20) + seq))
        if seq < files:
            store.switch_file()
    disk.end_process()
    disk.log.clear()
    return disk


def touched(disk):
    """Return which binlog files were opened or changed since the log was cleared."""
    return {op.path.rpartition("-")[2][:6] for op in disk.log if op.path.endswith(".ibb")}


def test_the_number_of_files_makes_no_difference():
    calls = []
    for files in (3, 30):
        disk = killed(files)
        Store.open(DIRECTORY, OPTIONS, disk=disk)
        calls.append(Counter(op.kind for op in disk.log))
        newest = files - 1
        assert touched(disk) <= {f"{number:06d}" for number in range(newest - 1, newest + 2)}
    assert calls[0] == calls[1]


def test_what_lies_behind_the_end_of_data_is_not_read_page_by_page():
    disk = killed(3)
    Store.open(DIRECTORY, OPTIONS, disk=disk)
    assert Counter(op.kind for op in disk.log)["read"] < READS_MAX


def test_nor_does_anybody_else_read_it():
    disk = killed(3)
    directory = BinlogDirectory(disk, DIRECTORY)
    assert directory.last_file() == 2
    assert Counter(op.kind for op in disk.log)["read"] < READS_MAX


def test_a_used_page_behind_a_hole_is_noticed_all_the_same():
    disk = killed(3)
    Store.open(DIRECTORY, OPTIONS, disk=disk).close()
    disk.damage(f"{DIRECTORY}/binlog-000002.ibb", 3000 * PAGE, b"\x41")
    assert BinlogDirectory(disk, DIRECTORY).listing.last_page == 3000


def test_older_files_that_cannot_be_read_do_not_hinder_a_restart():
    disk = killed(30)
    disk.faults.append(
        Fault(
            lambda op: op.path.endswith(".ibb") and op.path < f"{DIRECTORY}/binlog-000028", times=99
        )
    )
    store = Store.open(DIRECTORY, OPTIONS, disk=disk)
    assert disk.struck == 0
    assert store.state().seq(0, 1) == (1 << 20) + 49


THREE_FILES = replace(OPTIONS, max_binlog_size=16 * PAGE, state_interval=64 * PAGE)


def publish_records_in_three_files(disk):
    """
    Let states fill all but a page of each file, so that a record passes through a whole one.

    Returns:
        How many groups were acknowledged before power was lost, if it was.
    """
    acknowledged, files_begun = 0, set()
    try:
        with Store.open(DIRECTORY, THREE_FILES, disk=disk) as store:
            store.reset(BinlogState(entries_of_size(14 * (PAGE - 4) - 7)))
            for seq in range(1, 6):
                before = store.end().file_no
                with store.begin() as group:
                    group.write(transaction("x" * 1200))
                    group.commit(Gtid(7, 1, seq))
                acknowledged = seq
                files_begun.add(store.end().file_no - before)
        assert max(files_begun) >= 2
    except PowerLost:
        pass
    return acknowledged


def test_a_record_in_three_files_survives_a_loss_of_power_at_any_sync():
    undisturbed = SimDisk()
    publish_records_in_three_files(undisturbed)
    syncs = [op.number for op in undisturbed.log if op.kind == "sync" and ".ibb" in op.path]
    for crash_at in syncs[len(syncs) // 2 :: 2]:
        disk = SimDisk()
        disk.crash_at = crash_at
        acknowledged = publish_records_in_three_files(disk)
        for seed in range(4):
            after = disk.crashed(random.Random(seed), 0.5)
            with Store.open(DIRECTORY, THREE_FILES, disk=after) as store:
                found = [group.gtid.seq for group in store.reader() if group.gtid]
                assert found == list(range(1, len(found) + 1))
                assert len(found) >= acknowledged


@pytest.mark.parametrize("pages", range(1, 4))
def test_a_record_in_three_files_that_lost_its_end_is_as_if_never_written(pages):
    disk = SimDisk()
    publish_records_in_three_files(disk)
    for name in SEGMENT_NAMES:
        disk.remove(f"{DIRECTORY}/{name}")
    lose_last_pages(disk, pages)
    with Store.open(DIRECTORY, THREE_FILES, disk=disk) as store:
        found = [group.gtid.seq for group in store.reader() if group.gtid]
        assert found == [1, 2, 3, 4]
        with store.begin() as group:
            group.write(transaction("again"))
            group.commit(Gtid(7, 1, 5))
    with Store.open(DIRECTORY, THREE_FILES, disk=disk) as store:
        assert [group.gtid.seq for group in store.reader() if group.gtid] == [1, 2, 3, 4, 5]


def test_who_sees_a_file_knows_that_the_last_but_one_before_it_is_on_the_disk():
    disk = SimDisk()
    publish_records_in_three_files(disk)
    unsynced, made = set(), 0
    for op in disk.log:
        number = parse_binlog_name(op.path.rpartition("/")[2])
        if number is None:
            continue
        if op.kind == "write":
            unsynced.add(number)
        elif op.kind == "sync":
            unsynced.discard(number)
        elif op.kind == "allocate":
            made += 1
            assert min(unsynced, default=number) >= number - 1
    assert made > 5
