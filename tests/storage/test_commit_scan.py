"""A group is found by its commit record; what the page alone does not tell is left to others."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ibb.protocol.event import EventType
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent
from ibb.storage.chunk import (
    CONTINUATION,
    FILLER,
    LAST,
    TYPE_MASK,
    UNUSED,
    chunk_header,
    last_chunk_start,
    read_chunk,
)
from ibb.storage.commit_scan import find_alone, find_commit
from ibb.storage.group_head import GTID_EVENT_SIZE_MIN, peek_gtid
from ibb.storage.record import NO_LISTS, RecordType

pytestmark = pytest.mark.kernel

PAGE = 512
COMMIT = RecordType.COMMIT
FULL = 2**64 - 1
GTIDS = st.sampled_from(
    [Gtid(0, 1, 5), Gtid(0, 1, 6), Gtid(0, 2, 5), Gtid(1, 1, 5), Gtid(2**32 - 1, 2**32 - 1, FULL)]
)


def event(gtid):
    return GtidEvent(gtid, 7, 0).encode()


def commit(gtid, more=b"", flags=LAST):
    data = NO_LISTS + event(gtid) + more
    return chunk_header(COMMIT | flags, len(data)) + data


def chunk(code, data):
    return chunk_header(code, len(data)) + data


CODES = st.builds(
    lambda kind, flags: kind | flags,
    st.sampled_from([COMMIT] * 3 + list(RecordType)),
    st.sampled_from([0, LAST, CONTINUATION, LAST | CONTINUATION]),
)
CHUNKS = st.one_of(
    st.builds(commit, GTIDS, st.binary(max_size=20), st.sampled_from([0, LAST])),
    st.builds(commit, GTIDS, flags=st.sampled_from([CONTINUATION, CONTINUATION | LAST])),
    st.builds(chunk, CODES, st.binary(min_size=1, max_size=60)),
    st.builds(lambda gtid, size: chunk(COMMIT, (NO_LISTS + event(gtid))[:size]), GTIDS,
              st.integers(GTID_EVENT_SIZE_MIN - 2, GTID_EVENT_SIZE_MIN + 4)),
    st.builds(lambda gtid: chunk(COMMIT, b"\1" + event(gtid)), GTIDS),
    st.builds(lambda gtid, code: chunk(COMMIT, NO_LISTS + event(gtid)[:4] + code + event(gtid)[5:]),
              GTIDS, st.just(b"\x0f") | st.binary(min_size=1, max_size=1)),
    st.sampled_from([bytes([FILLER]), bytes([UNUSED]), b"\1\0\0", b"\1\xff\xff"]),
)  # fmt: skip


def tells_a_format(data):
    is_whole = len(data) >= len(NO_LISTS) + GTID_EVENT_SIZE_MIN and data.startswith(NO_LISTS)
    return is_whole and data[len(NO_LISTS) + 4] == EventType.FORMAT_DESCRIPTION


def wanted(page, start, end, gtid):
    """Return the first of the commit records that is the group's, if one is given, or may be."""
    end = min(end, len(page))
    last = min(last_chunk_start(len(page)), end - 1)
    while start <= last and page[start] not in (FILLER, UNUSED):
        found = read_chunk(page, start, end)
        if found is None:
            break
        kind, flags, data, size = found
        if kind & TYPE_MASK == COMMIT and not flags & CONTINUATION:
            told = peek_gtid(page, data, size)
            if told is None and tells_a_format(page[data : data + size]):
                start = data + size
                continue
            if gtid is None or told is None or told == gtid:
                return start
        start = data + size
    return -1


@settings(max_examples=500)
@given(st.lists(CHUNKS, max_size=14), st.none() | GTIDS, st.integers(0, PAGE + 9), st.data())
def test_it_is_found_or_what_may_be_it(chunks, gtid, end, data):
    page = b"".join(chunks)[:PAGE].ljust(PAGE, b"\0")
    starts = [sum(map(len, chunks[:number])) for number in range(len(chunks) + 1)]
    first = data.draw(st.sampled_from([start for start in starts if start <= PAGE]))
    for visible in (end, PAGE - 4, PAGE):
        assert find_commit(page, first, visible, gtid) == wanted(page, first, visible, gtid)


def alone(page, end, gtid):
    """Return the group's commit record if all that may be one before it is one of its server."""
    start = -1
    while (start := wanted(page, 0 if start < 0 else behind(page, start, end), end, None)) >= 0:
        _, _, data, size = read_chunk(page, start, end)
        told = peek_gtid(page, data, size)
        if told == gtid:
            return start
        if told is None or told[:2] != gtid[:2] or told.seq > gtid.seq:
            return -1
    return -1


def behind(page, start, end):
    _, _, data, size = read_chunk(page, start, end)
    return data + size


@settings(max_examples=500)
@given(st.lists(CHUNKS | st.builds(commit, GTIDS), max_size=14), GTIDS, st.integers(0, PAGE + 9))
@example([commit(Gtid(0, 1, 5)), commit(Gtid(0, 1, 6))], Gtid(0, 1, 6), PAGE)
@example([commit(Gtid(0, 2, 5)), commit(Gtid(0, 1, 6))], Gtid(0, 1, 6), PAGE)
@example([commit(Gtid(0, 1, 6)), commit(Gtid(0, 1, 5))], Gtid(0, 1, 5), PAGE)
@example([commit(Gtid(1, 1, 6)), commit(Gtid(0, 1, 6))], Gtid(0, 1, 6), PAGE)
def test_it_is_found_alone_or_not_at_all(chunks, gtid, end):
    page = b"".join(chunks)[:PAGE].ljust(PAGE, b"\0")
    for visible in (end, PAGE - 4, PAGE):
        assert find_alone(page, visible, gtid) == alone(page, min(visible, PAGE), gtid)


@given(st.binary(max_size=40), st.integers(-5, 50), st.integers(-5, 50))
def test_nothing_is_read_outside_of_a_page(page, first, end):
    for data in (page, commit(Gtid(0, 1, 5))[: len(page)], commit(Gtid(0, 1, 5))):
        for gtid in (Gtid(0, 1, 5), None):
            found = find_commit(data, first, end, gtid)
            assert found == -1 or 0 <= first <= found < min(end, len(data))


def test_groups_of_others_are_passed_over():
    others = [Gtid(0, 1, 4), Gtid(0, 2, 5), Gtid(1, 1, 5), Gtid(0, 1, 5 + (1 << 32))]
    page = b"".join(commit(gtid) for gtid in others).ljust(PAGE, b"\0")
    assert find_commit(page, 0, PAGE, Gtid(0, 1, 5)) == -1
    assert find_commit(page, 0, PAGE, others[2]) == 2 * len(commit(others[0]))
    assert find_commit(page, 0, PAGE, others[3]) == 3 * len(commit(others[0]))


OWN = Gtid(0, 1, 5)


@pytest.mark.parametrize("code", [FILLER, UNUSED])
def test_nothing_lies_behind_the_last_chunk(code):
    page = chunk(code, bytes(5)) + commit(OWN)
    assert find_commit(page.ljust(PAGE, b"\0"), 0, PAGE, OWN) == -1


def test_a_long_chunk_is_passed_over():
    page = chunk(RecordType.OOB, bytes(300)) + commit(OWN)
    assert find_commit(page.ljust(PAGE, b"\0"), 0, PAGE, OWN) == 303


def test_a_chunk_ends_where_the_page_does_or_before():
    record = commit(OWN)
    page = record.ljust(PAGE, b"\0")
    assert find_commit(page, 0, len(record), OWN) == 0
    assert find_commit(page, 0, len(record) - 1, OWN) == -1
    for size in range(len(record)):
        assert find_commit(record[:size], 0, PAGE, OWN) == -1
    assert find_commit(page + record, -len(record), PAGE, OWN) == -1


def test_a_chunk_begins_where_there_is_room_for_one_or_before():
    last = last_chunk_start(PAGE)
    for start in range(last - 2, last + 3):
        page = chunk(RecordType.OOB, bytes(start - 3)) + chunk(COMMIT, b"\0")
        found = find_commit(page.ljust(PAGE, b"\0"), 0, PAGE, OWN)
        assert found == (start if start <= last else -1)
