"""Chunk headers and the walk over a page."""

import pytest

from ibb.storage.chunk import (
    CONTINUATION,
    LAST,
    chunk_area_end,
    chunk_header,
    last_chunk_start,
    read_chunk,
    used_end,
)


def test_the_area_ends_before_the_checksum_and_the_last_chunk_is_four_bytes():
    assert chunk_area_end(512) == 508
    assert last_chunk_start(512) == 504


@pytest.mark.parametrize(
    ("type_byte", "flags"),
    [(0x41, LAST), (0x01, 0), (0x81, CONTINUATION), (0xC1, CONTINUATION | LAST)],
)
def test_type_and_flags_are_told_apart(type_byte, flags):
    page = bytes(10) + chunk_header(type_byte, 5) + b"hello" + bytes(494)
    assert read_chunk(page, 10, 508) == (1, flags, 13, 5)


def test_lengths_that_cannot_be_are_refused():
    page = bytearray(512)
    page[500:503] = chunk_header(0x41, 5)
    assert read_chunk(bytes(page), 500, 508) == (1, LAST, 503, 5)
    page[501] = 6
    assert read_chunk(bytes(page), 500, 508) is None
    page[501] = 0
    assert read_chunk(bytes(page), 500, 508) is None


@pytest.mark.parametrize(
    ("chunks", "end"),
    [
        (b"", 0),
        (b"\x42\x02\x00\x00\x00", 5),
        (b"\x42\x02\x00\x00\x00\x41\x01\x00x", 9),
        (b"\x01\xf9\x01" + b"x" * 505, 508),
        (b"\x01\xf7\x01" + b"x" * 503 + b"\xff\xff", 508),
        (b"\x01\xf7\x01" + b"x" * 503, 508),  # no chunk fits in two bytes
        (b"\x41\xff\xff" + b"x", 508),  # reading will report it
    ],
)
def test_where_the_chunks_of_a_page_end(chunks, end):
    assert used_end(chunks.ljust(512, b"\0")) == end
