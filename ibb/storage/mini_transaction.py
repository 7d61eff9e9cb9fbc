"""
A mini-transaction: the page changes of one record, logged together or not at all.

While it runs, the pages it touches keep their place in the page FIFO but are not yet marked
complete, so that none can reach the disk before its redo.
"""

from typing import Protocol

from .disk import Buffer
from .fifo_page import FifoPage
from .file_header import HEADER_FIELDS_SIZE
from .redo_record import Change


class ChangeLog(Protocol):
    """Makes changes certain: the redo log."""

    @property
    def next_lsn(self) -> int:
        """Where the next group begins."""

    @property
    def synced_lsn(self) -> int:
        """Everything before is durable."""

    @property
    def takes_small(self) -> bool:
        """Whether a change inside one page can be appended as things are."""

    def append(self, changes: list[Change]) -> int:
        """Add one group; return the LSN behind it."""

    def append_small(self, change: Change) -> int:
        """As `append` for a single change, faster; only if `takes_small`."""

    def append_run(self, groups: list[Buffer], size: int) -> int:
        """Add groups that are encoded already, *size* bytes; return the LSN behind them."""


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

    def commit(self, redo: ChangeLog) -> int:
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
