from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol.errors import FormatError
from ibb.protocol.event import EventHeader, EventType, build_event
from ibb.protocol.event_splitter import (
    FIRST_PART_BYTES_MIN,
    WHOLE_EVENT_BYTES_MAX,
    EventSplitter,
)


def event(size: int, fill: int = 1) -> bytes:
    return build_event(EventType.QUERY, bytes([fill]) * (size - 19), timestamp=fill, server_id=1)


SMALL = st.integers(19, 200)
EDGES = st.sampled_from([WHOLE_EVENT_BYTES_MAX + delta for delta in (-1, 0, 1, 70_000)])
sizes = st.lists(st.one_of(SMALL, SMALL, SMALL, EDGES), max_size=6)


def feed_all(splitter, pieces):
    """Return the parts, their data copied as the pieces may go."""
    return [
        part._replace(data=bytes(part.data)) for piece in pieces for part in splitter.feed(piece)
    ]


def joined(parts):
    """Put the parts of each event together again."""
    events = []
    for part in parts:
        if part.first:
            events.append(b"")
        events[-1] += part.data
    return events


@given(sizes, st.data())
def test_any_cuts_give_the_events_of_one_feed(lengths, data):
    events = [event(size, index + 1) for index, size in enumerate(lengths)]
    stream = b"".join(events)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    edges = [0, *cuts, len(stream)]
    pieces = [stream[start:end] for start, end in pairwise(edges)]
    splitter = EventSplitter()
    parts = feed_all(splitter, pieces)
    assert splitter.at_boundary
    assert joined(parts) == events
    assert joined(feed_all(EventSplitter(), [stream])) == events
    for part in parts:
        assert part.header == EventHeader.unpack(events[part.header.timestamp - 1])
        assert part.total_length == part.header.length
        whole = part.first and part.last
        assert whole or part.total_length > WHOLE_EVENT_BYTES_MAX
        assert not part.first or len(part.data) >= min(part.total_length, FIRST_PART_BYTES_MIN)
    for index in range(1, len(parts)):
        assert parts[index].first is parts[index - 1].last


@given(sizes)
def test_one_byte_at_a_time_up_to_the_first_part(lengths):
    events = [event(min(size, 150)) for size in lengths]
    stream = b"".join(events)
    splitter = EventSplitter()
    parts = feed_all(splitter, (stream[at : at + 1] for at in range(len(stream))))
    assert [part.data for part in parts] == events


def test_boundary_is_known_at_every_byte():
    events = [event(30), event(WHOLE_EVENT_BYTES_MAX + 1), event(19)]
    ends = {30, 30 + WHOLE_EVENT_BYTES_MAX + 1, 30 + WHOLE_EVENT_BYTES_MAX + 20}
    stream = b"".join(events)
    for end in (1, 18, 19, 29, 30, 31, 157, 158, 159, 70, *ends, *(edge - 1 for edge in ends)):
        splitter = EventSplitter()
        feed_all(splitter, [stream[:end]])
        assert splitter.at_boundary is (end in ends), end


def test_parts_of_a_piece_are_not_copied():
    stream = event(50) + event(WHOLE_EVENT_BYTES_MAX + 500)
    parts = list(EventSplitter().feed(stream))
    assert all(isinstance(part.data, memoryview) and part.data.obj is stream for part in parts)


def test_large_events_are_not_held_back():
    splitter = EventSplitter()
    stream = event(WHOLE_EVENT_BYTES_MAX * 4)
    given_out = 0
    for at in range(0, len(stream), 100):
        given_out += sum(len(part.data) for part in splitter.feed(stream[at : at + 100]))
        assert min(at + 100, len(stream)) - given_out < FIRST_PART_BYTES_MIN


@pytest.mark.parametrize("cut", [0, 5, 18, 19])
@pytest.mark.parametrize("length", [0, 18, 1001, 2**32 - 1])
def test_impossible_lengths_are_damage(length, cut):
    splitter = EventSplitter(event_bytes_max=1000)
    bad = EventHeader(0, 2, 1, length, 0, 0).pack()
    with pytest.raises(FormatError, match=f"Query event of {length} bytes; 19 to 1000"):
        feed_all(splitter, [event(25), bad[:cut], bad[cut:]])


def test_limits_themselves_pass():
    splitter = EventSplitter(event_bytes_max=1000)
    stream = event(1000) + event(19)
    assert [len(part.data) for part in splitter.feed(stream)] == [1000, 19]
