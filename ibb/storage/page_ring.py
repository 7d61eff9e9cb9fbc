"""
Pages of one file, read one piece behind the other into memory that is used round and round: a
kernel.

A walker that comes to the end of what there is gets more without the interpreter, and in memory
that is still in the processor's caches. What was read stays until its place is needed: it is there
for who goes back from a commit record to its pieces. Here is only what is as it should be; all else
is for `PageRuns`, which knows what to do about it. Runs as plain Python, too; `page_ring.pxd` gives
it C types. Every length is checked against what holds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython

if not cython.compiled:  # else the .pxd names them
    from .os_read import read_into
    from .record_walker import good_pages

if TYPE_CHECKING:
    from .record_walker import RecordWalker


class PageRing:
    """
    Pages of one file at a time.

    Args:
        memory: for them.
        at_a_time: bytes that are read, but for a page that is larger.
    """

    def __init__(self, memory: memoryview, at_a_time: int) -> None:
        self._memory, self._at_a_time = memoryview(memory), at_a_time
        self._file_no = self._page_size = self._room = self._first = self._end = self._turn = 0
        self._descriptor, self._stop = -1, 0

    def open(
        self, walker: RecordWalker, file_no: int, page_size: int, descriptor: int, stop: int
    ) -> bool:
        """
        Read a file from now on, for a walker that gets what it wants first; False: there is none.

        Args:
            walker: takes the pages.
            file_no: of the file; pages of the one before are forgotten.
            page_size: bytes.
            descriptor: to read it by, while it is lent.
            stop: number of the page behind those that are whole.
        """
        if (file_no, page_size) != (self._file_no, self._page_size):
            self._file_no, self._page_size = file_no, page_size
            self._room = len(self._memory) // page_size
            if not self._room:
                raise ValueError(f"{len(self._memory)} bytes for pages of {page_size}")
            self._first = self._end = self._turn = 0
        self._descriptor, self._stop = descriptor, stop
        page = walker.wanted_page(page_size)
        is_there = self._first <= page < self._end or self._has_read(page)
        if is_there or walker.left == 0:  # else it is inside a page that lies elsewhere
            walker.enter(self._memory, page_size)
            walker.show(self._first, self._end, self._turn)
        return is_there

    def follow(self, walker: RecordWalker) -> bool:
        """Have a walker go on that was put somewhere else in the file; False: that is not there."""
        page = walker.page
        if walker.left > 0 and not (self._first <= page < self._end or self._has_read(page)):
            return False
        walker.show(self._first, self._end, self._turn)
        return True

    def more(self, walker: RecordWalker) -> bool:
        """Have the walker get more pages than it has; tell whether there were any."""
        has_more = self._has_read(walker.page)
        walker.show(self._first, self._end, self._turn)
        return has_more

    def _has_read(self, page: int) -> bool:
        """Read from a page on, or behind what is there if it is; tell whether that gave pages."""
        if not self._first <= page < self._end:
            if page != self._end or self._first == self._end:
                self._first, self._turn = page, 0
            self._end = page
        count = min(max(self._at_a_time // self._page_size, 1), self._stop - self._end)
        spot = (self._turn + self._end - self._first) % self._room
        count = min(count, self._room - spot, page + self._room - self._end)
        if count <= 0:
            return False  # there are no more, or it is a record that is larger than the ring
        over = self._end + count - self._first - self._room
        if over > 0:
            self._first += over
            self._turn = (self._turn + over) % self._room
        good = self._read(spot, count)
        if good < count:
            good = max(good - 1, 0)  # the last one that was written may have grown since
        self._end += good
        return good > 0

    def _read(self, spot: int, count: int) -> int:
        """Return how many of some pages were read and are right."""
        at, size = spot * self._page_size, count * self._page_size
        room = self._memory[at : at + size]
        done = read_into(self._descriptor, room, self._end * self._page_size)
        return good_pages(room, self._page_size, done // self._page_size)
