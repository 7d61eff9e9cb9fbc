import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol.errors import FormatError
from ibb.protocol.event import EventHeader, EventType, build_event
from ibb.protocol.heartbeat import Heartbeat

names = st.text(min_size=1, max_size=100)


@given(names, st.integers(4, 2**64 - 1), st.integers(0, 2**32 - 1), st.booleans())
def test_round_trip(name, position, server_id, wide):
    heartbeat = Heartbeat(name, position, server_id, wide)
    parsed = Heartbeat.parse(memoryview(heartbeat.encode()))
    assert (parsed.file_name, parsed.position, parsed.server_id) == (name, position, server_id)
    assert parsed.wide is (wide or position >= 2**32)


def test_narrow_and_wide_bytes():
    narrow = Heartbeat("bin.000001", 935, 101).encode()
    assert EventHeader.unpack(narrow) == EventHeader(0, 27, 101, 29, 935, 0)
    assert narrow[19:] == b"bin.000001"
    wide = Heartbeat("bin.000001", 2**40, 101).encode()
    assert EventHeader.unpack(wide) == EventHeader(0, 27, 101, 37, 0, 0)
    assert wide[19:] == (2**40).to_bytes(8, "little") + b"bin.000001"


@pytest.mark.parametrize(
    ("log_pos", "body"),
    [
        (3, b"bin.000001"),
        (0, b"bin.0000"),  # no name behind the position
        (0, bytes(8) + b"bin.000001"),  # position 0
        (935, b""),
        (935, b"\xff"),
    ],
)
def test_impossible_heartbeats_are_refused(log_pos, body):
    event = build_event(EventType.HEARTBEAT, body, timestamp=0, server_id=1, log_pos=log_pos)
    with pytest.raises(FormatError):
        Heartbeat.parse(event)
