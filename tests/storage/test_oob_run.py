"""Pieces that are written many at a time are those that one by one would be."""

import random
import tracemalloc
from dataclasses import replace

import pytest

from ibb.protocol.event import EventType, build_event
from ibb.protocol.gtid import Gtid
from ibb.storage import Store
from ibb.storage.errors import GroupError, StoreFull
from ibb.storage.group_committer import GroupCommitter
from ibb.storage.new_record import NewRecord
from ibb.storage.oob_forest import OobForest
from ibb.storage.oob_run import plan_run, start_behind
from ibb.storage.options import StoreOptions
from ibb.storage.page_fifo import PageFifo
from ibb.storage.position import Position
from ibb.storage.record import RecordType, encode_oob_header
from ibb.storage.verify.directory_check import verify_directory
from ibb.storage.verify.finding import Severity

from ..faults.sim_disk import SimDisk
from .events import annotation, query, rows_event, xid
from .test_commit_run import files_of

DIRECTORY = "/s"
SHAPES = [(512, 16, 2), (512, 64, 4), (1024, 64, 64), (4096, 16, 8), (16384, 64, 4)]


def options_for(page_size, pages, interval, piece_size=1000):
    return StoreOptions(
        page_size=page_size, max_binlog_size=page_size * pages,
        state_interval=page_size * interval, redo_segment_size=8 << 20, fifo_pages_max=8,
        oob_piece_size=piece_size, format_description="upstream", background=False,
    )  # fmt: skip


def placed(event):
    return event[:13] + b"\x12\x34\x56\x78" + event[17:]


def random_events(rng, page_size):
    """Return the events of a transaction; statements stand between the rows."""
    events = [query("insert")]
    for _ in range(rng.choice((1, 5, 30))):
        size = rng.choice((1, 30, 300, page_size, 3 * page_size))
        kind = rng.choice((rows_event, rows_event, lambda n: annotation("a" * n)))
        events.append(kind(rng.randrange(size) + 1))
        if rng.random() < 0.1:
            events.append(query("update"))
    return [*events, xid(7)]


def publish(store, rng, groups, page_size):
    """Write groups side by side, cut anywhere, some of them back to a savepoint; return them."""
    made = []
    for seq in range(1, groups + 1):
        events = random_events(rng, page_size)
        with store.begin() as group:
            first = rng.choice((0, 0, 1, len(events) // 2))
            write_cut(group, rng, b"".join(map(placed, events[:first])), page_size)
            if rng.random() < 0.3:
                mark = group.savepoint()
                given_up = random_events(rng, page_size)[:-1]
                write_cut(group, rng, b"".join(map(placed, given_up)), page_size)
                group.rollback_to(mark)
            write_cut(group, rng, b"".join(map(placed, events[first:])), page_size)
            group.commit(Gtid(0, 1, seq), wait=False)
        made.append((Gtid(0, 1, seq), b"".join(events)))
    return made


def write_cut(group, rng, data, page_size):
    """Write events in pieces, in buffers that are used for something else at once."""
    at = 0
    while at < len(data):
        size = rng.choice((1, 100, page_size, 20 * page_size, len(data)))
        buffer = bytearray(data[at : at + size])
        group.write(rng.choice((bytes, bytearray, memoryview))(buffer))
        buffer[:] = b"?" * len(buffer)
        at += size


def contents(store):
    store.sync()
    return [
        (group.gtid, b"".join(group.pieces())[len(group.head) :])
        for group in store.reader()
        if group.gtid is not None
    ]


def errors_of(disk):
    found = verify_directory(disk, DIRECTORY)
    return [finding for finding in found if finding.kind.severity is Severity.ERROR]


@pytest.mark.kernel
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(4))
def test_the_files_are_the_same_byte_by_byte(shape, seed, monkeypatch):
    found = []
    for is_run in (True, False):
        if not is_run:
            monkeypatch.setattr(GroupCommitter, "_write_run", lambda *_: 0)
        rng, disk = random.Random(f"{shape} {seed}"), SimDisk()
        options = options_for(*shape, piece_size=rng.choice((256, 700, 1000, 3000)))
        with Store.open(DIRECTORY, options, disk=disk) as store:
            made = publish(store, rng, 12, shape[0])
            assert contents(store) == made
        assert errors_of(disk) == []
        found.append(files_of(disk))
    assert found[0] == found[1]


def test_most_pieces_go_together(monkeypatch):
    written, write_run = [], GroupCommitter._write_run

    def noted(*arguments):
        written.append(write_run(*arguments))
        return written[-1]

    monkeypatch.setattr(GroupCommitter, "_write_run", noted)
    with Store.open(DIRECTORY, options_for(1024, 512, 64), disk=SimDisk()) as store:
        events = query("insert") + rows_event(100) * 2000
        with store.begin() as group:
            group.write(events)
            group.write(xid(7))
            group.commit(Gtid(0, 1, 1))
    assert sum(written) > 0.8 * len(events)
    assert len(written) < len(events) / 1000 / 4


@pytest.mark.parametrize(
    ("page_size", "pages", "interval", "redo_bytes"),
    [(512, 64, 1, 256 << 10), (512, 1024, 8, 256 << 10), (4096, 64, 64, 256 << 10)],
)
def test_no_more_is_planned_than_is_written(page_size, pages, interval, redo_bytes, monkeypatch):
    """Near a state, a file's end or the end of the log: planning again would never end."""
    planned, written = 0, 0
    write_run = GroupCommitter._write_run

    def counted(committer, forest, piece_size, pieces):
        nonlocal planned, written
        done = write_run(committer, forest, piece_size, pieces)
        planned, written = planned + len(pieces), written + done
        return done

    monkeypatch.setattr(GroupCommitter, "_write_run", counted)
    settings = replace(options_for(page_size, pages, interval, 256), redo_segment_size=redo_bytes)
    with Store.open(DIRECTORY, settings, disk=SimDisk()) as store, store.begin() as group:
        group.write(query("insert") + rows_event(100) * 3000 + xid(7))
        group.commit(Gtid(0, 1, 1))
    assert planned <= 1.5 * written + 4096


def test_a_run_leaves_as_few_pages_in_memory_as_one_piece_after_the_other(monkeypatch):
    most = 0
    append = PageFifo.append

    def noted(fifo, *place):
        nonlocal most
        page = append(fifo, *place)
        most = max(most, len(fifo))
        return page

    monkeypatch.setattr(PageFifo, "append", noted)
    settings = replace(options_for(512, 4096, 4096, 1000), fifo_pages_max=16)
    with Store.open(DIRECTORY, settings, disk=SimDisk()) as store, store.begin() as group:
        group.write(query("insert") + rows_event(100) * 3000 + xid(7))
        group.commit(Gtid(0, 1, 1))
    assert 16 <= most <= 16 + 4  # a piece goes over the limit by its own pages


@pytest.mark.parametrize("page_size", [512, 1024])
def test_where_the_next_record_begins_is_told_as_the_writer_does(page_size):
    options = options_for(page_size, 4096, 4096)
    with Store.open(DIRECTORY, options, disk=SimDisk()) as store:
        engine = store._engine
        for size in (*range(2, 3 * page_size, 7), *range(page_size - 20, page_size + 20)):
            places = []
            for contents in (b"o" * size, b"next"):
                engine.append(NewRecord(RecordType.OOB, contents, on_start=places.append))
            assert places[1].offset == start_behind(places[0].offset, size, page_size)
            assert places[1].file_no == places[0].file_no


def test_a_plan_changes_nothing_and_links_what_will_be_written():
    forest, one_by_one = OobForest(), OobForest()
    forest.add(Position(3, 600))
    one_by_one.add(Position(3, 600))
    pieces = memoryview(bytes(range(250)) * 20)
    run = plan_run(forest, Position(3, 1024), 512, 700, pieces)
    assert forest.save() == one_by_one.save()
    at, start = 0, 1024
    assert run.file_no == 3
    for number, (begin, end) in enumerate(zip(run.bounds, run.bounds[1:], strict=False)):
        head = encode_oob_header(one_by_one.next_node())
        data = head + pieces[at : at + 700]
        assert run.heads[run.head_bounds[number] : run.head_bounds[number + 1]] == head
        assert pieces[begin:end] == pieces[at : at + 700]
        assert run.starts[number] == start
        one_by_one.add(Position(3, start))
        at, start = at + 700, start_behind(start, len(data), 512)
    assert at >= len(pieces)
    assert run.starts[-1] == start


def test_a_run_without_room_leaves_the_group_as_it_was(monkeypatch):
    disk = SimDisk()
    options = options_for(512, 16, 2, piece_size=256)
    with Store.open(DIRECTORY, options, disk=disk) as store:
        wanted = query("insert") + rows_event(100) * 300
        with store.begin() as group:
            group.write(wanted)
            savepoint = group.savepoint()
            disk.capacity = disk.used
            with pytest.raises(StoreFull):
                group.write(rows_event(200) * 400)
            with pytest.raises(GroupError, match="roll it back"):
                group.write(xid(7))
            disk.capacity = None
            group.rollback_to(savepoint)
            group.write(rows_event(9) + xid(7))
            group.commit(Gtid(0, 1, 1))
        assert contents(store) == [(Gtid(0, 1, 1), wanted + rows_event(9) + xid(7))]
    assert errors_of(disk) == []


def test_an_event_that_ends_the_group_is_found_among_plain_ones():
    with Store.open(DIRECTORY, options_for(1024, 64, 64), disk=SimDisk()) as store:
        more = build_event(EventType.TABLE_MAP, b"12345678", timestamp=1, server_id=1)
        with store.begin() as group:
            group.write(query("insert") + rows_event(10))
            with pytest.raises(GroupError, match="behind the end"):
                group.write(rows_event(5000) + xid(7) + more)


def test_a_write_of_any_size_is_kept_in_little_memory(tmp_path):
    with Store.open(tmp_path, options_for(16384, 4096, 128, 32 << 10)) as store:
        rows = rows_event(8000) * 2000
        with store.begin() as group:
            group.write(query("insert"))
            tracemalloc.start()
            group.write(rows)
            _, most = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            group.write(xid(7))
            group.commit(Gtid(0, 1, 1))
        assert contents(store) == [(Gtid(0, 1, 1), query("insert") + rows + xid(7))]
    assert most < 6 << 20  # the log keeps up to 4 MiB; a copy of all would be 16
