import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol.errors import SqlError
from ibb.protocol.event import EventFlag, EventHeader, EventType, build_event, check_event
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent, XaId
from ibb.protocol.stand_in import replace_with_begin, replace_with_dummy


def event(size, code=EventType.GTID_LIST):
    return bytearray(
        build_event(
            code,
            b"\xee" * (size - 19),
            timestamp=1700000000,
            server_id=101,
            flags=EventFlag.THREAD_SPECIFIC | EventFlag.SKIP_REPLICATION,
        )
    )


@pytest.mark.parametrize(
    ("size", "name"), [(25, b"!"), (26, b"!d"), (32, b"!dummyva"), (33, b"!dummyvar")]
)
def test_short_event_becomes_a_user_variable_that_is_null(size, name):
    stand_in = event(size)
    replace_with_dummy(stand_in)
    header = check_event(stand_in)
    assert header == EventHeader(1700000000, EventType.USER_VAR, 101, size, 0, 0x8008)
    assert stand_in[19:] == len(name).to_bytes(4, "little") + name + b"\1"


@pytest.mark.parametrize("size", [34, 42, 100])
def test_longer_event_becomes_a_comment(size):
    stand_in = event(size)
    replace_with_dummy(stand_in)
    header = check_event(stand_in)
    assert header == EventHeader(1700000000, EventType.QUERY, 101, size, 0, 0x8008)
    assert stand_in[19:33] == bytes(14)  # post-header and the NUL of an empty db name
    text = bytes(stand_in[33:])
    comment = b"# Dummy event replacing event type 163 that slave cannot handle."
    assert text == comment.ljust(67)[: size - 33]


def test_event_too_short_for_either_gets_1236():
    with pytest.raises(SqlError, match="1236") as caught:
        replace_with_dummy(event(24, EventType.ANNOTATE_ROWS))
    assert "Annotate_rows event" in caught.value.message


@pytest.mark.parametrize(
    "fields",
    [{}, {"commit_id": 9}, {"xa_id": XaId(1, b"g" * 64, b"b" * 64)}],
)
def test_gtid_of_a_transaction_becomes_begin(fields):
    flags2 = 0x0C | (2 if "commit_id" in fields else 0) | (0x40 if "xa_id" in fields else 0)
    original = GtidEvent(Gtid(0, 101, 7), 1700000000, flags2, **fields).encode()
    stand_in = bytearray(original)
    replace_with_begin(stand_in)
    header = check_event(stand_in)
    assert header == EventHeader(1700000000, EventType.QUERY, 101, len(original), 0, 0x8)
    status_size = len(original) - 19 - 19
    post_header = bytes(11) + status_size.to_bytes(2, "little")
    assert stand_in[19:] == post_header + b"\xff" * status_size + b"\0BEGIN"


def test_gtid_too_short_for_begin_gets_1236():
    with pytest.raises(SqlError, match="corrupt event"):
        replace_with_begin(event(37, EventType.GTID))


@given(st.integers(25, 300), st.integers(0, 65535))
def test_length_and_other_flags_stay(size, flags):
    original = build_event(EventType.GTID, bytes(size - 19), timestamp=1, server_id=1, flags=flags)
    stand_in = bytearray(original)
    replace_with_dummy(stand_in)
    assert len(stand_in) == size
    assert check_event(stand_in).flags == flags & ~0x4 | 0x8
