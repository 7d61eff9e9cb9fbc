import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol.errors import FormatError
from ibb.protocol.event import EventType, build_event
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_list import GtidList, GtidListFlag

u32 = st.integers(0, 2**32 - 1)
gtids = st.lists(st.builds(Gtid, u32, u32, st.integers(0, 2**64 - 1)), max_size=5).map(tuple)


@given(gtids, u32, u32, st.sampled_from([0, int(GtidListFlag.UNTIL_REACHED)]), u32)
def test_round_trip(entries, timestamp, server_id, list_flags, log_pos):
    made = GtidList(entries, timestamp, server_id, list_flags, log_pos, 0x20)
    assert GtidList.parse(memoryview(made.encode())) == made


def test_until_list_bytes():
    """As a primary ends a dump with UNTIL: two entries, bit 28, artificial, timestamp 0."""
    made = GtidList.fake(
        [Gtid(7, 101, 8), Gtid(0, 101, 31)], server_id=101, list_flags=GtidListFlag.UNTIL_REACHED
    )
    assert made.encode() == bytes.fromhex(
        "00000000 a3 65000000 37000000 00000000 2000 02000010"
        "07000000 65000000 0800000000000000 00000000 65000000 1f00000000000000"
    )
    assert made.until_reached
    assert not GtidList.fake([], 101).until_reached


def test_empty_list_is_padded():
    assert GtidList.fake([], server_id=1).encode()[19:] == bytes(6)


def test_relay_log_list_gives_its_gtids_without_the_sub_ids():
    entry = bytes.fromhex("07000000 65000000 0800000000000000")
    word = (1 | GtidListFlag.IGN_GTIDS).to_bytes(4, "little")
    event = build_event(EventType.GTID_LIST, word + entry + bytes(8), timestamp=1, server_id=1)
    assert GtidList.parse(event).gtids == (Gtid(7, 101, 8),)


@pytest.mark.parametrize(
    "body", [bytes(5), b"\1\0\0\0" + bytes(15), b"\xff\xff\xff\x0f" + bytes(16)]
)
def test_fewer_entries_than_announced_is_damage(body):
    event = build_event(EventType.GTID_LIST, body, timestamp=1, server_id=1)
    with pytest.raises(FormatError):
        GtidList.parse(event)
