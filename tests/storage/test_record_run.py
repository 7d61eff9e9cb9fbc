"""A run of records leaves the pages and the log as records one by one do."""

from array import array
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibb.storage.page_fifo import PageFifo
from ibb.storage.record import NO_LISTS, RecordType
from ibb.storage.record_run import RecordRun
from ibb.storage.redo_record import parse_groups

PAGE_SIZE = 512
AREA = PAGE_SIZE - 4


def run_of(records, first=0, count=None, prefix=NO_LISTS):
    bounds = array("q", [0])
    for record in records:
        bounds.append(bounds[-1] + len(record))
    count = len(records) - first if count is None else count
    data = memoryview(b"".join(records))
    run = RecordRun(RecordType.COMMIT, prefix, None, data, bounds, first, count)
    run.begin(7, 1000, 990)
    return run


def log_of(run):
    log = b"".join(run.redo_groups())
    assert len(log) == run.redo_size
    return log


def fill(run, page_no, used, since, pages, page_size=PAGE_SIZE):
    """Fill page after page; return the images and the bytes used of the last."""
    images, before = {}, run.next
    while pages >= 0:
        image = images.setdefault(page_no, bytearray(b"\xaa" * used + bytes(page_size - used)))
        reached = run.fill(image, used, since, page_no, pages)
        if reached == used:
            break
        used = since = reached
        if used == page_size - 4:
            page_no, used, since, pages = page_no + 1, 0, 0, pages - 1
    assert run.next >= before
    return images, used


def chunks(image, at):
    while at <= len(image) - 8 and image[at] not in (0, 0xFF):
        size = image[at + 1] | image[at + 2] << 8
        yield image[at], bytes(image[at + 3 : at + 3 + size])
        at += 3 + size


@pytest.mark.kernel
@pytest.mark.parametrize("page_size", [512, 16384])  # of the larger ones the log shares the bytes
@given(
    sizes=st.lists(st.sampled_from((1, 2, 3, 40, 499, 500, 501, 502, 1200)), min_size=1),
    used=st.integers(0, AREA - 1),
    pages=st.integers(0, 6),
    relog=st.booleans(),
)
@settings(max_examples=200)
def test_the_log_brings_back_whole_records(page_size, sizes, used, pages, relog):
    scale = page_size // 512
    records = [bytes([number % 250]) * (size * scale) for number, size in enumerate(sizes)]
    run, used = run_of(records), used * scale
    images, _ = fill(run, 3, used, 0 if relog else used, pages, page_size)
    assert not run.is_open
    found, kinds = [], []
    for page_no in sorted(images):
        for kind, data in chunks(images[page_no], used if page_no == 3 else 0):
            if kind & 0x80:
                found[-1] += data
            else:
                found.append(data)
            kinds.append(kind)
    assert found == [NO_LISTS + record for record in records[: run.next]]
    assert sum(kind & 0x40 > 0 for kind in kinds) == len(found)
    # The log: one group a record, from which the pages come again.
    log = log_of(run)
    groups = list(parse_groups(log, 0, 1000))
    assert len(groups) == run.next
    assert [group.synced_lsn for group in groups] == [990] * len(groups)
    assert (groups[-1].end_lsn if groups else 1000) == 1000 + len(log)
    start = bytearray(b"\xaa" * used + bytes(page_size - used))
    again = {3: bytearray(page_size) if relog and groups else start}
    for group in groups:
        places = [change.page_no for change in group.changes()]
        assert len(set(places)) == len(places)
        for change in group.changes():
            assert change.file_no == 7
            image = again.setdefault(change.page_no, bytearray(page_size))
            image[change.offset : change.offset + len(change.data)] = change.data
    assert {number: image for number, image in images.items() if any(image)} == {
        number: image for number, image in again.items() if any(image)
    }


@pytest.mark.kernel
@pytest.mark.parametrize(("size", "fits"), [(2 * 505 - 1, True), (2 * 505, False)])
def test_a_record_is_begun_only_if_it_ends_in_the_pages_there_are(size, fits):
    run = run_of([b"x" * size])
    image = bytearray(PAGE_SIZE)
    fifo = PageFifo(9)
    assert len(run_of([b"x" * size]).fill_pages(None, fifo, 1, PAGE_SIZE, 2)) == 2 * fits
    assert len(fifo) == 2 * fits
    assert (run.fill(image, 0, 0, 1, 1) > 0) is fits
    assert any(image) is fits
    assert run.redo_size == (0 if not fits else run.redo_size)


@pytest.mark.kernel
def test_a_part_of_the_records_can_be_written():
    records = [b"a", b"bb", b"ccc", b"dddd"]
    run = run_of(records, 1, 2)
    image = bytearray(PAGE_SIZE)
    run.fill(image, 0, 0, 1, 0)
    assert run.next == 3
    assert [data for _, data in chunks(image, 0)] == [NO_LISTS + b"bb", NO_LISTS + b"ccc"]


@pytest.mark.kernel
def test_a_prefix_may_be_cut_by_a_page_s_end():
    run = run_of([b"the rest"], prefix=b"prefix")
    first, second = bytearray(PAGE_SIZE), bytearray(PAGE_SIZE)
    assert run.fill(first, AREA - 5, AREA - 5, 1, 1) == AREA
    assert run.is_open
    run.fill(second, 0, 0, 2, 0)
    assert list(chunks(first, AREA - 5)) == [(RecordType.COMMIT, b"pr")]
    assert list(chunks(second, 0)) == [(RecordType.COMMIT | 0xC0, b"efixthe rest")]


@pytest.mark.kernel
@pytest.mark.parametrize("count", [1, 20, 2000])
def test_the_log_of_a_run_takes_no_more_memory_than_twice_its_bytes(count):
    """It is kept until the log is written: many short runs may wait for that."""
    run = run_of([b"x" * 60] * count)
    fill(run, 1, 0, 0, 10**6)
    (groups,) = run.redo_groups()
    kept = len(groups) if isinstance(groups, bytes) else len(groups.obj)
    assert kept < 2 * len(groups)


@pytest.mark.kernel
def test_the_log_shares_large_pieces_with_the_pages():
    """What is added to a page behind them changes nothing; heads of one size are not needed."""
    heads, pieces = [b"a" * 3, b"", b"c" * 40], [b"1" * 9000, b"2" * 9000, b"3" * 9000]
    bounds = array("q", accumulate(map(len, pieces), initial=0))
    head_bounds = array("q", accumulate(map(len, heads), initial=0))
    data = memoryview(b"".join(pieces))
    run = RecordRun(RecordType.OOB, b"".join(heads), head_bounds, data, bounds, 0, 3)
    run.begin(7, 1000, 990)
    images, used = fill(run, 1, 0, 0, 9, 16384)
    shared = [part.obj for part in run.redo_groups() if isinstance(part, memoryview)]
    assert [image for image in shared if any(image is page for page in images.values())]
    log = log_of(run)
    images[2][used : used + 100] = b"x" * 100
    assert log_of(run) == log
    groups = list(parse_groups(log, 0, 1000))
    contents = [b"", b"", b""]
    for group, number in zip(groups, range(3), strict=True):
        for change in group.changes():
            contents[number] += b"".join(data for _, data in chunks(change.data + bytes(8), 0))
    assert contents == [head + piece for head, piece in zip(heads, pieces, strict=True)]
