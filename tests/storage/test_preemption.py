"""Whoever comes in between finds everything whole: the locks of the single parts."""

import time
from unittest.mock import patch

import pytest

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid
from ibb.storage.directory import BinlogDirectory
from ibb.storage.durable import DurableOffset
from ibb.storage.log_turns import LogTurns, _Waiter
from ibb.storage.page_cache import PageCache
from ibb.storage.page_fifo import PageFifo
from ibb.storage.position import Position
from ibb.storage.redo import RedoLog
from ibb.storage.redo_record import Change, encode_single
from ibb.storage.redo_segment import find_newest_segment, read_groups

from ..faults.sim_disk import SimDisk
from .preemption import KEPT_OUT_SECONDS, Meeting, meet_everywhere, swapped

PAGE = 512


def durable(pending):
    """Return an offset with entries that wait: LSN n * 10 ends at n * 100."""
    offset = DurableOffset(Position(0, 1), BinlogState([Gtid(9, 1, 1)]))
    for number in range(1, pending + 1):
        offset.add(number * 10, Position(0, number * 100), Gtid(0, 1, number))
    return offset


def check_durable(offset, number):
    assert offset.end == Position(0, number * 100)
    assert offset.state().seq(0, 1) == number


def a_sync_and_what_is_noted_behind_it():
    offset = durable(1)
    return Meeting(
        lambda: offset.add(20, Position(0, 200), Gtid(0, 1, 2)),
        lambda: offset.synced(20),
        lambda: check_durable(offset, 2),
    )


def two_syncs():
    offset = durable(2)
    return Meeting(
        lambda: offset.synced(10), lambda: offset.synced(20), lambda: check_durable(offset, 2)
    )


def a_sync_and_a_domain_that_is_forgotten():
    offset = durable(1)
    return Meeting(
        lambda: offset.delete_domains(frozenset({9})),
        lambda: offset.synced(10),
        lambda: check_durable(offset, 1),
    )


def a_sync_and_a_look_at_the_state():
    offset = durable(1)
    offset.add(20, Position(0, 200), Gtid(1, 1, 1))
    return Meeting(offset.state, lambda: offset.synced(20), lambda: None)


def two_who_want_to_be_told():
    offset, told = durable(1), []

    def check():
        offset.synced(10)
        assert sorted(told) == [1, 2]

    return Meeting(
        lambda: offset.subscribe(lambda: told.append(1)),
        lambda: offset.subscribe(lambda: told.append(2)),
        check,
    )


def fifo_of_one_full_page():
    fifo = PageFifo(8)
    page = fifo.append(0, 0, PAGE)
    page.complete = True
    return fifo, page


def a_new_page_and_the_last_one_leaves():
    fifo, page = fifo_of_one_full_page()

    def check():
        assert len(fifo) == 1
        assert fifo.copy(0, 1) is not None
        assert fifo.copy(0, 0) is None

    return Meeting(lambda: fifo.append(0, 1, PAGE), lambda: fifo.release([page]), check)


def a_look_at_the_pages_and_a_new_one():
    fifo, _ = fifo_of_one_full_page()
    return Meeting(lambda: fifo.complete_run(1, 8), lambda: fifo.append(0, 1, PAGE), lambda: None)


def a_question_for_a_file_and_its_last_page_leaves():
    fifo, page = fifo_of_one_full_page()
    return Meeting(lambda: fifo.holds_file(0), lambda: fifo.release([page]), lambda: None)


def a_page_that_is_used_and_one_that_takes_its_room():
    cache = PageCache(PAGE)
    cache.put(0, 1, bytes(PAGE))
    return Meeting(
        lambda: cache.get(0, 1), lambda: cache.put(0, 2, bytes(PAGE)), lambda: check_cache(cache)
    )


def one_page_from_two_readers():
    cache = PageCache(4 * PAGE)
    put = lambda: cache.put(0, 1, bytes(PAGE))  # noqa: E731
    return Meeting(put, put, lambda: check_cache(cache))


def a_new_page_and_all_are_forgotten():
    cache = PageCache(4 * PAGE)
    cache.put(0, 1, bytes(PAGE))
    return Meeting(cache.clear, lambda: cache.put(0, 2, bytes(PAGE)), lambda: check_cache(cache))


def check_cache(cache):
    assert cache._bytes == sum(map(len, cache._pages.values())) <= cache._bytes_max


def check_one(found):
    assert len(found) == 1


def redo_log():
    disk = SimDisk()
    log = RedoLog(disk, "/s", 1 << 20, lambda _: None)
    log.prepare()
    log.begin_segment(1, 1, Position(0, 0))
    log.append([Change(0, 1, 0, b"first")])
    return disk, log


def a_record_while_the_log_is_synced():
    return a_sync_and(lambda log, change: log.append([change]))


def records_of_a_run_while_the_log_is_synced():
    def append(log, change):
        group = encode_single(log.next_lsn, log.synced_lsn, change)
        log.append_run([group[:10], group[10:]], len(group))

    return a_sync_and(append)


def a_sync_and(append):
    disk, log = redo_log()

    def check():
        log.sync_to(log.next_lsn)
        segment = find_newest_segment(disk, "/s")
        groups = list(read_groups(disk, "/s", segment))
        assert [change.data for group in groups for change in group.changes()] == [
            b"first",
            b"second",
        ]
        assert not log._buffered
        assert log._offset == 4096 + log.next_lsn - 1

    return Meeting(
        lambda: append(log, Change(0, 1, 5, b"second")), lambda: log.sync_to(log.next_lsn), check
    )


def two_who_want_a_sync():
    turns, working = LogTurns(), []

    def work():
        if turns.enter(1, until_synced=True):
            working.append(1)
            sleep_while(lambda: not turns._waiting and len(working) == 1)
            assert len(working) == 1, "two work at the same time"
            working.pop()
            turns.leave(written_lsn=1, synced_lsn=1, failed=False)

    return Meeting(work, work, lambda: None)


def sleep_while(condition):
    """Give another thread the time to come as far as it can."""
    deadline = time.monotonic() + 3 * KEPT_OUT_SECONDS
    while condition() and time.monotonic() < deadline:
        time.sleep(KEPT_OUT_SECONDS / 10)


def a_sync_ends_and_one_gives_up_waiting():
    turns, waiters = LogTurns(), [_Waiter(lsn, until_synced=True) for lsn in (1, 9)]
    for waiter in waiters:
        waiter.turn.acquire()
        turns._waiting.append(waiter)

    def check():
        assert waiters[1].turn.acquire(blocking=False), "nobody leads"
        assert turns._waiting == []

    def sync():
        assert turns.enter(1, until_synced=True)
        turns.leave(written_lsn=1, synced_lsn=1, failed=False)

    return Meeting(lambda: turns._withdraw(waiters[0]), sync, check)


def two_looks_at_a_directory():
    directory = BinlogDirectory(SimDisk(), "/s")
    warn = lambda: directory.oddities.add("odd")  # noqa: E731
    return Meeting(warn, warn, lambda: check_one(directory.oddities.found))


SCENES = [
    a_sync_and_what_is_noted_behind_it, two_syncs, a_sync_and_a_domain_that_is_forgotten,
    a_sync_and_a_look_at_the_state, two_who_want_to_be_told,
    a_new_page_and_the_last_one_leaves, a_look_at_the_pages_and_a_new_one,
    a_question_for_a_file_and_its_last_page_leaves,
    a_page_that_is_used_and_one_that_takes_its_room, one_page_from_two_readers,
    a_new_page_and_all_are_forgotten,
    a_record_while_the_log_is_synced, records_of_a_run_while_the_log_is_synced,
    two_who_want_a_sync, a_sync_ends_and_one_gives_up_waiting,
    two_looks_at_a_directory,
]  # fmt: skip


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
@pytest.mark.parametrize("is_swapped", [False, True], ids=["", "swapped"])
def test_nobody_finds_half_of_it(scene, is_swapped):
    with patch("ibb.storage.durable.PENDING_MAX", 1):
        assert meet_everywhere(lambda: swapped(scene()) if is_swapped else scene()) > 0
