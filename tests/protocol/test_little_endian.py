"""Numbers are read lowest byte first, from any place, and nothing beside them is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol.little_endian import number_at

pytestmark = pytest.mark.kernel


@given(st.binary(max_size=9), st.integers(0, 8), st.data())
def test_a_number_is_what_its_bytes_say(before, size, data):
    value = data.draw(st.integers(0, 256**size - 1))
    for behind in (b"", b"\xff" * 9):
        whole = before + value.to_bytes(size, "little") + behind
        for form in (bytes, bytearray, memoryview):
            assert number_at(form(whole), len(before), size) == value
