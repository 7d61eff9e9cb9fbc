"""What a record takes is never more than was told before it was written."""

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.errors import GroupError, StateTooLarge
from ibb.storage.file_header import FileHeader
from ibb.storage.file_shape import FileShape
from ibb.storage.new_record import NewRecord
from ibb.storage.options import STATE_BYTES_MAX
from ibb.storage.page_fifo import PageFifo
from ibb.storage.record import RecordType
from ibb.storage.record_bound import bound_of
from ibb.storage.redo_record import group_size
from ibb.storage.writer import STATE_ENTRY_BYTES_MAX, Writer
from ibb.storage.writer_place import WriterPlace

from ..faults.sim_disk import SimDisk
from .events import transaction
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
