import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol.errors import FormatError
from ibb.protocol.event import EventFlag, EventType, build_event
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent, GtidExtraFlag, GtidFlag, XaId, read_gtid

u32, u64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
xa_ids = st.builds(XaId, u32, st.binary(max_size=64), st.binary(max_size=64))


@st.composite
def gtid_events(draw):
    flags2, extra = draw(st.integers(0, 255)), draw(st.integers(0, 31))
    return GtidEvent(
        gtid=Gtid(draw(u32), draw(u32), draw(st.integers(1, 2**64 - 1))),
        timestamp=draw(u32),
        flags2=flags2,
        commit_id=draw(u64) if flags2 & 2 else None,
        xa_id=draw(xa_ids) if flags2 & 0xC0 else None,
        flags_extra=extra,
        engines=draw(st.integers(0, 255)) if extra & 1 else None,
        alter_seq=draw(u64) if extra & 12 else None,
        thread_id=draw(u32) if extra & 16 else None,
        log_pos=draw(u32),
        flags=draw(st.integers(0, 65535)),
    )


@given(gtid_events())
def test_round_trip(made):
    event = made.encode()
    assert len(event) >= 38
    assert GtidEvent.parse(event) == GtidEvent.parse(memoryview(event)) == made
    assert read_gtid(memoryview(event)) == (made.gtid, made.flags2)
    assert made.standalone is bool(made.flags2 & 1)


CAPTURED = [  # bodies off the wire, without their checksums
    ("01000000000000000000000029000000000000", {"flags2": 0x29}),
    (
        "0200000000000000070000004c010000000200783101ff",
        {"flags2": 0x4C, "xa_id": XaId(1, b"x1", b""), "flags_extra": 1, "engines": 255},
    ),
    (
        "0300000000000000070000008d0100000002007831",
        {"flags2": 0x8D, "xa_id": XaId(1, b"x1", b"")},
    ),
    (
        "150000000000000000000000290414000000 00000000",
        {"flags2": 0x29, "flags_extra": GtidExtraFlag.COMMIT_ALTER, "alter_seq": 20},
    ),
    (
        "05000000000000000000000029100700000000",
        {"flags2": 0x29, "flags_extra": GtidExtraFlag.THREAD_ID, "thread_id": 7},
    ),
]


@pytest.mark.parametrize(("body", "fields"), CAPTURED)
def test_captured_events(body, fields):
    event = build_event(
        EventType.GTID,
        bytes.fromhex(body),
        timestamp=1,
        server_id=101,
        flags=EventFlag.SUPPRESS_USE,
    )
    parsed = GtidEvent.parse(event)
    assert {name: getattr(parsed, name) for name in fields} == fields
    assert parsed == GtidEvent(parsed.gtid, 1, **fields)
    assert parsed.encode() == event


def test_bytes_of_later_versions_survive():
    body = bytes.fromhex("0100000000000000000000000c 20 aabbccddee")
    event = build_event(EventType.GTID, body, timestamp=1, server_id=1, flags=8)
    parsed = GtidEvent.parse(event)
    assert parsed.rest == bytes.fromhex("aabbccddee")
    assert parsed.encode() == event


@pytest.mark.parametrize(
    "body",
    [
        bytes(12),
        bytes(19),  # seq 0
        b"\1" + bytes(11) + bytes([GtidFlag.GROUP_COMMIT_ID]) + bytes(7),
        b"\1" + bytes(11) + bytes([GtidFlag.PREPARED_XA]) + bytes(4) + b"\x41\0" + bytes(80),
        b"\1" + bytes(11) + bytes([GtidFlag.PREPARED_XA]) + bytes(4) + b"\x40\1" + bytes(64),
        b"\1" + bytes(11) + b"\0" + bytes([GtidExtraFlag.THREAD_ID]) + bytes(3),
    ],
)
def test_damage_is_refused(body):
    event = build_event(EventType.GTID, body, timestamp=1, server_id=1)
    with pytest.raises(FormatError):
        GtidEvent.parse(event)


def test_read_gtid_wants_a_gtid_event():
    query = build_event(EventType.QUERY, bytes(40), timestamp=1, server_id=1)
    with pytest.raises(FormatError, match="type 2, not with a GTID"):
        read_gtid(query)
    with pytest.raises(FormatError, match="only 31 bytes"):
        read_gtid(bytes(31))


@pytest.mark.parametrize(("place", "value"), [(4, EventType.XID), (9, 37), (9, 39)])
def test_one_of_the_usual_form_is_of_its_type_and_length(place, value):
    event = bytearray(GtidEvent(Gtid(0, 1, 5), 7, 0).encode())
    assert GtidEvent.parse(event).gtid == Gtid(0, 1, 5)
    event[place] = value
    with pytest.raises(FormatError):
        GtidEvent.parse(event)
