"""Rows events of small transactions are found, or the group is left to who reads all its events."""

from array import array
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibb.protocol.errors import FormatError
from ibb.protocol.event import EventType, build_event
from ibb.protocol.event_group import ROWS
from ibb.protocol.event_splitter import EventSplitter
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent, GtidExtraFlag, GtidFlag, XaId
from ibb.protocol.rows.row_stage import DELETE, INSERT, UPDATE
from ibb.protocol.small_groups import EVENTS_MAX, MAPS_MAX, NOT_PLAIN, TABLES_MAX, RowsFinder

PASSED = (EventType.INTVAR, EventType.RAND, EventType.USER_VAR, EventType.ANNOTATE_ROWS)
ODD = (
    *(EventType.QUERY, EventType.QUERY_COMPRESSED, EventType.XA_PREPARE, EventType.INCIDENT),
    *(EventType.PARTIAL_ROW_DATA, EventType.APPEND_BLOCK, EventType.EXECUTE_LOAD_QUERY),
    *(EventType.GTID, EventType.ROTATE),
)
NUMBERS = (b"\1\0\0\0\0\0", b"\2\0\0\0\0\0", b"\1\0\0\0\0\1")


def event(code, body=b""):
    return build_event(code, body, timestamp=7, server_id=1)


def of_table(code, number=NUMBERS[0], more=b"\1\0rest"):
    return event(code, number + more)


GTID, XID = event(EventType.GTID, bytes(19)), event(EventType.XID, bytes(8))
MAP, WRITE = of_table(EventType.TABLE_MAP), of_table(EventType.WRITE_ROWS_V1)
OF_TABLES = st.builds(
    of_table,
    st.sampled_from([EventType.TABLE_MAP] * 6 + sorted(ROWS)),
    st.sampled_from(NUMBERS),
    st.binary(min_size=2, max_size=300),
)
OTHERS = st.builds(event, st.sampled_from(PASSED), st.binary(max_size=40))


class Found(NamedTuple):
    position: int
    said: bytes  # by the table map, behind its number and its flags
    start: int
    end: int


def said(map_event):
    """Return a table map's event behind number and flags, by which tables are told apart."""
    return bytes(map_event[27:])


def look(finder, groups, first=0):
    """Have a finder look through groups that lie side by side; return where it stopped."""
    ends = array("q")
    for group in groups:
        ends.append((ends[-1] if ends else 0) + len(group))
    starts = array("q", [0, *ends[:-1]])
    return finder.look(b"".join(groups), starts, ends, first, len(groups))


def events_of(finder):
    """Return group, position, what the table map says, start and end of each rows event found."""
    maps = [said(event) for _, event in finder.maps]
    return [
        (
            finder.groups[number],
            Found(
                finder.positions[number],
                maps[finder.tables[number]],
                finder.starts[number],
                finder.ends[number],
            ),
        )
        for number in range(finder.count)
    ]


def find_rows(data):
    """Return the rows events of one group, None if it is for others."""
    finder = RowsFinder()
    if not finder.look(data, array("q", [0]), array("q", [len(data)]), 0, 1):
        assert finder.count == 0
        return None
    return [found for _, found in events_of(finder)]


def wanted(data):
    """Return what the events of a group are, taken one by one; None where one has no map."""
    maps, found, at = {}, [], 0
    for position, part in enumerate(EventSplitter().feed(data)):
        assert part.first
        assert part.last
        code, number, end = part.header.type, bytes(part.data[19:25]), at + part.header.length
        if code == EventType.TABLE_MAP:
            maps[number] = (at, end)
        elif code in ROWS:
            if number not in maps:
                return None
            start, map_end = maps[number]
            found.append((position, said(data[start:map_end]), at, end))
        at = end
    return found


@pytest.mark.kernel
@settings(max_examples=300)
@given(st.lists(OF_TABLES | OTHERS, max_size=MAPS_MAX))
def test_rows_and_their_table_maps_are_found(events):
    data = b"".join((GTID, *events, XID))
    assert find_rows(data) == wanted(data)
    assert find_rows(memoryview(bytearray(data))) == wanted(data)


@pytest.mark.kernel
def test_the_last_table_map_of_a_number_counts():
    again = of_table(EventType.TABLE_MAP, more=b"\1\0longer than the other")
    other = of_table(EventType.TABLE_MAP, NUMBERS[1])
    (row,) = find_rows(b"".join((GTID, MAP, again, other, WRITE, XID)))
    assert row.said == said(again)


@pytest.mark.kernel
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("place", [1, 2, 3])
def test_any_other_event_is_for_who_reads_them_all(odd, place):
    events = [GTID, MAP, WRITE, XID]
    events.insert(place, event(odd, bytes(30)))
    assert find_rows(b"".join(events)) is None


@pytest.mark.kernel
@pytest.mark.parametrize(
    "events",
    [
        (),
        (GTID,),
        (GTID, MAP, WRITE),
        (MAP, WRITE, XID),
        (GTID, WRITE, MAP, XID),
        (GTID, MAP, WRITE, XID, MAP),
        (GTID, MAP, WRITE, XID, b"\0"),
        (XID,),
        (GTID, *[MAP] * (MAPS_MAX + 1), WRITE, XID),
        (GTID, event(EventType.TABLE_MAP, b"\1\0\0\0\0\0\1"), WRITE, XID),
        (GTID, MAP, event(EventType.UPDATE_ROWS_V1, b"\1\0\0\0\0\0\1"), XID),
    ],
)
def test_so_is_what_is_not_whole_or_in_another_order(events):
    assert find_rows(b"".join(events)) is None


@pytest.mark.kernel
@settings(max_examples=300)
@given(st.binary(max_size=200), st.integers(0, 400), st.integers(0, 255))
def test_damage_is_found_by_others(rubbish, at, byte):
    """Nothing is read beyond the bytes, and no length is trusted."""
    data = bytearray(GTID + MAP + WRITE + XID)
    data[at % len(data)] = byte
    for changed in (bytes(data), bytes(data[: at % len(data)]), bytes(data) + rubbish, rubbish):
        for row in find_rows(changed) or ():
            assert 0 < row.start < row.end <= len(changed)
            assert changed[row.start + 4] in ROWS
            assert 0 <= changed.find(row.said) < row.start


def transaction(*events, head=GTID):
    return b"".join((head, *events, XID))


@pytest.mark.kernel
@settings(max_examples=100)
@given(st.lists(st.lists(OF_TABLES | OTHERS, max_size=4), max_size=8), st.integers(0, 8))
def test_many_groups_are_looked_through_up_to_one_that_is_odd(lists, first):
    groups = [transaction(*events) for events in lists]
    first = min(first, len(groups))
    finder, found, begun = RowsFinder(), [], 0
    stop = look(finder, groups, first)
    for number, group in enumerate(groups):
        one = wanted(group) if first <= number < stop else []
        found += [(number, (at, name, begun + a, begun + b)) for at, name, a, b in one]
        begun += len(group)
    assert events_of(finder) == found
    assert stop == len(groups) or wanted(groups[stop]) is None
    assert not finder.is_full


@pytest.mark.kernel
def test_table_maps_that_differ_by_number_and_flags_alone_are_one():
    groups = [
        transaction(of_table(EventType.TABLE_MAP, name), of_table(EventType.WRITE_ROWS_V1, name))
        for name in NUMBERS
    ]
    other = of_table(EventType.TABLE_MAP, more=b"\1\0REST")
    flagged = transaction(of_table(EventType.TABLE_MAP, more=b"\0\1rest"), WRITE)
    finder = RowsFinder()
    assert look(finder, [*groups, transaction(other, WRITE), flagged, groups[0]]) == 6
    assert [group for group, _ in finder.maps] == [0, 3]
    assert [event for _, event in finder.maps] == [MAP, other]
    assert list(finder.tables[:6]) == [0, 0, 0, 1, 0, 0]


@pytest.mark.kernel
def test_a_group_that_is_odd_leaves_nothing_behind():
    other = of_table(EventType.TABLE_MAP, more=b"\1\0REST")
    odd = b"".join((GTID, other, WRITE, MAP, WRITE))
    finder = RowsFinder()
    groups = [transaction(MAP, WRITE), odd, transaction(MAP, WRITE)]
    assert look(finder, groups) == 1
    assert (finder.count, finder.maps) == (1, [(0, MAP)])
    assert look(finder, groups, 2) == 3
    assert (finder.count, finder.maps) == (1, [(2, MAP)])


@pytest.mark.kernel
def test_there_is_room_for_so_many_events():
    group = transaction(MAP, *[WRITE] * (EVENTS_MAX // 2 - 10))
    finder = RowsFinder()
    assert look(finder, [group] * 3) == 2
    assert finder.is_full
    assert finder.count == EVENTS_MAX - 20
    assert look(finder, [group] * 3, 2) == 3
    most = [WRITE] * EVENTS_MAX
    assert look(finder, [transaction(MAP, *most)]) == 1
    assert not finder.is_full
    assert look(finder, [transaction(MAP, *most, WRITE)]) == 0
    assert not finder.is_full  # it will never have room


@pytest.mark.kernel
def test_there_is_room_for_so_many_tables():
    groups = [
        transaction(of_table(EventType.TABLE_MAP, more=b"\1\0%04d" % number), WRITE)
        for number in range(TABLES_MAX + 3)
    ]
    finder = RowsFinder()
    assert look(finder, groups) == TABLES_MAX
    assert finder.is_full
    assert look(finder, groups, TABLES_MAX) == len(groups)
    assert [group for group, _ in finder.maps] == [TABLES_MAX, TABLES_MAX + 1, TABLES_MAX + 2]


@pytest.mark.kernel
@pytest.mark.parametrize("code", sorted(ROWS))
def test_it_is_told_what_happens(code):
    name = EventType(code).name
    finder = RowsFinder()
    assert look(finder, [transaction(MAP, of_table(code))]) == 1
    op = INSERT if "WRITE" in name else UPDATE if "UPDATE" in name else DELETE
    is_plain = name in {"WRITE_ROWS_V1", "UPDATE_ROWS_V1", "DELETE_ROWS_V1"}
    assert finder.ops[0] == (op if is_plain else op | NOT_PLAIN)


EXTRAS = (
    {},
    {"engines": 1},
    {"alter_seq": 9},
    {"thread_id": 7},
    {"engines": 1, "alter_seq": 9, "thread_id": 0xFFFFFFFF},
)
EXTRA_FLAGS = {
    "engines": GtidExtraFlag.MULTI_ENGINE,
    "alter_seq": GtidExtraFlag.COMMIT_ALTER,
    "thread_id": GtidExtraFlag.THREAD_ID,
}


@pytest.mark.kernel
@pytest.mark.parametrize("extra", EXTRAS)
@pytest.mark.parametrize("commit_id", [None, 5])
def test_the_thread_is_told_if_the_gtid_event_says_it(extra, commit_id):
    flags2 = int(GtidFlag.TRANSACTIONAL | (0 if commit_id is None else GtidFlag.GROUP_COMMIT_ID))
    flags = sum(int(EXTRA_FLAGS[name]) for name in extra)
    head = GtidEvent(Gtid(1, 2, 3), 7, flags2, commit_id, flags_extra=flags, **extra).encode()
    finder = RowsFinder()
    assert look(finder, [transaction(MAP, WRITE, head=head)]) == 1
    assert finder.threads[0] == extra.get("thread_id", -1)
    for size in range(len(GTID), len(head)):  # cut
        short = head[:9] + size.to_bytes(4, "little") + head[13:size]
        group = transaction(MAP, WRITE, head=short)
        try:
            thread = GtidEvent.parse(short).thread_id
        except FormatError:
            assert look(finder, [group]) == 0
        else:
            assert look(finder, [group]) == 1
            assert finder.threads[0] == (-1 if thread is None else thread)


@pytest.mark.kernel
@pytest.mark.parametrize("flag", [GtidFlag.PREPARED_XA, GtidFlag.COMPLETED_XA])
def test_xa_transactions_are_for_others(flag):
    head = GtidEvent(Gtid(1, 2, 3), 7, int(flag), xa_id=XaId(1, b"a", b"")).encode()
    assert look(RowsFinder(), [transaction(MAP, WRITE, head=head)]) == 0


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("starts", "ends", "first", "stop"),
    [([0], [1], 0, 2), ([0], [], 0, 1), ([0], [1], 1, 0), ([0], [1], -1, 1)],
)
def test_groups_that_are_not_there_are_an_error_of_the_caller(starts, ends, first, stop):
    with pytest.raises(ValueError, match="groups"):
        RowsFinder().look(b"", array("q", starts), array("q", ends), first, stop)


@pytest.mark.kernel
@pytest.mark.parametrize(("start", "end"), [(-1, 5), (0, 10_000), (9, 3)])
def test_places_outside_of_the_bytes_are_not_read(start, end):
    data = transaction(MAP, WRITE)
    assert RowsFinder().look(data, array("q", [start]), array("q", [end]), 0, 1) == 0
