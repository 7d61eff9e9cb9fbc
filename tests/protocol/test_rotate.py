import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol.errors import FormatError
from ibb.protocol.event import EventType, build_event
from ibb.protocol.rotate import FILE_NAME_BYTES_MAX, Rotate

u32 = st.integers(0, 2**32 - 1)
names = st.text(min_size=1, max_size=100)


@given(st.builds(Rotate, names, st.integers(0, 2**64 - 1), u32, u32, u32, st.integers(0, 65535)))
def test_round_trip(rotate):
    assert Rotate.parse(memoryview(rotate.encode())) == rotate


def test_fake_rotate_bytes():
    """As captured in front of a dump, without its checksum."""
    wanted = bytes.fromhex("00000000 04 65000000 25000000 00000000 2000 0400000000000000")
    assert Rotate.fake("bin.000001", server_id=101).encode() == wanted + b"bin.000001"


@pytest.mark.parametrize("size", [0, FILE_NAME_BYTES_MAX + 1])
def test_file_name_of_impossible_size_is_refused(size):
    event = build_event(EventType.ROTATE, bytes(8) + b"x" * size, timestamp=0, server_id=1)
    with pytest.raises(FormatError):
        Rotate.parse(event)


def test_longest_file_name_passes():
    name = "x" * FILE_NAME_BYTES_MAX
    assert Rotate.parse(Rotate.fake(name, 1).encode()).file_name == name


def test_file_name_that_is_no_text_is_refused():
    """A checksum taken for a part of the name looks like this."""
    event = build_event(
        EventType.ROTATE, bytes(8) + b"bin.000001/\xf3\xdf\x9b", timestamp=0, server_id=1
    )
    with pytest.raises(FormatError, match="not UTF-8"):
        Rotate.parse(event)
