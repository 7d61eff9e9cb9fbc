"""
How far a file is used, told from its pages alone.

A page is used if it is not all zero, and pages are used in order, so the last one is found by
bisection. What lies behind it is looked at once, so that a hole is noticed and not taken for the
end of data. Source: ibb-format 7.3, 14.
"""

from typing import NamedTuple

from .open_files import OpenFiles
from .page import page_is_zero


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
        return not page_is_zero(files.read(file_no, page_no * page_size, page_size))

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
        # If one of these is used there is a hole, or they were written since the bisection.
        for page_no in range(low + 1, pages):
            if files.read(file_no, page_no * page_size, 1) != b"\0":
                low = page_no
    return UsedPages(low, pages)
