import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol.errors import FormatError
from ibb.protocol.event import EventHeader, with_checksum, without_checksum
from ibb.protocol.format_description import (
    CHECKSUM_CRC32,
    CHECKSUM_NONE,
    CHECKSUM_UNDEFINED,
    POST_HEADER_LENGTHS,
    FormatDescription,
)

u32 = st.integers(0, 2**32 - 1)
descriptions = st.builds(
    FormatDescription,
    timestamp=u32,
    server_id=u32,
    flags=st.integers(0, 2**16 - 1),
    binlog_version=st.just(4),
    server_version=st.text(st.characters(codec="latin-1", exclude_characters="\0"), max_size=50),
    created=u32,
    post_header_lengths=st.binary(min_size=1, max_size=200),
    checksum_alg=st.sampled_from([CHECKSUM_NONE, CHECKSUM_CRC32, CHECKSUM_UNDEFINED]),
)
STREAM_FLAGS = 0x21  # in use, artificial


def default():
    return FormatDescription.default("10.11.99-MariaDB-ibb", 7, 1700000000)


def test_default_has_the_sizes_of_the_wire_and_of_the_store():
    wire, stored = default().to_wire(CHECKSUM_CRC32), default().to_store()
    assert (len(wire), len(stored)) == (252, 248)
    assert EventHeader.unpack(wire) == EventHeader(1700000000, 15, 7, 252, 0, 0)
    assert EventHeader.unpack(stored) == EventHeader(1700000000, 15, 7, 248, 0, 0)
    assert wire[19:21] == b"\x04\x00"
    assert wire[21:71] == b"10.11.99-MariaDB-ibb".ljust(50, b"\0")
    assert wire[75] == 19
    assert wire[-5] == CHECKSUM_CRC32
    assert stored[-1] == CHECKSUM_NONE


def test_default_lengths_are_those_of_171_types():
    assert len(POST_HEADER_LENGTHS) == 171
    # QUERY, ROTATE, FORMAT_DESCRIPTION, TABLE_MAP, WRITE_ROWS_V1, ANNOTATE, GTID, GTID_LIST
    by_type = {code: POST_HEADER_LENGTHS[code - 1] for code in (2, 4, 15, 19, 23, 160, 162, 163)}
    assert by_type == {2: 13, 4: 8, 15: 57 + 171, 19: 8, 23: 8, 160: 0, 162: 19, 163: 4}


@given(descriptions, st.sampled_from([CHECKSUM_NONE, CHECKSUM_CRC32]), u32)
def test_wire_form_always_has_a_valid_checksum(described, alg, created):
    wire = described.to_wire(alg, created)
    without_checksum(wire)  # raises unless it is right
    parsed = FormatDescription.parse(wire, has_checksum=True)
    assert (parsed.checksum_alg, parsed.created) == (alg, created)
    assert parsed.post_header_lengths == described.post_header_lengths
    assert parsed.server_version == described.server_version


@given(descriptions)
def test_stored_form_keeps_all_but_checksum_and_stream_flags(described):
    parsed = FormatDescription.parse(memoryview(described.to_store()), has_checksum=False)
    assert parsed.checksum_alg == CHECKSUM_NONE
    assert parsed.flags == described.flags & ~STREAM_FLAGS
    assert parsed.created == described.created
    assert parsed.timestamp == described.timestamp
    assert parsed.to_store() == described.to_store()


def test_created_is_not_sent_unless_asked_for():
    assert default().created == 1700000000
    parsed = FormatDescription.parse(default().to_wire(CHECKSUM_NONE), has_checksum=True)
    assert parsed.created == 0


@pytest.mark.parametrize(
    ("offset", "value", "complaint"),
    [
        (19, 3, "binlog version 3"),
        (75, 20, "headers of 20 bytes"),
        (-1, 2, "checksum algorithm 2"),
        (4, 2, "Format_desc event wanted, found Query"),
        (9, 247, "says 247 bytes and has 248"),
    ],
)
def test_damage_is_named(offset, value, complaint):
    event = bytearray(default().to_store())
    event[offset] = value
    with pytest.raises(FormatError, match=complaint):
        FormatDescription.parse(event, has_checksum=False)


def test_wrong_checksum_is_refused():
    wire = bytearray(default().to_wire(CHECKSUM_NONE))
    wire[30] ^= 1
    with pytest.raises(FormatError, match="checksum"):
        FormatDescription.parse(wire, has_checksum=True)


def test_too_short_to_have_its_fields_is_refused():
    event = EventHeader(0, 15, 1, 19 + 57, 0, 0).pack() + bytes(57)
    with pytest.raises(FormatError, match="wants at least 77"):
        FormatDescription.parse(event, has_checksum=False)
    with pytest.raises(FormatError, match="wants at least 77"):
        FormatDescription.parse(with_checksum(event), has_checksum=True)
