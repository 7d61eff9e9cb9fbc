"""What a record takes is never more than was told before it was written."""

from array import array
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent
from ibb.storage import Store, StoreOptions
from ibb.storage.errors import GroupError, StateTooLarge
from ibb.storage.file_header import FileHeader
from ibb.storage.file_shape import FileShape
from ibb.storage.new_record import NewRecord
from ibb.storage.options import STATE_BYTES_MAX
from ibb.storage.page_fifo import PageFifo
from ibb.storage.record import NO_LISTS, RecordType
from ibb.storage.record_bound import bound_of, run_bound
from ibb.storage.record_run import RecordRun
from ibb.storage.redo_record import group_size
from ibb.storage.writer import STATE_ENTRY_BYTES_MAX, Writer
from ibb.storage.writer_place import WriterPlace

from ..faults.sim_disk import SimDisk
from .events import transaction, xid
from .runs import run_of
from .state_of_size import entries_of_size

PAGE = 512
LOG_BYTES = 4 << 20


class CountingLog:
    """Keeps the size of what is logged."""

    next_lsn = 1
    takes_small = False

    def __init__(self) -> None:
        self.bytes = 0

    def append(self, changes):
        self.bytes += group_size(changes)
        return 1


class TooManyPagesError(Exception):
    pass


class BoundedFifo(PageFifo):
    def append(self, file_no, page_no, page_size):
        if self.is_full:
            raise TooManyPagesError
        return super().append(file_no, page_no, page_size)


class Files:
    def __init__(self, shape):
        self.shape = shape

    def next_file(self, file_no):
        return self.shape

    def file_entered(self, file_no):
        assert file_no


def writer_with(shape, state, differential, log, fifo):
    header = FileHeader(
        file_no=0, page_size=PAGE, page_count=shape.pages, lsn=1, state_interval=shape.interval,
        oob_reference=0,
    )  # fmt: skip
    place = WriterPlace(header, 1, None, BinlogState(state), BinlogState(differential))
    return Writer(place, fifo, log, Files(shape))


@given(
    pages=st.sampled_from([4, 5, 16, 33, 64]),
    interval=st.sampled_from([0, 1, 2, 8, 16, 64]),
    state=st.integers(40, 40 * PAGE),
    before=st.lists(st.integers(1, 3000), max_size=4),
    record=st.integers(1, 16 * PAGE),
    with_gtid=st.booleans(),
    checkpointed=st.booleans(),
)
@example(
    pages=16,
    interval=64,
    state=15 * 508 - 520,
    before=[],
    record=600,
    with_gtid=True,
    checkpointed=True,
)
@example(
    pages=16,
    interval=4,
    state=4 * 508 - 30,
    before=[100],
    record=1500,
    with_gtid=True,
    checkpointed=True,
)
def test_no_record_takes_more_than_its_bound(
    pages, interval, state, before, record, with_gtid, checkpointed
):
    shape = FileShape(pages, PAGE, interval)
    log, fifo = CountingLog(), BoundedFifo(1 << 30)
    entries = entries_of_size(state)
    writer = writer_with(shape, entries, entries[: len(entries) // 2], log, fifo)
    for size in before:
        writer.append(NewRecord(RecordType.OOB, bytes(size)))
    gtid = Gtid(7, 77, 1 << 40) if with_gtid else None
    records = [NewRecord(RecordType.OOB, bytes(size)) for size in before[:1]]
    records.append(NewRecord(RecordType.COMMIT, bytes(record), gtid))
    bytes_before, pages_before = log.bytes, len(fifo)
    try:
        bound = bound_of(writer, records, shape, LOG_BYTES)
    except GroupError:
        fifo.pages_max = pages_before + LOG_BYTES // PAGE
        with pytest.raises(TooManyPagesError):
            writer.append(*records)
        return
    if checkpointed and writer.tail is not None:
        writer.tail.flushed_clean = True
    writer.append(*records)
    assert log.bytes - bytes_before <= bound.redo_bytes <= LOG_BYTES
    assert len(fifo) - pages_before <= bound.pages


def test_what_would_not_end_is_refused_at_once():
    """A byte of it fits in each of thousands of files, behind a state that fills the rest."""
    shape = FileShape(200, PAGE, 0)
    state = entries_of_size(199 * 508 - 199 * 3 - 4)
    log, fifo = CountingLog(), BoundedFifo(1 << 30)
    writer = writer_with(shape, state, [], log, fifo)
    writer.append(NewRecord(RecordType.OOB, b"x"))
    used = log.bytes
    with pytest.raises(GroupError, match="too large: too many"):
        bound_of(writer, [NewRecord(RecordType.OOB, bytes(4000))], shape, LOG_BYTES)
    assert log.bytes == used


@pytest.mark.parametrize("spare", [508, 512, 520, 533, 555])
@pytest.mark.parametrize("size", [600, 1500])
def test_a_store_whose_states_almost_fill_its_files_goes_on(spare, size):
    options = StoreOptions(
        page_size=PAGE, max_binlog_size=PAGE * 16, state_interval=PAGE * 64, oob_piece_size=4000,
        redo_segment_size=1 << 20, background=False,
    )  # fmt: skip
    with Store.open("/s", options, disk=SimDisk()) as store:
        store.reset(BinlogState(entries_of_size(15 * 508 - spare)))
        for number in range(1, 40):
            with store.begin() as group:
                group.write(transaction("x" * size))
                group.commit(Gtid(7, 1, number))
        assert store.state().seq(7, 1) == 39


def test_behind_the_largest_state_that_is_taken_groups_can_be_written():
    """RESET MASTER deletes everything first: what it takes must not shut the store."""
    options = StoreOptions(max_binlog_size=4 << 20, redo_segment_size=8 << 20, background=False)
    most = STATE_BYTES_MAX // STATE_ENTRY_BYTES_MAX - 2
    for format_description in ("own", "upstream"):
        disk, how = SimDisk(), replace(options, format_description=format_description)
        with Store.open("/s", how, disk=disk) as store:
            publish(store, Gtid(0, 1, 1))
            with pytest.raises(StateTooLarge):
                store.reset(BinlogState([Gtid(domain, 1, 1) for domain in range(most + 1)]))
            assert str(store.state()) == "0-1-1"
            store.reset(BinlogState([Gtid(domain, 1, 1) for domain in range(most)]))
            publish(store, Gtid(5, 1, 2))
        with Store.open("/s", how, disk=disk) as store:
            publish(store, Gtid(6, 1, 2))
            assert len(store.state()) == most


def test_a_state_that_has_grown_too_large_keeps_no_store_shut():
    options = StoreOptions(
        page_size=PAGE, max_binlog_size=1 << 20, redo_segment_size=256 << 10, background=False
    )
    disk = SimDisk()
    with Store.open("/s", options, disk=disk) as store:
        domains = fill(store)
        with pytest.raises(GroupError, match="too large: too many"):
            store.switch_file()
    with Store.open("/s", options, disk=disk) as store:
        assert len(store.state()) == domains
        store.reset()
        publish(store, Gtid(0, 1, 1))
        assert len(store.state()) == 1


def fill(store):
    """Publish groups of a new domain each until one is refused; return how many were not."""
    domain = 0
    with suppress(GroupError):
        while True:
            publish(store, Gtid(domain, 1, 1))
            domain += 1
    return domain


def publish(store, gtid):
    with store.begin() as group:
        group.write(transaction(str(gtid)))
        group.commit(gtid)


class RunLog(CountingLog):
    synced_lsn = 1

    def append_run(self, groups, size):
        assert sum(map(len, groups)) == size
        self.bytes += size
        return 1


@given(
    page_size=st.sampled_from([512, 1024, 4096, 16384]),
    sizes=st.lists(st.integers(1, 1300), min_size=1, max_size=300),
    one_size=st.none() | st.integers(60, 150),
    before=st.integers(0, 3000),
    checkpointed=st.booleans(),
)
@example(page_size=1024, sizes=[1] * 300, one_size=65, before=1, checkpointed=False)
@example(page_size=512, sizes=[1] * 300, one_size=80, before=1, checkpointed=False)
def test_no_run_takes_more_than_its_bound(page_size, sizes, one_size, before, checkpointed):
    log, fifo = RunLog(), PageFifo(1 << 30)
    shape = FileShape(10_000, page_size, 0)
    header = FileHeader(
        file_no=0, page_size=page_size, page_count=shape.pages, lsn=1, state_interval=0,
        oob_reference=0,
    )  # fmt: skip
    place = WriterPlace(header, 1, None, BinlogState(), BinlogState())
    writer = Writer(place, fifo, log, Files(shape))
    writer.append(NewRecord(RecordType.OOB, bytes(before + 1)))
    if checkpointed and writer.tail is not None:
        writer.tail.flushed_clean = True
    sizes = sizes if one_size is None else [one_size] * len(sizes)
    bounds = array("q", accumulate(sizes, initial=0))
    data = memoryview(bytes(bounds[-1]))
    run = RecordRun(RecordType.COMMIT, NO_LISTS, None, data, bounds, 0, len(sizes))
    used = log.bytes
    assert writer.append_run(run) is not None
    assert run.next == len(sizes)
    size = bounds[-1] + len(sizes) * len(NO_LISTS)
    assert log.bytes - used <= run_bound(len(sizes), size, page_size).redo_bytes


@pytest.mark.parametrize("by_runs", [True, False])
def test_no_more_pairs_are_taken_than_a_state_may_have(monkeypatch, by_runs):
    """The ones that are known go on, and FLUSH does, where it was an assertion."""
    monkeypatch.setattr("ibb.storage.writer.STATE_PAIRS_MAX", 500)
    monkeypatch.setattr("ibb.storage.record_bound.STATE_BYTES_MAX", 502 * STATE_ENTRY_BYTES_MAX)
    monkeypatch.setattr("ibb.storage.writer.STATE_BYTES_MAX", 502 * STATE_ENTRY_BYTES_MAX)
    options = StoreOptions(
        max_binlog_size=1 << 20, redo_segment_size=4 << 20, background=False,
        format_description="upstream",
    )  # fmt: skip
    disk, taken = SimDisk(), 0
    with Store.open("/s", options, disk=disk) as store:
        pairs = [Gtid(2**32 - 1 - number, 2**32 - 2, 2**64 - 9) for number in range(900)]
        with pytest.raises(GroupError, match="too many"):
            while taken < len(pairs):
                part = pairs[taken : taken + 70] if by_runs else pairs[taken : taken + 1]
                if by_runs:
                    groups = run_of(GtidEvent(g, 5, 0x0C).encode() + xid(1) for g in part)
                    store.commit_run(groups)
                    taken += groups.count
                    assert groups.count
                else:
                    publish(store, part[0])
                    taken += 1
        store.sync()
        assert len(store.state()) == 500
        known = next(iter(store.state().entries()))
        publish(store, known._replace(seq=known.seq + 1))
        store.switch_file()
        with pytest.raises(GroupError, match="too many"):
            publish(store, Gtid(1, 1, 1))
        publish(store, known._replace(seq=known.seq + 2))
    with Store.open("/s", options, disk=disk) as store:
        assert len(store.state()) == 500
