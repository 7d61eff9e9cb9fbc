"""
Checksums into pages, one or many at a time: a kernel.

Runs as plain Python, too; `page_seal.pxd` gives it C types. Source: ibb-format 3.3, 4.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython

from ibb.protocol.checksum import crc32c

from .page import CHECKSUM_SIZE, PAGE_SIZE_MAX, PAGE_SIZE_MIN

_checksum_size = CHECKSUM_SIZE


def seal_pages(pages: list[bytearray]) -> None:
    """Put the checksum into the last four bytes of each of *pages*."""
    for page in pages:
        seal_page(page)


def seal_page(page: bytearray) -> None:
    """Put the checksum into the last four bytes of *page*."""
    assert PAGE_SIZE_MIN <= len(page) <= PAGE_SIZE_MAX
    _seal(page)


def sealed_page(page: bytes | bytearray) -> bytes:
    """Return a copy of *page* with its checksum, for a page that may still grow."""
    copy = bytearray(page)
    seal_page(copy)
    return bytes(copy)


def _seal(page: bytearray) -> None:
    end = len(page) - _checksum_size
    if cython.compiled:
        checksum = crc32c_at(cython.address(page[0]), end, 0)  # noqa: F821
    else:
        checksum = crc32c(memoryview(page)[:end])
    for place in range(_checksum_size):
        page[end + place] = checksum >> 8 * place & 255
