"""What stands between a commit and its file, told from what the store does to its disk."""

import os
import threading
from dataclasses import replace

import pytest

from ibb.protocol.gtid import Gtid
from ibb.server.measured_disk import MeasuredDisk
from ibb.server.storage_figures import StorageFigures
from ibb.storage.options import REDO_SEGMENT_SIZE_MIN
from ibb.storage.redo_segment import SEGMENT_DATA_OFFSET, find_newest_segment, read_groups
from ibb.storage.store import Store
from ibb.storage.synced_note import NOTHING_SYNCED, certain_lsn

from ..integration.waiting import wait_until
from ..storage.events import transaction
from ..tiny import SMALL

# One thread does everything, and the log is synced when it is told to.
BY_HAND = replace(
    SMALL,
    background=False,
    flush_log_at_commit=0,
    flush_log_interval=1e6,
    redo_segment_size=REDO_SEGMENT_SIZE_MIN,
)
GROUP_BYTES = 2000


class Clock:
    """A moment that a test sets."""

    def __init__(self):
        self.seconds = 1000.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def directory(tmp_path):
    return str(tmp_path / "store")


@pytest.fixture
def disk(directory, clock):
    return MeasuredDisk(directory, monotonic=clock, now=clock)


@pytest.fixture
def store(directory, disk):
    with Store.open(directory, BY_HAND, disk=disk) as opened:
        yield opened


@pytest.fixture
def figures(store, directory, disk):
    return StorageFigures(store, directory, disk, BY_HAND)


def publish(store, *numbers):
    """Publish groups of these numbers; return where the last one was committed."""
    position = None
    for number in numbers:
        with store.begin() as group:
            group.write(transaction("insert", GROUP_BYTES))
            position = group.commit(Gtid(0, 1, number))
    return position


def test_the_redo_log_is_as_full_as_what_a_restart_reads(store, directory, disk, figures):
    for first in range(1, 400, 20):
        publish(store, *range(first, first + 20))
        store.sync()
        segment = find_newest_segment(disk, directory)
        read = sum(group.end_lsn - group.lsn for group in read_groups(disk, directory, segment))
        found = figures.filling(None)
        assert found.redo_used == read > 0
        assert found.redo_limit == REDO_SEGMENT_SIZE_MIN - SEGMENT_DATA_OFFSET >= read
    assert disk.checkpoints > 2


def test_each_checkpoint_is_counted_with_its_moment(store, disk, clock, figures):
    assert (disk.checkpoints, disk.checkpoint_at) == (1, 1000.0)
    clock.seconds = 2000.0
    number, used = 0, 0
    while (now := figures.filling(None).redo_used) >= used:
        assert (disk.checkpoints, disk.checkpoint_at) == (1, 1000.0)
        number, used = number + 1, now
        publish(store, number)
        store.sync()
    assert (disk.checkpoints, disk.checkpoint_at) == (2, 2000.0)


def test_what_is_not_in_the_files_yet_is_what_waits_in_memory(store, figures):
    page, most = BY_HAND.page_size, 0
    for first in range(1, 200, 10):
        publish(store, *range(first, first + 10))
        store.sync()
        waiting = len(store._engine._fifo)
        found = figures.filling(None)
        # A page that was written before it was full counts as written.
        assert (waiting - 2) * page < found.page_fifo <= waiting * page
        assert found.page_fifo_limit == BY_HAND.fifo_pages_max * page
        most = max(most, waiting)
    assert most > 2


def test_an_opening_leaves_nothing_waiting(directory, store, figures):
    publish(store, *range(1, 30))
    store.close()
    disk = MeasuredDisk(directory)
    with Store.open(directory, BY_HAND, disk=disk) as again:
        assert StorageFigures(again, directory, disk, BY_HAND).filling(None).page_fifo == 0


def test_a_store_that_has_synced_nothing_yet_is_known_to_wait_for_nothing(directory, store):
    publish(store, *range(1, 30))
    store.close()
    disk = MeasuredDisk(directory)
    options = replace(BY_HAND, format_description="upstream")  # an opening writes nothing then
    with Store.open(directory, options, disk=disk) as again:
        assert certain_lsn(disk, directory) == NOTHING_SYNCED
        figures = StorageFigures(again, directory, disk, options)
        found = figures.filling(None)
        assert (found.redo_used, found.page_fifo, found.unsynced) == (0, 0, 0)
        position = publish(again, 30)
        assert figures.filling(position).unsynced > GROUP_BYTES
        again.sync()
        found = figures.filling(position)
        assert found.redo_used > GROUP_BYTES
        assert found.unsynced == 0


def test_a_history_that_begins_anew_is_measured_from_its_beginning(store, disk, figures):
    publish(store, *range(1, 30))
    store.switch_file()
    publish(store, 30)
    store.reset()
    assert disk.in_files.file_no == 0
    publish(store, *range(1, 10))
    store.sync()
    page = BY_HAND.page_size
    waiting = len(store._engine._fifo) * page
    assert waiting - 2 * page < figures.filling(None).page_fifo <= waiting


def test_a_backup_is_not_measured(store, disk, tmp_path):
    publish(store, *range(1, 30))
    store.sync()
    before = disk.in_files, disk.binlog_syncs.counted()
    store.backup(tmp_path / "copy")
    assert (disk.in_files, disk.binlog_syncs.counted()) == before


def test_what_a_crash_could_take_is_counted_until_it_is_synced(store, figures):
    position = publish(store, 1, 2)
    unsynced = figures.filling(position).unsynced
    assert unsynced == position.offset - store.end().offset > 2 * GROUP_BYTES
    assert figures.filling(None).unsynced == 0  # nobody tells how far it is written
    store.sync()
    assert figures.filling(position).unsynced == 0


def test_a_sync_is_measured_and_seen_while_it_hangs(store, disk, clock, monkeypatch):
    hangs, sync = threading.Event(), os.fdatasync

    def hanging(descriptor):
        assert hangs.wait(60)
        sync(descriptor)

    monkeypatch.setattr(os, "fdatasync", hanging)
    before = disk.redo_syncs.counted()
    publish(store, 1)
    syncing = threading.Thread(target=store.sync)
    syncing.start()
    clock.seconds += 3
    wait_until(lambda: disk.longest_wait() in (0.0, 3.0) and disk._waiting, 30)
    clock.seconds += 4
    assert disk.longest_wait() in (4.0, 7.0)  # it began before or after the clock was set
    hangs.set()
    syncing.join()
    assert disk.longest_wait() == 0
    after = disk.redo_syncs.counted()
    assert after.up_to[-1] == before.up_to[-1] + 1
    assert after.seconds - before.seconds in (4.0, 7.0)
