import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol import event
from ibb.protocol.errors import FormatError, Truncated
from ibb.protocol.event import EventFlag, EventHeader, EventType

u16, u32 = st.integers(0, 2**16 - 1), st.integers(0, 2**32 - 1)
headers = st.builds(EventHeader, u32, st.integers(0, 255), u32, u32, u32, u16)


def made_event(code=EventType.XID, body=b"\x01" * 8):
    length = event.HEADER_SIZE + len(body)
    return EventHeader(1700000000, code, 101, length, 0, 0).pack() + body


@given(headers, st.binary(max_size=5))
def test_header_round_trip_at_any_offset(header, before):
    assert EventHeader.unpack(before + header.pack() + b"more", len(before)) == header


def test_header_layout():
    raw = bytes.fromhex("00f15365 a2 01000000 26000000 44332211 0800")
    header = EventHeader.unpack(raw)
    assert header == EventHeader(0x6553F100, EventType.GTID, 1, 38, 0x11223344, 8)
    assert header.pack() == raw


@pytest.mark.parametrize("size", [0, 1, 18])
def test_cut_header_is_truncated(size):
    with pytest.raises(Truncated, match=f"only {size}"):
        EventHeader.unpack(bytes(19)[:size])


@given(st.binary(max_size=60))
def test_checksum_on_and_off_again(body):
    plain = made_event(body=body)
    checked = event.with_checksum(memoryview(plain))
    assert len(checked) == len(plain) + 4
    assert EventHeader.unpack(checked).length == len(checked)
    assert event.without_checksum(checked) == plain


@given(st.integers(0, 30 * 8 - 1))
def test_any_flipped_bit_is_noticed(bit):
    checked = bytearray(event.with_checksum(made_event(body=b"abcdefg")))
    assert len(checked) == 30
    checked[bit // 8] ^= 1 << bit % 8
    with pytest.raises(FormatError):
        event.without_checksum(checked)


def test_wrong_checksum_names_the_event():
    checked = bytearray(event.with_checksum(made_event()))
    checked[-1] ^= 1
    with pytest.raises(FormatError, match="Xid event has checksum"):
        event.without_checksum(checked)


def test_length_that_is_not_the_bytes_is_refused():
    with pytest.raises(FormatError, match="says 27 bytes and has 28"):
        event.check_event(made_event() + b"x")


def test_event_with_no_room_for_a_checksum_is_refused():
    with pytest.raises(FormatError, match="no room for a checksum"):
        event.without_checksum(made_event(body=b"xyz"))


def test_names_are_those_of_show_binlog_events():
    words = {
        2: "Query",
        5: "Intvar",
        13: "RAND",
        14: "User var",
        15: "Format_desc",
        16: "Xid",
        23: "Write_rows_v1",
        38: "XA_prepare",
        160: "Annotate_rows",
        161: "Binlog_checkpoint",
        162: "Gtid",
        163: "Gtid_list",
        164: "Start_encryption",
        165: "Query_compressed",
        166: "Write_rows_compressed_v1",
        250: "Unknown",
    }
    assert {code: event.type_name(code) for code in words} == words


def test_flags_are_those_on_the_wire():
    assert EventFlag.ARTIFICIAL | EventFlag.SKIP_REPLICATION == 0x8020
