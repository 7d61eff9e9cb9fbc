import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol import compint
from ibb.protocol.errors import FormatError, Truncated

pytestmark = pytest.mark.kernel

values = st.integers(0, 64).flatmap(lambda bits: st.integers(0, 2**bits - 1))

GOLDEN = [
    (0, "00"),
    (1, "08"),
    (0x1F, "f8"),
    (0x20, "01 01"),
    (0xF6, "b1 07"),
    (575, "f9 11"),
    (0x1FFF, "f9 ff"),
    (0x2000, "02 00 01"),
    (0xD34A, "52 9a 06"),
    (0x1FFFFF, "fa ff ff"),
    (0x1FFFFFFF, "fb ff ff ff"),
    (0xFFFFFFFF, "fc ff ff ff 07"),
    (0x1FFFFFFFFF, "fc ff ff ff ff"),
    (0x1FFFFFFFFFFF, "fd ff ff ff ff ff"),
    (2**53 - 1, "fe ff ff ff ff ff ff"),
    (2**53, "07 00 00 00 00 00 00 01 00"),
    (2**56, "07 00 00 00 00 00 00 08 00"),
    (2**61, "07 00 00 00 00 00 00 00 01"),
    (compint.VALUE_MAX, "ff ff ff ff ff ff ff ff 07"),
]


@pytest.mark.parametrize(("value", "text"), GOLDEN)
def test_golden_bytes_both_ways(value, text):
    raw = bytes.fromhex(text)
    assert compint.encode(value) == raw
    assert compint.decode(raw, 0) == (value, len(raw))
    out = bytearray(compint.SIZE_MAX)
    assert out[: compint.put(out, 0, value)] == raw


@given(values, st.integers(0, 9), st.integers(0, 9))
def test_what_is_put_into_a_buffer_is_what_encoding_returns(value, before, after):
    raw = compint.encode(value)
    out = bytearray(b"?" * (before + compint.SIZE_MAX + after))
    end = compint.put(out, before, value)
    assert out[before:end] == raw
    assert out[:before] + out[end:] == b"?" * (len(out) - len(raw))


@given(values, st.binary(max_size=9), st.binary(max_size=9))
def test_decoding_takes_its_own_bytes_and_no_neighbours(value, before, after):
    raw = compint.encode(value)
    assert len(raw) <= compint.SIZE_MAX
    for kind in (bytes, bytearray, memoryview):
        whole = kind(before + raw + after)
        assert compint.decode(whole, len(before)) == (value, len(before) + len(raw))


@given(values)
def test_every_proper_prefix_is_truncated(value):
    raw = compint.encode(value)
    for end in range(len(raw)):
        with pytest.raises(Truncated):
            compint.decode(raw[:end], 0)


@pytest.mark.parametrize("ninth", [8, 0x80, 0xFF])
def test_bits_above_63_are_damage_with_their_place(ninth):
    raw = b"\x00" + b"\xff" * 8 + bytes([ninth])
    with pytest.raises(FormatError, match="above 64 bits") as caught:
        compint.decode(raw, 1)
    assert caught.value.offset == 1
    assert not isinstance(caught.value, Truncated)


@given(st.integers(0, 31), st.integers(2, 7))
def test_longer_form_than_needed_is_accepted(value, size):
    raw = (value << 3 | size - 1).to_bytes(size, "little")
    assert compint.decode(raw, 0) == (value, size)


@pytest.mark.parametrize("value", [-1, 2**64])
def test_values_outside_64_bits_are_refused(value):
    with pytest.raises(ValueError, match="64-bit"):
        compint.encode(value)
