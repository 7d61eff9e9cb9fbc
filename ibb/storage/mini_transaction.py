"""
A mini-transaction: the page changes of one record, logged together or not at all.

While it runs, the pages it touches keep their place in the page FIFO but are not yet marked
complete, so that none can reach the disk before its redo.
"""

from typing import NamedTuple

from .chunk import CHUNK_HEADER_SIZE
from .file_header import HEADER_FIELDS_SIZE
from .page import CHECKSUM_SIZE
from .page_fifo import FifoPage
from .redo import RedoLog
from .redo_record import CHANGE_HEADER_SIZE, GROUP_HEADER_SIZE, Change


class MiniTransaction:
    """The changes of one record and of the state records and headers that came in its way."""

    def __init__(self) -> None:
        self._changed: list[tuple[FifoPage, int]] = []  # page, first changed byte
        self._full: list[FifoPage] = []

    def touch(self, page: FifoPage) -> None:
        """Note that bytes are about to be added to *page*."""
        if self._changed and self._changed[-1][0] is page:
            return  # adjacent bytes of one page are one change
        self._changed.append((page, 0 if page.flushed_clean else page.used))
        page.flushed_clean = False

    def fill(self, page: FifoPage) -> None:
        """Note that *page* has got its last byte."""
        self._full.append(page)

    def commit(self, redo: RedoLog) -> int:
        """
        Log the changes as one redo group and let the full pages go; return the LSN behind it.

        Raises:
            StoreFailed: the redo log takes nothing more.
        """
        lsn = redo.append(
            [
                Change(page.file_no, page.page_no, start, bytes(page.data[start : _logged(page)]))
                for page, start in self._changed
            ]
        )
        for page, _ in self._changed:
            page.last_lsn = lsn
        for page in self._full:
            page.complete = True
        return lsn


def _logged(page: FifoPage) -> int:
    return HEADER_FIELDS_SIZE if page.page_no == 0 else page.used


class RecordBound(NamedTuple):
    """The most that one record can take."""

    redo_bytes: int
    pages: int


def bound_of(record_bytes: int, state_bytes: int, page_size: int, interval: int) -> RecordBound:
    """
    Return the most redo log and pages that one record can take.

    Args:
        record_bytes: the record's data.
        state_bytes: a full state record's data.
        page_size: of the pages it goes to.
        interval: pages between state records, 0 for none.
    """
    payload_per_page = page_size - CHUNK_HEADER_SIZE - CHECKSUM_SIZE
    record_pages = record_bytes // payload_per_page + 2
    states = 2 + (record_pages // interval if interval else 0)
    content = record_bytes + states * state_bytes
    pages = content // payload_per_page + states + 4
    overhead = pages * (CHANGE_HEADER_SIZE + 2 * CHUNK_HEADER_SIZE) + page_size + GROUP_HEADER_SIZE
    return RecordBound(content + overhead, pages)
