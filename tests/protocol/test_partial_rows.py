"""Fragments of a huge rows event: as they are for who knows them, the event itself for others."""

import struct

import pytest

from ibb.protocol.errors import FormatError, SqlError
from ibb.protocol.event import EventHeader, EventType, build_event, without_checksum
from ibb.protocol.event_encoder import EventEncoder
from ibb.protocol.stream_position import StreamPosition

from ..storage.events import fragments, rows_event, xid


def encoded(stored, piece_size=1000, **options):
    encoder = EventEncoder(True, False, 4, False, **options)
    pieces = (stored[at : at + piece_size] for at in range(0, len(stored), piece_size))
    events = []
    for part in encoder.encode_group(pieces):
        if part.first:
            events.append(b"")
        events[-1] += part.data
        if part.last:
            assert len(events[-1]) == part.total_length
    return [without_checksum(event) for event in events]


XID = xid(7)


@pytest.mark.parametrize("piece_size", [1, 100, 5000, 1 << 20])
@pytest.mark.parametrize(("size", "chunk_size"), [(500, 200), (500, 1000), (300_000, 100_000)])
def test_the_event_is_sent_in_place_of_its_fragments(size, chunk_size, piece_size):
    if piece_size == 1 and size > 1000:
        size, chunk_size = size // 100, chunk_size // 100
    event = rows_event(size)
    stored = b"".join(fragments(event, chunk_size)) + XID
    assert encoded(stored, piece_size) == [event, XID]


def test_two_events_one_behind_the_other():
    events = [rows_event(size) for size in (700, 90_000)]
    stored = b"".join(b"".join(fragments(event, 40_000)) for event in events) + XID
    assert encoded(stored) == [*events, XID]


def test_positions_count_the_event_and_not_its_fragments():
    event = rows_event(5000)
    places = StreamPosition("x.000001")
    (joined, _) = encoded(b"".join(fragments(event, 900)) + XID, positions=places)
    assert EventHeader.unpack(joined).log_pos == 4 + len(event) + 4


def test_who_knows_fragments_gets_them():
    stored = fragments(rows_event(5000), 900)
    assert encoded(b"".join(stored) + XID, join_fragments=False) == [*stored, XID]


def broken(change):
    pieces = fragments(rows_event(5000), 900)
    return b"".join(change(pieces)) + XID


@pytest.mark.parametrize(
    ("stored", "text"),
    [
        (broken(lambda pieces: pieces[1:]), "fragment 2 of 6 of a rows event behind 0 of 0"),
        (broken(lambda pieces: [pieces[0], *pieces[2:]]), "fragment 3 of 6"),
        (broken(lambda pieces: pieces[:-1]), "Xid event between fragments"),
        (broken(lambda pieces: [*pieces, pieces[-1]]), "fragment 6 of 6 of a rows event behind 0"),
        (broken(lambda pieces: [pieces[0], XID, *pieces[1:]]), "Xid event between fragments"),
        (b"".join(fragments(rows_event(5000), 900)[:-1]), "ends inside an event"),
        (b"".join(fragments(rows_event(5000), 900, size=5028)), "lack"),
        (b"".join(fragments(rows_event(5000), 900, size=5000)), "hold more than the first"),
        (b"".join(fragments(rows_event(5000), 10)), "does not hold its header"),
        (b"".join(fragments(XID, 100)), "make a Xid event"),
        (
            build_event(
                EventType.PARTIAL_ROW_DATA,
                struct.pack("<IIB", 1, 1, 0) + rows_event(10),
                timestamp=0,
                server_id=7,
            ),
            "does not say its size",
        ),
        (
            build_event(EventType.PARTIAL_ROW_DATA, b"12345678", timestamp=0, server_id=7),
            "event of only 27 bytes",
        ),
    ],
)
def test_what_does_not_make_an_event_is_damage(stored, text):
    with pytest.raises(FormatError, match=text):
        encoded(stored)


def test_an_event_that_no_client_takes_is_refused_in_mariadbs_words():
    stored = b"".join(fragments(rows_event(5000), 900, size=(1 << 30) + 1))
    with pytest.raises(SqlError, match="log event entry exceeded max_allowed_packet") as caught:
        encoded(stored)
    assert caught.value.code == 1236
