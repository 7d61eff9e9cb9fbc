"""Records at the ends of pages and files, to the byte, for files of every size."""

from itertools import product
from os import environ

import pytest

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid
from ibb.storage.record import Xid

from ..faults.sparse_disk import SparseDisk
from ..oracle.binlog import Binlog
from ..oracle.chunks import GTID_STATE, Record
from ..oracle.contents import Gtid as FoundGtid
from .edge_store import DOMAIN, SEQ, SERVER, EdgeStore, options_for
from .events import query, xid
from .state_of_size import entries_of_size

PAGE_SIZES = (512, 1024, 4096, 16384, 65536)
FILE_PAGES = (4, 16, 64, 4096)
ALL_CELLS = bool(environ.get("IBB_TEST_ALL_CELLS"))  # minutes, for states of thousands of pairs
DELTAS = range(-4, 5)  # bytes of data behind a page's end; below 0: left in the page
SHAPES = [(page_size, pages) for page_size in PAGE_SIZES for pages in FILE_PAGES]
FEW_PAGES = [(page_size, pages) for page_size, pages in SHAPES if pages < 4096]
MANY_PAGES = [(page_size, pages) for page_size, pages in SHAPES if pages == 4096]


def record_of(binlog: Binlog, gtid: str) -> Record:
    place = next(group.place for group in binlog.groups if str(group.gtid) == gtid)
    return next(record for record in binlog.records if record.place == place)


def assert_ends_at(record: Record, page: int, delta: int, page_size: int) -> None:
    """Assert that a record goes *delta* bytes of data over a page's end, or ends before it."""
    before = record.chunks[-2] if delta > 0 else record.chunks[-1]
    assert before.end.offset == (page + 1) * page_size - 4 + min(delta, 0)
    if delta > 0:
        assert len(record.chunks[-1].data) == delta


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize(("page_size", "pages"), SHAPES)
def test_a_record_may_end_around_the_end_of_a_page_and_of_a_file(page_size, pages, delta):
    edge = EdgeStore(options_for(page_size, pages))
    edge.go_to_page(pages - 2)
    edge.end_record_at(delta)
    at_page_end = edge.published[-1][0]
    edge.publish()
    edge.go_to_page(pages - 1)
    edge.end_record_at(delta)
    at_file_end = edge.published[-1][0]
    edge.publish()
    edge.publish()
    binlog = edge.check()
    assert_ends_at(record_of(binlog, at_page_end), pages - 2, delta, page_size)
    assert_ends_at(record_of(binlog, at_file_end), pages - 1, delta, page_size)
    assert sorted(binlog.files) == [0, 1]


@pytest.mark.parametrize("killed_first", [False, True])
@pytest.mark.parametrize(
    ("page_size", "pages", "delta"),
    [(*shape, delta) for shape in FEW_PAGES for delta in DELTAS]
    + [(*shape, 0) for shape in MANY_PAGES],
)
def test_the_store_goes_on_after_a_restart_there(page_size, pages, delta, killed_first):
    edge = EdgeStore(options_for(page_size, pages))
    edge.go_to_page(pages - 2)
    edge.end_record_at(delta)
    edge = edge.reopen(killed=killed_first)
    edge.publish()
    edge.go_to_page(pages - 1)
    edge.end_record_at(delta)
    edge = edge.reopen(killed=not killed_first)
    edge.publish()
    edge = edge.reopen(killed=killed_first)
    edge.publish()
    binlog = edge.check()
    assert sorted(binlog.files) == [0, 1]
    assert binlog.descriptions == []


@pytest.mark.parametrize(
    ("page_size", "pages", "room"),
    [(*shape, room) for shape in FEW_PAGES for room in (4, 5, 41, 42, 43, 200)]
    + [(*shape, 41) for shape in MANY_PAGES],
)
def test_a_group_may_be_committed_across_the_end_of_a_file(page_size, pages, room):
    """Its commit record begins in the last *room* bytes: in its prefix, GTID event, or behind."""
    edge = EdgeStore(options_for(page_size, pages))
    edge.go_to_page(pages - 1)
    edge.end_record_at(-room)
    edge.publish(edge.options.piece_size - 1)
    across = edge.published[-1][0]
    edge.publish()
    binlog = edge.check()
    chunks = record_of(binlog, across).chunks
    assert [chunk.place.file_no for chunk in chunks[:2]] == [0, 1]
    assert len(chunks[0].data) == room - 3


@pytest.mark.parametrize(("page_size", "pages"), SHAPES)
def test_a_group_in_pieces_keeps_its_file_across_the_end_of_it(page_size, pages):
    edge = EdgeStore(options_for(page_size, pages))
    edge.go_to_page(pages - 1)
    edge.end_record_at(-200)
    events = query("p" * 3 * edge.options.piece_size) + xid(1)
    gtid = Gtid(DOMAIN, SERVER, SEQ + len(edge.published))
    with edge.store.begin() as group:
        group.write(events)
        group.commit(gtid)
    edge.published.append((str(gtid), events))
    binlog = edge.check()
    pieces = next(group for group in binlog.groups if str(group.gtid) == str(gtid)).nodes
    assert pieces[0].place.file_no == 0
    assert pieces[-1].place.file_no > 0
    assert all(file.header.oob_reference == 0 for file in binlog.files.values())


@pytest.mark.parametrize("room", [4, 20, 21, 22, 24, 25, 60])
@pytest.mark.parametrize(("page_size", "pages"), [(512, 4), (512, 16), (4096, 64), (16384, 4)])
def test_an_xa_transaction_may_be_committed_across_the_end_of_a_file(page_size, pages, room):
    """Two records in one unit: the file ends in the first, between them, or in the second."""
    edge = EdgeStore(options_for(page_size, pages))
    name = Xid(1, b"transaction", b"")
    with edge.store.begin() as group:
        group.write(query("x") + xid(1))
        group.prepare(name)
    edge.go_to_page(pages - 1)
    edge.end_record_at(-room)
    gtid = Gtid(DOMAIN, SERVER, SEQ + len(edge.published))
    edge.store.commit_prepared(name, gtid)
    edge.published.append((str(gtid), query("x") + xid(1)))
    edge = edge.reopen(killed=True)
    assert edge.store.prepared() == []
    edge.publish()
    binlog = edge.check()
    assert sorted(binlog.files) == [0, 1]
    assert binlog.files[1].header.xa_reference == 0


@pytest.mark.parametrize("state_pages", [1, 2])
@pytest.mark.parametrize(
    ("page_size", "pages", "delta"),
    [(*shape, 0) for shape in SHAPES]
    + [(page_size, 4, delta) for page_size in PAGE_SIZES for delta in DELTAS if delta],
)
def test_a_full_state_may_fill_its_pages_exactly(page_size, pages, state_pages, delta):
    """Or a few bytes more or less; on page 1 of the first file, and of the next one."""
    edge = EdgeStore(options_for(page_size, pages))
    size = state_pages * (page_size - 7) + delta
    entries = entries_of_size(size, Gtid(DOMAIN, SERVER, SEQ - 1))
    edge.store.reset(BinlogState(entries))
    edge.publish()
    edge = edge.reopen(killed=True)
    edge.publish()
    edge.store.switch_file()
    edge.publish()
    edge = edge.reopen(killed=False)
    edge.publish()
    binlog = edge.check()
    for number in (0, 1):
        state = next(record for record in binlog.records if record.place == (number, page_size))
        assert (state.type, len(state.data)) == (GTID_STATE, size)
        assert len(state.chunks) == state_pages + (delta > 0)
    assert FoundGtid(*entries[-1]) in binlog.states[0, page_size].entries


@pytest.mark.parametrize(
    ("page_size", "pages", "state_pages", "delta"),
    [
        cell
        for cell in product(PAGE_SIZES, FILE_PAGES, (1, 2), DELTAS)
        if ALL_CELLS or cell[0] == 512 or (cell[3] == 0 and cell[:2] != (65536, 4096))
    ],
)
@pytest.mark.parametrize("ends", ["across", "around"])
def test_all_of_it_in_one_life(page_size, pages, state_pages, delta, ends):
    """
    The matrix as a whole, in files whose states fill one and two pages exactly.

    A record ends around the end of the last page but one, and the store is killed there. Then
    either groups that are synced together go across the end of the file, with the next file's
    state inside one of them, or a record ends around the end of the file and the store is killed
    there, too. One shape cannot be: in a file of four pages a state of two ends where that first
    record should, and does instead.
    """
    size = state_pages * (page_size - 7)
    state = tuple(entries_of_size(size, Gtid(DOMAIN, SERVER, SEQ - 1)))
    edge = EdgeStore(options_for(page_size, pages), state=state, state_pages=state_pages)
    if edge.page <= pages - 2:
        edge.go_to_page(pages - 2)
        edge.end_record_at(delta)
        at_page_end = edge.published[-1][0]
    else:
        assert (pages, state_pages, edge.page, edge.room) == (4, 2, 3, 0)
        at_page_end = None
    edge = edge.reopen(killed=True)
    edge.publish()
    edge.go_to_page(pages - 1)
    if ends == "across":
        edge.end_record_at(-60)
        edge.publish(80)
    else:
        edge.end_record_at(delta)
        edge = edge.reopen(killed=True)
        edge.publish()
    at_file_end = edge.published[-1 if ends == "across" else -2][0]
    edge.publish()
    edge = edge.reopen(killed=False)
    edge.publish()
    binlog = edge.check()
    if at_page_end is not None:
        assert_ends_at(record_of(binlog, at_page_end), pages - 2, delta, page_size)
    if ends == "across":
        first, last = record_of(binlog, at_file_end).chunks
        assert (first.place.file_no, last.place.file_no) == (0, 1)
    else:
        assert_ends_at(record_of(binlog, at_file_end), pages - 1, delta, page_size)
    for number in (0, 1):
        record = next(record for record in binlog.records if record.place == (number, page_size))
        assert (record.type, len(record.data), len(record.chunks)) == (
            GTID_STATE,
            size,
            state_pages,
        )


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("state_pages", [1, 2])
@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_a_record_goes_on_behind_a_full_state_of_any_size(page_size, state_pages, delta):
    """Also if the state leaves one to three bytes of its last page, or none."""
    edge = EdgeStore(options_for(page_size, pages=4))
    size = state_pages * (page_size - 7) + delta
    edge.store.reset(BinlogState(entries_of_size(size, Gtid(DOMAIN, SERVER, SEQ - 1))))
    while edge.page < 3:
        edge.publish(page_size // 4)
    edge.end_record_at(20)
    across = edge.published[-1][0]
    edge = edge.reopen(killed=True)
    edge.publish()
    binlog = edge.check()
    state = next(record for record in binlog.records if record.place == (1, page_size))
    assert (state.type, state.is_nested, len(state.data)) == (GTID_STATE, True, size)
    assert record_of(binlog, across).end > state.end


@pytest.mark.parametrize(("state_pages", "pages", "at_page"), [(1, 16, 8), (2, 64, 16)])
@pytest.mark.parametrize(
    ("page_size", "delta"),
    [(512, delta) for delta in DELTAS] + [(page_size, 0) for page_size in PAGE_SIZES[1:]],
)
def test_a_differential_state_may_fill_its_pages_exactly(
    page_size, delta, state_pages, pages, at_page
):
    """Also if it was put together by a restart from what is in the file."""
    options = options_for(page_size, pages, interval=at_page, piece_size=max(256, page_size // 4))
    edge = EdgeStore(options, SparseDisk(page_size))
    size = state_pages * (page_size - 7) + delta
    for gtid in entries_of_size(size, Gtid(DOMAIN, SERVER, SEQ - 1)):
        edge.publish(gtid=gtid)
    edge.waste_pages(at_page - 1)
    edge = edge.reopen(killed=True)
    edge.go_to_page(at_page)
    edge.publish()
    edge.publish()
    binlog = edge.check()
    place = (0, at_page * page_size)
    state = next(record for record in binlog.records if record.place == place)
    assert (state.type, len(state.data)) == (GTID_STATE, size)
    assert len(state.chunks) == state_pages + (delta > 0)
