"""
The page FIFO: pages from their first byte until they are on the disk.

The writer appends pages at the tail, in file order; the head leaves in the same order once it is
full and written. So a page is written once, and whoever looks for a page finds it here or, if it
is not here any more, in its file.

Latching. Only the holder of the store's write lock changes the bytes of a page, and only behind
`used`. Readers take copies and look at nothing past the durable offset, which never lies behind
`used`. The mutex here guards the queue alone and is held for a few instructions; disk access
happens outside it. A page is taken out only after it was written, never before.
"""

import threading
from collections import deque

from .fifo_page import FifoPage


class PageFifo:
    """
    The queue.

    Args:
        pages_max: pages held before the writer has to wait for the disk. One record may
            overshoot it by its own pages.
    """

    def __init__(self, pages_max: int) -> None:
        self.pages_max = pages_max
        self._mutex = threading.Lock()
        self._queue: deque[FifoPage] = deque()
        self._by_place: dict[tuple[int, int], FifoPage] = {}

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def is_full(self) -> bool:
        """Whether the writer must make room before it appends more."""
        return len(self._queue) >= self.pages_max

    def append(self, file_no: int, page_no: int, page_size: int) -> FifoPage:
        """Add the next page at the tail and return it."""
        page = FifoPage(file_no, page_no, page_size)
        with self._mutex:
            assert not self._queue or _follows(self._queue[-1], page)
            self._queue.append(page)
            self._by_place[file_no, page_no] = page
        return page

    def copy(self, file_no: int, page_no: int) -> bytes | None:
        """Return the page's image as it is now, or None when it is not (any more) here."""
        with self._mutex:
            page = self._by_place.get((file_no, page_no))
            return None if page is None else bytes(page.data)

    def complete_run(self, durable_lsn: int, pages_max: int) -> list[FifoPage]:
        """
        Return pages that may be written now, from the head on, all of one file.

        Args:
            durable_lsn: pages with later changes stay.
            pages_max: at most so many.
        """
        run: list[FifoPage] = []
        with self._mutex:
            for page in self._queue:
                if not page.complete or page.last_lsn > durable_lsn or len(run) == pages_max:
                    break
                if run and page.file_no != run[0].file_no:
                    break
                run.append(page)
        return run

    def release(self, run: list[FifoPage]) -> None:
        """Drop pages from the head that have been written."""
        with self._mutex:
            for page in run:
                head = self._queue.popleft()
                assert head is page
                del self._by_place[page.file_no, page.page_no]

    def holds_file(self, file_no: int) -> bool:
        """Tell whether pages of that file still wait."""
        with self._mutex:
            return bool(self._queue) and self._queue[0].file_no <= file_no


def _follows(page: FifoPage, following: FifoPage) -> bool:
    if page.file_no == following.file_no:
        return page.page_no + 1 == following.page_no
    return page.file_no + 1 == following.file_no and following.page_no == 0
