"""Page checksums."""

import pytest

from ibb.protocol.errors import FormatError
from ibb.storage.page import check_page, page_is_zero, used_page
from ibb.storage.page_seal import seal_page, sealed_page


@pytest.mark.parametrize("size", [512, 1024, 16384, 65536])
def test_a_sealed_page_is_valid_and_any_flipped_bit_is_found(size):
    page = bytearray(range(256)) * (size // 256)
    seal_page(page)
    check_page(bytes(page), 3, 7)
    for at in (0, size // 2, size - 5, size - 4, size - 1):
        damaged = bytearray(page)
        damaged[at] ^= 0x10
        with pytest.raises(
            FormatError, match="Page corruption in binlog tablespace file page number 7"
        ):
            check_page(bytes(damaged), 3, 7)


def test_the_error_names_checksum_file_and_page():
    page = bytearray(b"x" * 512)
    page[-4:] = b"\x78\x56\x34\x12"
    with pytest.raises(FormatError) as caught:
        check_page(bytes(page), 3, 7)
    assert str(caught.value) == (
        "Page corruption in binlog tablespace file page number 7"
        " (invalid crc32 checksum 0x12345678) (file binlog-000003.ibb, page 7)"
    )


def test_a_page_that_is_zero_with_its_checksum_is_valid_but_not_used():
    check_page(bytes(512), 0, 1)
    assert page_is_zero(bytes(512))
    with pytest.raises(FormatError, match="all zero"):
        used_page(bytes(512), 512, 0, 1)


def test_zero_contents_with_another_checksum_are_damage():
    page = bytes(508) + b"\1\0\0\0"
    with pytest.raises(FormatError):
        check_page(page, 0, 1)
    sealed = sealed_page(bytes(512))
    assert sealed[:508] == bytes(508)
    assert sealed[508:] != bytes(4)
    check_page(sealed, 0, 1)


def test_half_a_page_is_no_page():
    with pytest.raises(FormatError, match="no such page"):
        used_page(b"x" * 511, 512, 0, 1)
