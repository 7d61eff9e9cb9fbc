"""Events of a list leave in pieces of one size, however they came, and few of them are copied."""

import random

import pytest

from ibb.storage.event_list import EventList
from ibb.storage.group_shape import GroupShape

from .events import query, rows_event, xid

pytestmark = pytest.mark.kernel

PIECE = 1000


def placed(event, log_pos):
    return event[:13] + log_pos.to_bytes(4, "little") + event[17:]


def open_list():
    """Return a list that is inside of a transaction, and the bytes that it has."""
    events, begin = EventList(), query("BEGIN")
    for part in events.feed(begin):
        events.shape = GroupShape(None)
        events.shape.add(part)
        events.keep(part)
    assert events.takes_plain
    return events, begin


@pytest.mark.parametrize("seed", range(40))
def test_pieces_are_the_same_however_events_come(seed):
    rng = random.Random(seed)
    events, whole = open_list()
    written, given = b"", whole

    def write(pieces):
        nonlocal written
        assert len(pieces) % PIECE == 0
        size = PIECE * rng.randint(1, len(pieces) // PIECE)
        written += pieces[:size]
        return size

    for _ in range(rng.choice((1, 3, 20))):
        position = rng.choice((0, 0, 9))
        data = [rows_event(rng.choice((5, 80, 700, 2500))) for _ in range(rng.choice((1, 4, 15)))]
        more = b"".join(placed(event, rng.choice((0, position))) for event in data)
        buffer = bytearray(more)
        assert events.take_plain(memoryview(buffer), PIECE, write) == len(more)
        buffer[:] = bytes(len(more))  # it is the caller's again
        given += b"".join(data)
        assert len(written) == len(given) - len(given) % PIECE
        assert events.size == len(given) % PIECE
    assert written + events.contents() == given
    assert events.takes_plain


def test_what_is_no_plain_event_is_left():
    events, _ = open_list()
    before = events.contents()
    assert events.take_plain(memoryview(xid(1)), PIECE, None) == 0
    rows = rows_event(50)
    assert events.take_plain(memoryview(rows + xid(1)), PIECE, None) == len(rows)
    assert events.contents() == before + rows


def test_what_needs_no_change_is_handed_out_from_where_it_lies():
    events, begin = open_list()
    data, sources = b"".join([rows_event(700)] * 20), []

    def write(pieces):
        sources.append((pieces.obj, len(pieces)))
        return len(pieces)

    events.take_plain(memoryview(data), PIECE, write)
    (first, size), *others = sources
    assert first is not data
    assert size == PIECE  # the beginning of a piece was there
    assert [source is data for source, _ in others] == [True]
    assert PIECE + others[0][1] == (len(begin) + len(data)) // PIECE * PIECE
    sources.clear()
    events.take_plain(memoryview(placed(data, 9)), PIECE, write)
    assert not any(source is data for source, _ in sources)


def test_a_savepoint_keeps_what_was_there_while_more_is_handed_out():
    events, begin = open_list()
    rows = rows_event(100)
    events.take_plain(memoryview(rows), PIECE, None)
    mark = events.save()
    events.take_plain(memoryview(rows_event(300) * 30), PIECE, len)
    events.restore(mark)
    assert events.contents() == begin + rows
    assert events.take_plain(memoryview(rows), PIECE, None) == len(rows)
    assert events.contents() == begin + rows + rows
