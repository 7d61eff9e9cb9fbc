"""
From the page FIFO to the files: full pages once, in order, never ahead of the redo log.

Source: ibb-format 9.3, 9.5.
"""

import threading

from .binlog_files import BinlogFiles
from .fifo_page import FifoPage
from .page_fifo import PageFifo
from .page_seal import seal_page, seal_pages
from .redo import RedoLog

RUN_PAGES_MAX = 64  # pages handed to the disk in one write


class PageFlusher:
    """
    Writes pages. Safe to call from several threads; one of them writes at a time.

    Args:
        fifo: where pages wait.
        files: where they go.
        redo: tells which changes are certain.

    Attributes:
        unsynced: bytes written since somebody set it to 0, before a sync of the files.
    """

    def __init__(self, fifo: PageFifo, files: BinlogFiles, redo: RedoLog) -> None:
        self.unsynced = 0
        self._fifo = fifo
        self._files = files
        self._redo = redo
        self._turn = threading.Lock()

    def flush(self) -> None:
        """
        Write all full pages whose redo is durable.

        Raises:
            DiskError: a page could not be written; it stays in the FIFO.
        """
        with self._turn:
            while run := self._fifo.complete_run(self._redo.synced_lsn, RUN_PAGES_MAX):
                images = [page.data for page in run]
                seal_pages(images)
                first = run[0]
                if first.page_no == 0:
                    self._files.sync_before(first.file_no - 1)  # recovery looks at two files only
                self._files.file(first.file_no).write_at(first.page_no * len(first.data), images)
                self.unsynced += len(images) * len(first.data)
                self._fifo.release(run)

    def flush_partial(self, page: FifoPage) -> None:
        """
        Write the incomplete last page as it is; its next change logs the whole of it.

        The caller holds the store's write lock, so the page cannot change meanwhile.
        """
        assert not page.complete
        assert page.last_lsn <= self._redo.synced_lsn
        with self._turn:
            seal_page(page.data)
            self._files.file(page.file_no).write_at(page.page_no * len(page.data), page.data)
        page.flushed_clean = True
