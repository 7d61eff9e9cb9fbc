"""
Pages of a store that this process writes: what is durable, from the FIFO or from the files.

The durable offset is the end of data for every reader. Below it a page is either still in the
page FIFO or already in its file, because the FIFO lets go of a page only after writing it.
Source: ibb-format 7.4.
"""

from .directory import BinlogDirectory
from .durable import DurableOffset
from .file_header import FileHeader
from .page import CHECKSUM_SIZE
from .page_fifo import PageFifo
from .page_source import NO_MORE_DATA, NO_MORE_PAGES, PageRead, PageStatus


class LivePages:
    """
    The `PageSource` of a store.

    Args:
        fifo: pages that may not be in their files yet.
        durable: the limit.
        directory: the files.
    """

    tail_is_final = True

    def __init__(self, fifo: PageFifo, durable: DurableOffset, directory: BinlogDirectory) -> None:
        self._fifo = fifo
        self._durable = durable
        self._directory = directory

    def first_file(self) -> int:
        """Return the lowest file number."""
        return self._directory.first_file()

    def last_file(self) -> int:
        """Return the file in which the durable end lies."""
        return self._durable.end.file_no

    def header(self, file_no: int) -> FileHeader | None:
        """Return a file's header, or None when nothing of the file is durable."""
        if file_no > self._durable.end.file_no:
            return None
        page = self._fifo.copy(file_no, 0)
        if page is not None:
            return FileHeader.parse(page, file_no)
        return self._directory.header(file_no)

    def read_page(self, file_no: int, page_no: int) -> PageRead:
        """
        Return a page up to the durable end.

        Raises:
            FormatError: the page is damaged in the file.
            DiskError: it cannot be read.
        """
        end = self._durable.end
        if file_no > end.file_no:
            return NO_MORE_DATA
        header = self.header(file_no)
        if header is None:
            return NO_MORE_DATA
        start = page_no * header.page_size
        visible = header.page_size - CHECKSUM_SIZE
        if file_no == end.file_no:
            if start >= end.offset:
                return NO_MORE_DATA
            visible = min(visible, end.offset - start)
        elif start >= self._directory.size(file_no):
            return NO_MORE_PAGES
        page = self._fifo.copy(file_no, page_no)
        if page is None:
            page = self._directory.stored_page(file_no, page_no)
        return PageRead(page, visible, PageStatus.PAGE)
