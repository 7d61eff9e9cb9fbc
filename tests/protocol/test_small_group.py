"""Rows events of small transactions are found, or the group is left to who reads all its events."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibb.protocol.event import EventType, build_event
from ibb.protocol.event_group import ROWS
from ibb.protocol.event_splitter import EventSplitter
from ibb.protocol.small_group import MAPS_MAX, find_rows

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
            found.append((position, *maps[number], at, end))
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
    start = len(GTID) + len(MAP)
    assert (row.map_start, row.map_end) == (start, start + len(again))


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
            assert 0 <= row.map_start < row.map_end <= row.start < row.end <= len(changed)
            assert changed[row.start + 4] in ROWS
            assert changed[row.map_start + 4] == EventType.TABLE_MAP
