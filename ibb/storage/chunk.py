"""
Chunks: what a page is filled with, and what records are cut into.

    chunk := type(1) length(2) data(length)

The type byte holds the record type in its low six bits, and whether the chunk is the record's
last and whether it is a continuation, i.e. not its first. Source: ibb-format 4.
"""

import struct

from .page import CHECKSUM_SIZE

CHUNK_HEADER_SIZE = 3  # bytes
CHUNK_SIZE_MIN = 4  # bytes: data is never empty
TYPE_MASK = 0x3F
LAST = 0x40
CONTINUATION = 0x80
FILLER = 0xFF  # as a type byte: no more chunks in this page
UNUSED = 0  # as a type byte: nothing written from here on

_HEADER = struct.Struct("<BH")


def chunk_area_end(page_size: int) -> int:
    """Return the offset in a page behind its last possible chunk byte."""
    return page_size - CHECKSUM_SIZE


def last_chunk_start(page_size: int) -> int:
    """Return the last offset in a page where a chunk can begin; what lies behind is filler."""
    return page_size - CHECKSUM_SIZE - CHUNK_SIZE_MIN


def chunk_header(type_byte: int, length: int) -> bytes:
    """Return the three bytes before *length* data bytes."""
    assert length > 0
    return _HEADER.pack(type_byte, length)


def read_chunk(page: bytes, start: int, end: int) -> tuple[int, int, int, int] | None:
    """
    Read the header of the chunk at byte *start* of a page.

    Args:
        page: the page image.
        start: offset of the type byte, neither `FILLER` nor `UNUSED`; at most *end* - 4.
        end: the end of the chunk area.

    Returns:
        record type, flags (`LAST`, `CONTINUATION`), offset of the data, length of the data; or
        None if the length is 0 or passes *end*.
    """
    type_byte, length = _HEADER.unpack_from(page, start)
    data_start = start + CHUNK_HEADER_SIZE
    if length == 0 or data_start + length > end:
        return None
    return type_byte & TYPE_MASK, type_byte & ~TYPE_MASK, data_start, length


def used_end(page: bytes) -> int:
    """
    Return where the chunks of a page end: the first unused byte, or the end of the chunk area.

    A page with filler, or with a chunk that cannot be walked over (reading it will report it),
    counts as full.
    """
    end = chunks_end(page)
    return end if end <= last_chunk_start(len(page)) else chunk_area_end(len(page))


def chunks_end(page: bytes) -> int:
    """
    Return where the next chunk of a page would begin, or where filler is due.

    A page that has its filler, or a chunk that cannot be walked over, ends at its chunk area's end.
    """
    end = chunk_area_end(len(page))
    last_start = last_chunk_start(len(page))
    start = 0
    while start <= last_start and page[start] != FILLER:
        if page[start] == UNUSED:
            return start
        chunk = read_chunk(page, start, end)
        if chunk is None:
            break
        start = chunk[2] + chunk[3]
    return start if start > last_start and page[start:end] == bytes(end - start) else end
