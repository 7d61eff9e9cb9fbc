"""A page as a unit of bytes with a checksum in its last four. Source: ibb-format 3.3, 4."""

import struct

from ibb.protocol.checksum import crc32c
from ibb.protocol.errors import FormatError

from .file_name import binlog_name

PAGE_SIZE_MIN = 512  # bytes
PAGE_SIZE_MAX = 65536  # bytes
CHECKSUM_SIZE = 4  # bytes

_CHECKSUM = struct.Struct("<I")
_ZEROS = bytes(PAGE_SIZE_MAX)


def page_is_zero(data: bytes | memoryview) -> bool:
    """Tell whether a page (or any bytes up to the largest page) is all zero: never used."""
    if data and data[0]:  # as in nearly all that are used: to compare all would copy as many zeros
        return False
    return data == _ZEROS[: len(data)]


def page_checksum(data: bytes | bytearray | memoryview) -> int:
    """Return the CRC-32C of a page's bytes without its last four."""
    return crc32c(memoryview(data)[:-CHECKSUM_SIZE])


def check_page(data: bytes | memoryview, file_no: int, page_no: int) -> None:
    """
    Check the checksum of a whole page.

    An all-zero page is valid though its checksum is not: test `page_is_zero` where it matters.

    Raises:
        FormatError: the checksum is wrong and the page is not all zero.
    """
    (stored,) = _CHECKSUM.unpack_from(data, len(data) - CHECKSUM_SIZE)
    if stored == page_checksum(data) or page_is_zero(data):  # the one never looks like the other
        return
    raise FormatError(
        f"Page corruption in binlog tablespace file page number {page_no}"
        f" (invalid crc32 checksum 0x{stored:08X})",
        file=binlog_name(file_no),
        page=page_no,
    )


def used_page(data: bytes, page_size: int, file_no: int, page_no: int) -> bytes:
    """
    Return a page that must be whole and used, and is.

    Raises:
        FormatError: *data* is shorter than a page, all zero, or has a wrong checksum.
    """
    if len(data) < page_size:
        raise FormatError("file has no such page", file=binlog_name(file_no), page=page_no)
    if page_is_zero(data):
        raise FormatError(
            "page is all zero although it must be used", file=binlog_name(file_no), page=page_no
        )
    check_page(data, file_no, page_no)
    return data
