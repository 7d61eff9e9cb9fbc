from crcmod.predefined import mkPredefinedCrcFun
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol import checksum

crc32c_oracle = mkPredefinedCrcFun("crc-32c")
crc32_oracle = mkPredefinedCrcFun("crc-32")


def test_check_values():
    assert checksum.crc32c(b"123456789") == 0xE3069283
    assert checksum.crc32(b"123456789") == 0xCBF43926


@given(st.binary(max_size=300), st.integers(0, 300))
def test_pieces_give_what_the_whole_gives(data, cut):
    head, tail = data[:cut], data[cut:]
    assert checksum.crc32c(data) == crc32c_oracle(data)
    assert checksum.crc32(data) == crc32_oracle(data)
    assert checksum.crc32c(memoryview(tail), checksum.crc32c(bytearray(head))) == crc32c_oracle(
        data
    )
    assert checksum.crc32(memoryview(tail), checksum.crc32(bytearray(head))) == crc32_oracle(data)


@given(st.binary(max_size=300), st.integers(0, 300))
def test_crc32c_without_the_compiled_module_is_the_same(data, cut):
    plain = checksum.choose_crc32c(compiled=False)
    assert plain(data[cut:], plain(data[:cut], 0)) == checksum.crc32c(data)
