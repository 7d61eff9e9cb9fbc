"""
A page from its first byte until it is on the disk: a kernel.

A large group makes 64 of them a mebibyte. Runs as plain Python, too; `fifo_page.pxd` gives it C
types.
"""

from __future__ import annotations

from .page import CHECKSUM_SIZE


class FifoPage:
    """
    One page on its way to the disk.

    Attributes:
        data: the image, `page_size` bytes, checksum not yet in place.
        end: first byte of the checksum.
        used: bytes of content so far; the rest up to the checksum is zero.
        last_lsn: end of the last redo group that changed the page; it may be written once the
            redo log is durable up to there.
        complete: no more content will come.
        flushed_clean: incomplete, and its present content is on the disk; the next change must
            redo-log the whole page.
    """

    def __init__(self, file_no: int, page_no: int, page_size: int) -> None:
        self.file_no = file_no
        self.page_no = page_no
        self.data = bytearray(page_size)
        self.end = page_size - CHECKSUM_SIZE
        self.used = 0
        self.last_lsn = 0
        self.complete = False
        self.flushed_clean = False

    @property
    def room(self) -> int:
        """Bytes of content that still fit."""
        return self.end - self.used


def set_logged(pages: list[FifoPage], lsn: int) -> None:
    """Note that the changes of pages are logged up to *lsn*; full ones may go then."""
    for page in pages:
        page.last_lsn = lsn
        page.complete = page.used == page.end
