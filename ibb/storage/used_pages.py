"""
How far a file is used, told from its pages alone.

A page is used if it is not all zero, and pages are used in order, so the last one is found by
bisection. What lies behind it is looked at once, as far as the file has anything there, so that a
hole is noticed and not taken for the end of data. Source: ibb-format 7.3, 14.
"""

from typing import NamedTuple

from .errors import DiskError
from .open_files import OpenFiles
from .page import page_is_zero

_WINDOW_BYTES = 1 << 20  # read at a time; whole pages of any size


class UsedPages(NamedTuple):
    """The last used page of a file (0: only the header), and how many whole pages it has."""

    last: int
    pages: int

    @property
    def all_used(self) -> bool:
        """Whether the file is used to its physical end."""
        return self.last == self.pages - 1


def find_used_pages(files: OpenFiles, file_no: int, page_size: int, known: int) -> UsedPages:
    """
    Find how far a file is used.

    Args:
        files: to read it.
        file_no: which.
        page_size: bytes.
        known: a page up to which it is known to be used; 0: nothing is known.

    Raises:
        DiskError: it cannot be read.
    """

    def is_used(page_no: int) -> bool:
        try:
            return not page_is_zero(files.read(file_no, page_no * page_size, page_size))
        except DiskError as error:
            if error.missing:
                raise
            return True  # whoever wants to read it will be told

    pages = files.size(file_no) // page_size
    if known == 0 and pages > 1 and is_used(pages - 1):
        return UsedPages(pages - 1, pages)  # the usual case of a file that is not the newest
    low, high = known, pages
    if known:  # it has not gone far
        step = 1
        while low + step < high and is_used(low + step):
            low += step
            step *= 2
        high = min(high, low + step)
    while high - low > 1:
        middle = (low + high) // 2
        if is_used(middle):
            low = middle
        else:
            high = middle
    if known == 0:
        # If one of the others is used there is a hole, or it was written since the bisection.
        low = max(low, _last_begun(files, file_no, page_size, range(low + 1, pages)))
    return UsedPages(low, pages)


def _read_window(files: OpenFiles, file_no: int, at: int, size: int) -> bytes:
    """Read bytes of a file; what cannot be read counts as used, like a page."""
    try:
        return files.read(file_no, at, size)
    except DiskError as error:
        if error.missing:
            raise
        return b"?" * size


def _last_begun(files: OpenFiles, file_no: int, page_size: int, pages: range) -> int:
    """Return the last page of *pages* whose first byte is not zero; 0 if there is none."""
    last, at, end = 0, pages.start * page_size, pages.stop * page_size
    while at < end and (found := files.next_data(file_no, at)) is not None:
        at = max(at, found // page_size * page_size)
        window = _read_window(files, file_no, at, min(_WINDOW_BYTES, end - at))
        if not window:
            break  # it has been cut meanwhile
        begun = window[::page_size].rstrip(b"\0")
        if begun:
            last = at // page_size + len(begun) - 1
        at += len(window)
    return last
