"""Header pages, against worked examples and every way of being wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol.checksum import crc32c
from ibb.protocol.errors import FormatError
from ibb.storage.file_header import NO_XA, FileHeader
from ibb.storage.page_seal import seal_page

EXAMPLE = FileHeader(
    file_no=3, page_size=16384, page_count=16, lsn=1003, state_interval=4, oob_reference=3
)
EXAMPLE_START = bytes.fromhex(
    "fe fe 0d 01 0e 00 00 00 01 00 00 00 00 00 00 00"
    "03 00 00 00 00 00 00 00 10 00 00 00 00 00 00 00"
    "eb 03 00 00 00 00 00 00 04 00 00 00 00 00 00 00"
    "03 00 00 00 00 00 00 00 ff ff ff ff ff ff ff ff"
)
PAGE_CHECKSUMS = {
    1024: "c0 ed fc 30", 2048: "2d 2d 90 f5", 4096: "15 be 90 08", 8192: "c6 e0 79 00",
    16384: "dd 35 53 6a", 32768: "d5 f4 7b 7e", 65536: "74 52 0e be",
}  # fmt: skip

u64 = st.integers(0, 2**64 - 1)


def test_the_worked_example_byte_by_byte():
    page = EXAMPLE.encode()
    assert len(page) == 16384
    assert page[:64] == EXAMPLE_START
    assert page[64:508] == bytes(444)
    assert page[508:512] == bytes.fromhex("90 58 fb f3")
    assert page[512:-4] == bytes(16384 - 516)
    assert page[-4:] == bytes.fromhex("dd 35 53 6a")
    assert FileHeader.parse(page, 3) == EXAMPLE


@pytest.mark.parametrize("size", PAGE_CHECKSUMS)
@given(numbers=st.tuples(u64, u64, u64, u64))
def test_the_page_checksum_is_a_constant_of_the_page_size(size, numbers):
    file_no, count, lsn, interval = numbers
    header = FileHeader(
        file_no=file_no, page_size=size, page_count=count, lsn=lsn, state_interval=interval,
        oob_reference=0,
    )  # fmt: skip
    assert header.encode()[-4:] == bytes.fromhex(PAGE_CHECKSUMS[size])


def test_in_the_smallest_page_both_checksums_are_the_same_bytes():
    header = FileHeader(
        file_no=0, page_size=512, page_count=8, lsn=1000, state_interval=2, oob_reference=0
    )
    page = header.encode()
    assert page[508:] == bytes.fromhex("80 54 48 cd")
    assert FileHeader.parse(page, 0) == header


@given(st.integers(9, 16), st.lists(u64, min_size=6, max_size=6), st.sampled_from([0, 1]))
def test_what_is_encoded_is_parsed(exponent, numbers, major):
    file_no, count, lsn, interval, oob, xa = numbers
    header = FileHeader(
        file_no=file_no, page_size=1 << exponent, page_count=count, lsn=lsn,
        state_interval=interval, oob_reference=oob, xa_reference=xa, major=major, minor=3,
    )  # fmt: skip
    page = header.encode()
    assert FileHeader.parse(page, file_no) == header
    assert FileHeader.parse(page + b"what follows", file_no) == header


def test_an_unknown_oob_reference_means_the_file_itself():
    assert (
        FileHeader(
            file_no=9, page_size=512, page_count=8, lsn=0, state_interval=0, oob_reference=NO_XA
        ).lowest_oob_file
        == 9
    )
    assert EXAMPLE.lowest_oob_file == 3


def changed(offset, data):
    """Return the example with other bytes and right checksums."""
    page = bytearray(EXAMPLE.encode())
    page[offset : offset + len(data)] = data
    page[508:512] = crc32c(page[:508]).to_bytes(4, "little")
    seal_page(page)
    return bytes(page)


def test_a_higher_minor_version_is_read():
    assert FileHeader.parse(changed(12, b"\x05"), 3).minor == 5


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (bytes(16384), "Invalid or corrupt file header in file 'binlog-000003.ibb'"),
        (bytes(512) + b"\1" + bytes(15871), "Invalid or corrupt file header"),
        (EXAMPLE.encode()[:300], "Invalid or corrupt file header"),
        (EXAMPLE.encode()[:9000], "too short"),
        (b"\xff" + EXAMPLE.encode()[1:], "Invalid or corrupt file header"),
        (EXAMPLE.encode()[:70] + b"x" + EXAMPLE.encode()[71:], "Invalid or corrupt file header"),
        (EXAMPLE.encode()[:600] + b"x" + EXAMPLE.encode()[601:], "Page corruption .* number 0"),
        (changed(0, b"\xfebin"), "Invalid or corrupt file header"),
        (changed(8, b"\x02"), "Unsupported version of InnoDB binlog file, cannot read"),
        (changed(4, b"\x08"), "Invalid or corrupt file header"),
        (changed(4, b"\x11"), "Invalid or corrupt file header"),
        (changed(4, b"\xff\xff\xff\xff"), "Invalid or corrupt file header"),
        (changed(16, b"\x04"), "Inconsistent file header in file '.*3.ibb', wrong file_no 4"),
    ],
)  # fmt: skip
def test_every_damage_is_told(page, text):
    with pytest.raises(FormatError, match=text) as caught:
        FileHeader.parse(page, 3)
    assert (caught.value.file, caught.value.page) == ("binlog-000003.ibb", 0)
