"""Pages that will not change any more, kept for readers that come back to them."""

import threading
from collections import OrderedDict

CACHE_BYTES_MAX = 4 << 20


class PageCache:
    """
    The pages used last, up to `CACHE_BYTES_MAX` bytes. Safe to use from several threads.

    Args:
        bytes_max: bytes of page images kept.
    """

    def __init__(self, bytes_max: int = CACHE_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._mutex = threading.Lock()
        self._pages: OrderedDict[tuple[int, int], bytes] = OrderedDict()  # longest unused first

    def get(self, file_no: int, page_no: int) -> bytes | None:
        """Return the image of a page, or None if it is not here."""
        key = (file_no, page_no)
        with self._mutex:
            data = self._pages.get(key)
            if data is not None:
                self._pages.move_to_end(key)
            return data

    def put(self, file_no: int, page_no: int, data: bytes) -> None:
        """Keep a page that is full and checked."""
        key = (file_no, page_no)
        with self._mutex:
            if key in self._pages:
                return
            self._pages[key] = data
            self._bytes += len(data)
            while self._bytes > self._bytes_max:
                self._bytes -= len(self._pages.popitem(last=False)[1])

    def clear(self) -> None:
        """Forget all pages."""
        with self._mutex:
            self._pages.clear()
            self._bytes = 0
