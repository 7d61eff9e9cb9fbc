"""
How far a file is used, told from its pages alone.

A page is used if it is not all zero, and pages are used in order, so the last one is found by
bisection. What lies behind it is looked at once, as far as the file has anything there, so that a
hole is noticed and not taken for the end of data. A page that cannot be read is judged by its
neighbours: whoever wants to read it will be told, and an unused one harms nobody.
Source: ibb-format 7.3, 14.
"""

from typing import NamedTuple

from .errors import DiskError
from .open_files import OpenFiles
from .page import page_is_zero

_NEIGHBOURS_MAX = 16  # pages looked at on each side of one that cannot be read
_WINDOW_BYTES = 1 << 20  # read at a time; whole pages of any size


class UsedPages(NamedTuple):
    """
    How far a file is used.

    Attributes:
        last: its last used page; 0: only the header.
        sure: the same without pages at the end that cannot be read: they might be unused.
        pages: how many whole pages it has.
    """

    last: int
    sure: int
    pages: int

    @property
    def all_used(self) -> bool:
        """Whether the file is used to its physical end."""
        return self.sure == self.pages - 1


def find_used_pages(
    files: OpenFiles, file_no: int, page_size: int, known: int, *, is_sure: bool = True
) -> UsedPages:
    """
    Find how far a file is used.

    Args:
        files: to read it.
        file_no: which.
        page_size: bytes.
        known: a page up to which it is known to be used; 0: nothing is known.
        is_sure: that it still is, which is looked at otherwise.

    Raises:
        DiskError: it cannot be read.
    """
    pages = files.size(file_no) // page_size
    look = _Look(files, file_no, page_size)
    if not is_sure and not (known < pages and look.at(known)):
        known = 0
    last = _find_last(look, pages, known)
    if look.has_failed:
        while last > known and look.at(last) is False:
            last -= 1  # this time it could be read
    sure = last
    while look.has_failed and sure > known and look.at(sure) is None:
        sure -= 1
    return UsedPages(last, sure, pages)


def _find_last(look: "_Look", pages: int, known: int) -> int:
    if known == 0 and pages > 1 and look.is_used(pages - 1, pages):
        return pages - 1  # the usual case of a file that is not the newest
    low, high = known, pages
    if known:  # it has not gone far
        step = 1
        while low + step < high and look.is_used(low + step, pages):
            low += step
            step *= 2
        high = min(high, low + step)
    while high - low > 1:
        middle = (low + high) // 2
        if look.is_used(middle, pages):
            low = middle
        else:
            high = middle
    if known == 0:
        # If one of the others is used there is a hole, or it was written since the bisection.
        low = max(low, look.last_begun(range(low + 1, pages)))
    return low


class _Look:
    """
    Looks at the pages of a file.

    Attributes:
        has_failed: some could not be read.
    """

    def __init__(self, files: OpenFiles, file_no: int, page_size: int) -> None:
        self._files = files
        self._file_no = file_no
        self._page_size = page_size
        self.has_failed = False

    def at(self, page_no: int) -> bool | None:
        """Tell whether a page is used; None: it cannot be read."""
        at, size = page_no * self._page_size, self._page_size
        try:
            return not page_is_zero(self._files.read(self._file_no, at, size))
        except DiskError as error:
            if error.missing:
                raise
            self.has_failed = True
            return None

    def is_used(self, page_no: int, pages: int) -> bool:
        """Tell whether a page is used; an unreadable one is if its neighbours are, or may be."""
        used = self.at(page_no)
        if used is not None:
            return used
        for after in range(page_no + 1, min(page_no + _NEIGHBOURS_MAX, pages)):
            used = self.at(after)
            if used is not None:
                break
        if used:
            return True
        for before in range(page_no - 1, max(page_no - _NEIGHBOURS_MAX, 0), -1):
            used = self.at(before)
            if used is not None:
                return used
        return True

    def last_begun(self, pages: range) -> int:
        """Return the last page of *pages* whose first byte is not zero; 0 if there is none."""
        page_size = self._page_size
        last, at, end = 0, pages.start * page_size, pages.stop * page_size
        while at < end and (found := self._files.next_data(self._file_no, at)) is not None:
            at = max(at, found // page_size * page_size)
            begun = self._begun(at, min(_WINDOW_BYTES, end - at))
            if not begun:
                break  # it has been cut meanwhile
            if used := begun.rstrip(b"\0"):
                last = at // page_size + len(used) - 1
            else:  # what was read, or read ahead, counts as data until it is forgotten
                self._files.forget_cached(self._file_no, at, end - at)
            at += len(begun) * page_size
        return last

    def _begun(self, at: int, size: int) -> bytes:
        """Return the first byte of each page; zero where it cannot be read."""
        page_size = self._page_size
        try:
            return bytes(self._files.read(self._file_no, at, size)[::page_size])
        except DiskError as error:
            if error.missing:
                raise
            self.has_failed = True
        first = at // page_size
        return bytes(bool(self.at(first + place)) for place in range(size // page_size))
