"""Plain events are those that leave a transaction as it is; only whole ones are taken."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibb.protocol.event import HEADER_SIZE, EventHeader, EventType, build_event
from ibb.protocol.event_group import GroupStep, GroupTracker
from ibb.protocol.gtid import Gtid
from ibb.protocol.plain_events import PLAIN, clear_positions, count_others, count_plain

OTHERS = (EventType.QUERY, EventType.XID, EventType.GTID, EventType.ROTATE, EventType.INCIDENT)


def placed(event, log_pos=0x12345678):
    return event[:13] + log_pos.to_bytes(4, "little") + event[17:]


def joined(events, cut):
    """Return events one behind the other, without the last *cut* bytes."""
    data = b"".join(event for _, event in events)
    return data[: max(len(data) - cut, 0)]


EVENTS = st.tuples(st.sampled_from((*PLAIN, *PLAIN, *OTHERS)), st.binary(max_size=300)).map(
    lambda made: (made[0], placed(build_event(made[0], made[1], timestamp=7, server_id=1)))
)


@pytest.mark.kernel
@settings(max_examples=300)
@given(st.lists(EVENTS, max_size=9), st.integers(0, 400), st.booleans())
def test_whole_plain_events_are_taken_from_the_beginning_on(events, cut, is_cut):
    data = joined(events, cut if is_cut else 0)
    size, wanted = count_plain(data), 0
    taken = bytearray(data[:size])
    clear_positions(taken, 0)
    for kind, event in events:
        if kind not in PLAIN or wanted + len(event) > len(data):
            break
        expected = event[:13] + bytes(4) + event[17:]
        assert taken[wanted : wanted + len(event)] == expected
        wanted += len(event)
    assert size == wanted


@pytest.mark.kernel
@settings(max_examples=300)
@given(st.lists(EVENTS, max_size=9), st.integers(0, 400), st.booleans())
def test_so_are_whole_ones_that_are_not_plain(events, cut, is_cut):
    data = joined(events, cut if is_cut else 0)
    wanted = 0
    for kind, event in events:
        if kind in PLAIN or wanted + len(event) > len(data):
            break
        wanted += len(event)
    assert count_others(data) == wanted


@pytest.mark.kernel
@pytest.mark.parametrize("length", [0, 1, HEADER_SIZE - 1, 28, 2**31, 2**32 - 1])
def test_a_length_that_cannot_be_is_left_to_others(length):
    good = build_event(EventType.WRITE_ROWS_V1, b"12345678", timestamp=7, server_id=1)
    bad = placed(good[:9] + length.to_bytes(4, "little") + good[13:])
    assert count_plain(good + bad) == len(good)
    assert count_plain(bad) == 0
    other = build_event(EventType.QUERY, b"12345678", timestamp=7, server_id=1)
    assert count_others(other + other[:9] + bad[9:]) == len(other)
    clear_positions(bytearray(good + bad), 0)  # which nobody does: it ends


@pytest.mark.kernel
def test_nothing_has_no_events():
    assert count_plain(b"") == 0
    assert count_plain(bytes(HEADER_SIZE - 1)) == 0
    assert count_others(b"") == count_others(bytes(HEADER_SIZE - 1)) == 0


@pytest.mark.parametrize("kind", PLAIN)
def test_a_plain_event_leaves_a_transaction_as_it_is(kind):
    tracker = GroupTracker.inside(Gtid(0, 1, 1), standalone=False)
    header = EventHeader.unpack(build_event(kind, b"", timestamp=7, server_id=1))
    assert tracker.add(header, b"") is GroupStep.INSIDE
    assert tracker.in_transaction
