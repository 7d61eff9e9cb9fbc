"""Every field type round-trips, and no cut or hostile length reads as data."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol.errors import FormatError, Truncated
from ibb.protocol.fields import FieldReader, lenenc, lestr, u24, zstr

lengths = st.integers(0, 64).flatmap(lambda bits: st.integers(0, 2**bits - 1))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "00"),
        (0xFA, "fa"),
        (0xFB, "fc fb 00"),
        (0xFFFF, "fc ff ff"),
        (0x10000, "fd 00 00 01"),
        (0xFFFFFF, "fd ff ff ff"),
        (0x1000000, "fe 00 00 00 01 00 00 00 00"),
        (2**64 - 1, "fe ff ff ff ff ff ff ff ff"),
    ],
)
def test_lenenc_takes_the_shortest_form(value, text):
    raw = bytes.fromhex(text)
    assert lenenc(value) == raw
    assert FieldReader(raw).lenenc() == value


@given(lengths, st.binary(max_size=9), st.binary(max_size=9))
def test_lenenc_takes_its_own_bytes_and_no_neighbours(value, before, after):
    reader = FieldReader(before + lenenc(value) + after, len(before))
    assert reader.lenenc() == value
    assert reader.rest() == after


@given(lengths)
def test_a_cut_lenenc_is_truncated(value):
    raw = lenenc(value)
    for end in range(len(raw)):
        with pytest.raises(Truncated):
            FieldReader(raw[:end]).lenenc()


def test_longer_forms_of_a_small_value_are_accepted():
    assert FieldReader(bytes.fromhex("fc 05 00")).lenenc() == 5


def test_null_is_a_value_of_a_row_only():
    assert FieldReader(b"\xfb").lenenc_or_null() is None
    assert FieldReader(b"\xfb").lestr_or_null() is None
    with pytest.raises(FormatError, match="NULL where an integer"):
        FieldReader(b"\xfb").lestr()


def test_ff_is_no_length():
    with pytest.raises(FormatError, match=r"greeting: ff is no length \(offset 2\)"):
        FieldReader(b"..\xff12345678", 2, what="greeting").lenenc()


@given(st.binary(max_size=300), st.binary(max_size=9))
def test_strings_round_trip(text, after):
    assert FieldReader(lestr(text)).lestr_or_null() == text
    plain = text.replace(b"\0", b".")
    reader = FieldReader(lestr(text) + zstr(plain) + bytes([len(text) & 127]) + after)
    assert reader.lestr() == text
    assert reader.zstr() == plain
    assert reader.data[reader.offset] == len(text) & 127


def test_a_huge_claimed_length_takes_no_memory():
    with pytest.raises(Truncated, match=r"18446744073709551615 bytes wanted, 1 left"):
        FieldReader(b"\xfe" + b"\xff" * 8 + b"x").lestr()


def test_a_string_without_nul_is_truncated_and_stays_unread():
    reader = FieldReader(b"abc")
    with pytest.raises(Truncated, match="no NUL"):
        reader.zstr()
    assert reader.offset == 0


@given(
    st.tuples(*(st.integers(0, 2 ** (8 * size) - 1) for size in (1, 2, 3, 4, 6, 8))),
    st.sampled_from([bytes, bytearray, memoryview]),
)
def test_fixed_integers_are_little_endian_in_any_buffer(values, kind):
    raw = b"".join(
        value.to_bytes(size, "little")
        for value, size in zip(values, (1, 2, 3, 4, 6, 8), strict=True)
    )
    reader = FieldReader(kind(raw))
    assert values == (
        reader.u8(),
        reader.u16(),
        reader.u24(),
        reader.u32(),
        reader.u48(),
        reader.u64(),
    )
    reader.expect_end()
    assert u24(values[2]) == raw[3:6]


@pytest.mark.parametrize("method", ["u8", "u16", "u24", "u32", "u48", "u64"])
def test_a_cut_integer_is_truncated(method):
    size = int(method[1:]) // 8
    for have in range(size):
        with pytest.raises(Truncated):
            getattr(FieldReader(bytes(have)), method)()


def test_skip_and_u8str_stay_inside():
    reader = FieldReader(b"\x01\x02\x03abcd")
    reader.skip(2)
    assert reader.u8str() == b"abc"
    with pytest.raises(Truncated):
        reader.skip(2)
    with pytest.raises(FormatError, match=r"payload: 1 bytes after the last field \(offset 6\)"):
        reader.expect_end()
