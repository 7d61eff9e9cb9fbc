"""Runs of pages: read once for all who pass, and no others than `PageSource` would give."""

import os
import random
from dataclasses import replace

import pytest

from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.file_name import binlog_name
from ibb.storage.page_room import PageRoom
from ibb.storage.page_runs import LONG_RUN_BYTES, OVERLAP_BYTES, RUN_BYTES, PageRuns
from ibb.storage.read_only import ReadOnlyHistory
from ibb.storage.record_walker import RecordWalker

from ..faults.sim_disk import SimDisk
from .events import transaction

DIRECTORY = "/s"


@pytest.fixture
def disk():
    """Hold a file of 1 MiB in pages of 4 KiB, and the beginning of another."""
    disk = SimDisk()
    options = StoreOptions(page_size=4096, max_binlog_size=1 << 20, redo_segment_size=1 << 20)
    with Store.open(DIRECTORY, options, disk=disk) as store:
        for number in range(1, 28):
            with store.begin() as group:
                group.write(transaction(f"{number}", 40_000))
                group.commit(Gtid(0, 1, number), wait=False)
    return disk


@pytest.fixture
def history(disk):
    history = ReadOnlyHistory(disk, DIRECTORY)
    yield history
    history.close()


def run_of(runs, page_no, known_end=0, file_no=0):
    return runs.load(runs.header(file_no), page_no, known_end)


def test_runs_hold_the_pages_that_are_there(history):
    runs = PageRuns(history)
    for file_no in (0, 1):
        header, page_no = runs.header(file_no), 1
        while (run := runs.load(header, page_no, 0)) is not None:
            for number in range(run.first, run.first + run.pages):
                read = history.pages.read_page(file_no, number)
                at = (number - run.first) * 4096
                is_last = number == run.first + run.pages - 1
                assert (run.visible if is_last else 4092) == read.end
                assert run.data[at : at + read.end] == read.data[: read.end]
            page_no = run.first + run.pages
        assert history.pages.read_page(file_no, page_no).end == 0


def test_in_room_of_ones_own_they_are_the_same_and_more_of_them(history):
    runs, room = PageRuns(history), PageRoom(LONG_RUN_BYTES, 2)
    shared, own, known = [], [], None
    for file_no in (0, 1):
        header = runs.header(file_no)
        for pages, rooms in ((shared, False), (own, True)):
            page_no, count = 1, 0
            while True:
                part = room.free([known] if known else []) if rooms else None
                run = runs.load(header, page_no, 0, room=part)
                if run is None:
                    break
                count, known = count + 1, run if rooms else known
                size = run.page_size
                for number in range(page_no - run.first, run.pages):
                    page = bytes(run.data[number * size : (number + 1) * size])
                    pages.append((file_no, run.first + number, page[: run.visible]))
                page_no = run.first + run.pages
            pages.append(count)
    found = [[item for item in pages if isinstance(item, tuple)] for pages in (shared, own)]
    assert found[0] == found[1]
    assert len(found[0]) > 256
    assert own.count(1) < len(own)
    counts = [next(item for item in pages if isinstance(item, int)) for pages in (shared, own)]
    assert counts[1] < counts[0]


def test_what_lies_in_room_that_is_in_use_stays(history):
    runs, room = PageRuns(history), PageRoom(LONG_RUN_BYTES, 3)
    header, used = runs.header(0), []
    for page_no in (1, 60, 120, 180):
        used = used[-2:]
        before = [bytes(run.data) for run in used]
        used.append(runs.load(header, page_no, 0, room=room.free(used)))
        assert [bytes(run.data) for run in used[:-1]] == before
        assert used[-1].first == page_no
    with pytest.raises(StopIteration):
        room.free(used[-3:])


def test_pages_are_read_once_for_all_who_pass_until_nobody_does(disk, history, monkeypatch):
    reads, read = [], PageRuns._read
    monkeypatch.setattr(PageRuns, "_read", lambda self, *a: reads.append(a) or read(self, *a))
    runs = PageRuns(history)
    for _ in range(2):
        runs.join()
    first = run_of(runs, 1)
    assert first.pages == (RUN_BYTES + OVERLAP_BYTES) // 4096 - 1
    assert run_of(runs, 40) is first
    assert len(reads) == 1
    runs.leave()
    assert run_of(runs, 40) is first
    runs.leave()
    assert run_of(runs, 40) is not first
    assert len(reads) == 2


def test_nothing_of_a_history_that_was_begun_anew_is_found_again():
    """One has joined and holds nothing yet while the store is reset: there is no hold."""
    options = StoreOptions(page_size=4096, max_binlog_size=1 << 20, redo_segment_size=1 << 20)
    with Store.open(DIRECTORY, options, disk=SimDisk()) as store:
        runs, seen = PageRuns(store), []
        runs.join()
        for text in ("old", "new"):
            for number in range(1, 40):
                with store.begin() as group:
                    group.write(transaction(f"{text} {number} ", 10_000))
                    group.commit(Gtid(0, 1, number), wait=False)
            store.sync()
            store._engine.settle()
            seen.append(run_of(runs, 1))
            assert run_of(runs, 1) is seen[-1]
            if text == "old":
                store.reset()
        assert b"old 1 " in seen[0].data
        assert b"new 1 " in seen[1].data
        assert b"old 1 " not in seen[1].data


def test_of_a_file_that_is_lent_only_whole_pages_of_the_history_are_to_be_read(tmp_path):
    options = StoreOptions(page_size=4096, max_binlog_size=1 << 20, redo_segment_size=1 << 20)
    with Store.open(tmp_path / "s", options) as store:
        for number in range(1, 40):
            with store.begin() as group:
                group.write(transaction(f"{number}", 40_000))
                group.commit(Gtid(0, 1, number))
        runs, generation = PageRuns(store), store.generation
        assert store.end().file_no == 1
        for file_no, whole in ((0, 256), (1, store.end().offset // 4096)):
            header = runs.header(file_no)
            walker = RecordWalker()
            walker.seek(file_no, 9 * 4096 + 100)
            with runs.lent(header, walker, generation) as lent:
                assert lent[:2] == (file_no, 4096)
                assert os.fstat(lent.descriptor).st_size == store._disk.size(
                    f"{tmp_path}/s/{binlog_name(file_no)}"
                )
                assert lent.stop == whole
            with runs.lent(header, walker, generation + 1) as lent:
                assert lent.stop == 0
        with runs.lent(replace(header, file_no=77), walker, generation) as lent:
            assert (lent.descriptor, lent.stop) == (-1, 0)


def test_who_has_no_descriptor_lends_none(history):
    runs = PageRuns(history)
    with runs.lent(runs.header(0), RecordWalker(), history.generation) as lent:
        assert (lent.descriptor, lent.stop) == (-1, 0)


def test_no_more_is_kept_than_may_be(history):
    runs = PageRuns(history, bytes_max=RUN_BYTES * 2)
    runs.join()
    kept = [run_of(runs, page_no) for page_no in (1, 70, 130)]
    assert run_of(runs, 130) is kept[2]
    assert run_of(runs, 1) is not kept[0]


def test_a_record_that_no_run_holds_gets_a_longer_one(history):
    runs = PageRuns(history)
    known = run_of(runs, 10)
    end = known.first + known.pages
    longer = run_of(runs, 10, known_end=end)
    assert longer.first == 10
    assert longer.first + longer.pages > end


def test_behind_all_whole_pages_that_are_known_comes_the_one_that_grows(history):
    runs, end = PageRuns(history), history.end()
    last, filled = divmod(end.offset, 4096)
    assert filled > 0
    known = run_of(runs, last - 3, file_no=end.file_no)
    assert known.first + known.pages == last
    more = run_of(runs, last - 3, known_end=last, file_no=end.file_no)
    assert (more.first, more.first + more.pages, more.visible) == (last - 3, last + 1, filled)


def test_a_run_ends_before_a_damaged_page(disk, history):
    disk.damage(f"{DIRECTORY}/binlog-000000.ibb", 33 * 4096 + 7, b"\x01\x02\x03")
    runs = PageRuns(history)
    run = run_of(runs, 5)
    assert run.first <= 5
    assert 31 <= run.first + run.pages <= 33
    assert run_of(runs, 33) is None


def test_pages_that_are_not_written_yet_come_from_who_holds_them():
    options = StoreOptions(page_size=4096, max_binlog_size=1 << 20, redo_segment_size=1 << 20)
    rng = random.Random(1)
    with Store.open(DIRECTORY, options, disk=SimDisk()) as store:
        for number in range(1, 40):
            with store.begin() as group:
                group.write(transaction(f"{number}", rng.randrange(9000)))
                group.commit(Gtid(0, 1, number))
        end = store.end()
        runs, page_no = PageRuns(store), 1
        while page_no * 4096 < end.offset:
            run = run_of(runs, page_no)
            page_no = run.first + run.pages
        assert (page_no - 1) * 4096 + run.visible == end.offset
