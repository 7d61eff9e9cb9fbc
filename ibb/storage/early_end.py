"""
What is missing of an older file that ends early, told by the state that the next one begins with.

A file that a writer gave up ends early too, and has all the same every group that was logged
before the next one. Source: ibb-format 5.2, 7.3, 11.4.
"""

import logging
from collections.abc import Callable
from typing import Protocol

from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid

from .file_name import binlog_name
from .page_source import PageSource
from .position import Position
from .state_scan import find_state, read_state

GTIDS_TOLD_MAX = 3

_log = logging.getLogger(__name__)


class LimitedPages(PageSource, Protocol):
    """
    Pages that can be hidden.

    Attributes:
        limit: there is nothing from here on.
        early_ends: of the same files.
    """

    limit: Position | None
    early_ends: "EarlyEnds"

    def close(self) -> None:
        """Close the files."""


class EarlyEnds:
    """
    The older files of a directory that end early. Safe to use from several threads.

    Args:
        open_again: returns the pages of the directory for nobody else to use.
        tell: called with what is found of a file, once.

    Attributes:
        looks: find out what is lost; else nothing is.
    """

    def __init__(self, open_again: Callable[[], LimitedPages], tell: Callable[[str], None]) -> None:
        self._open_again = open_again
        self._tell = tell
        self._lost: dict[int, str] = {}  # by file
        self.looks = True

    def lost(self, file_no: int, where: str) -> str:
        """
        Return what is lost behind the early end of a file; empty: nothing.

        Args:
            file_no: of the file; there is a later one that holds data.
            where: that it ends, for people.

        Raises:
            DiskError: pages that have to be read cannot be.
        """
        if not self.looks:
            return ""
        lost = self._lost.get(file_no)
        if lost is None:
            what = f"data ends early, {where}"
            lost = f"{what}: {gtids}" if (gtids := self._find(file_no)) else ""
            self._lost[file_no] = lost
            finding = f"{binlog_name(file_no)}: {lost or what}"
            self._tell(finding)
            _log.warning("%s", finding)
        return lost

    def check(self, file_no: int) -> None:
        """
        Raise if something was found to be lost behind the end of a file.

        Raises:
            FormatError: it was.
        """
        if lost := self._lost.get(file_no):
            raise FormatError(lost, file=binlog_name(file_no))

    def forget(self, file_no: int) -> None:
        """Forget what was found of a file."""
        self._lost.pop(file_no, None)

    def forget_all(self) -> None:
        """Forget what was found of all files."""
        self._lost.clear()

    def _find(self, file_no: int) -> str:
        pages = self._open_again()
        pages.early_ends.looks = False
        try:
            lost = _lost_gtids(pages, file_no)
        except FormatError:
            return ""  # whoever reads what is damaged meets it
        finally:
            pages.close()
        return f"the groups up to {told_gtids(lost)} are missing" if lost else ""


def told_gtids(gtids: list[Gtid]) -> str:
    """Return the first of some GTIDs, and how many more there are."""
    told = ", ".join(map(str, gtids[:GTIDS_TOLD_MAX]))
    more = len(gtids) - GTIDS_TOLD_MAX
    return f"{told} and {more} more" if more > 0 else told


def _lost_gtids(pages: LimitedPages, file_no: int) -> list[Gtid]:
    """
    Return the newest GTIDs that the next file begins with and none up to its beginning has.

    None of them where the next file has no state to tell it by.
    """
    full = read_state(pages, file_no + 1, 1)
    if full is None:
        return []
    pages.limit = Position(file_no + 1, 0)
    passed = find_state(pages).state
    return [gtid for gtid in full.entries if not passed.contains(gtid)]
