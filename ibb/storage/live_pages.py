"""
Pages of a store that this process writes: what is durable, from the FIFO or from the files.

The durable offset is the end of data for every reader. Below it a page is either still in the
page FIFO or already in its file, because the FIFO lets go of a page only after writing it; the
page that is begun never leaves it. Source: ibb-format 7.4.
"""

from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid

from .chunk import chunk_area_end
from .disk import Disk
from .durable import DurableOffset
from .errors import DiskError
from .file_beginning import read_beginning
from .file_header import FileHeader
from .file_name import binlog_name
from .file_states import FileStates
from .healed_reads import HealedReads
from .listing import list_files
from .open_files import OpenFiles
from .page import check_page, page_is_zero
from .page_cache import PageCache
from .page_fifo import PageFifo
from .page_source import NO_MORE_DATA, NO_MORE_PAGES, PageRead, PageStatus


class LivePages:
    """
    The `PageSource` of a store.

    Args:
        fifo: pages that may not be in their files yet.
        durable: the limit.
        disk: where the files are.
        directory: path of the store.
        healed: counts second reads that helped.
    """

    tail_is_final = True

    def __init__(
        self,
        fifo: PageFifo,
        durable: DurableOffset,
        disk: Disk,
        directory: str,
        healed: HealedReads | None = None,
    ) -> None:
        self.healed = healed or HealedReads()
        self.file_states = FileStates()
        self._fifo = fifo
        self._durable = durable
        self._disk = disk
        self._directory = directory
        self._files = OpenFiles(disk, directory, self.healed)
        self._cache = PageCache()
        self._headers: dict[int, FileHeader] = {}
        self._sizes: dict[int, int] = {}  # of files that the durable end has left
        self._removal = object()  # another one with each file that goes
        self._first = (object(), 0)  # the lowest number, and the removal that it was seen behind

    def close(self) -> None:
        """Close the files; reading opens them again."""
        self._files.close()

    def forget(self, file_no: int) -> None:
        """Close a file that is gone."""
        self._files.drop(file_no)
        self._headers.pop(file_no, None)
        self._sizes.pop(file_no, None)
        self.file_states.forget(file_no)
        self._removal = object()

    def first_file(self) -> int:
        """Return the lowest file number."""
        removal, first = self._first
        if removal is not self._removal:
            removal = self._removal  # before looking: what goes meanwhile is looked for again
            first = next(iter(list_files(self._disk, self._directory)), 0)
            self._first = removal, first
        return first

    def last_file(self) -> int:
        """Return the file in which the durable end lies."""
        return self._durable.end.file_no

    def file_numbers(self) -> list[int]:
        """Return the numbers of the files up to the last, in order."""
        last = self.last_file()
        return [number for number in list_files(self._disk, self._directory) if number <= last]

    def header(self, file_no: int) -> FileHeader | None:
        """
        Return a file's header, or None when the file is gone or nothing of it is durable.

        Raises:
            FormatError: it is damaged.
            DiskError: it cannot be read.
        """
        if file_no > self._durable.end.file_no:
            return None
        header = self._headers.get(file_no)
        if header is None:
            page = self._fifo.copy(file_no, 0)
            if page is None:
                try:
                    header = self._stored_header(file_no)
                except DiskError as error:
                    if error.missing:
                        self._removal = object()
                        return None
                    raise
            else:
                header = FileHeader.parse(page, file_no)
            self._headers[file_no] = header
        return header

    def _stored_header(self, file_no: int) -> FileHeader:
        return self._files.read_header(file_no, lambda start: FileHeader.parse(start, file_no))

    def first_state(self, file_no: int) -> list[Gtid] | None:
        """Return the entries that a file begins with; None: only its page 1 may tell."""
        if file_no + 1 >= self._durable.end.file_no:
            return None  # not all pages of the newest two need be in their files
        found = read_beginning(self._files, file_no)
        if found is None:
            return None
        self._headers.setdefault(file_no, found.header)
        self._cache.put(file_no, 1, found.page)  # where few groups are in each file, that is next
        return found.entries

    def read_page(self, file_no: int, page_no: int) -> PageRead:
        """
        Return a page up to the durable end.

        Raises:
            FormatError: the page is damaged in the file.
            DiskError: it cannot be read.
        """
        end = self._durable.end
        header = self.header(file_no)
        if header is None:
            return NO_MORE_DATA
        start = page_no * header.page_size
        visible = chunk_area_end(header.page_size)
        if file_no == end.file_no:
            if start >= end.offset:
                return NO_MORE_DATA
            visible = min(visible, end.offset - start)
        elif start >= (size := self._size(file_no, header)):
            if page_no == 1:  # every file holds a state, however short it was cut
                text = f"file too short: {size} bytes"
                raise FormatError(text, file=binlog_name(file_no), page=0)
            return NO_MORE_PAGES
        page = self._fifo.copy(file_no, page_no)
        if page is None:
            page = self._stored_page(file_no, page_no, header.page_size)
        return PageRead(page, visible, PageStatus.PAGE)

    def _size(self, file_no: int, header: FileHeader) -> int:
        size = self._sizes.get(file_no)
        if size is None:
            size = self._files.size(file_no)
            size -= size % header.page_size  # part of a page, which nobody has written
            self._sizes[file_no] = size
        return size

    def _stored_page(self, file_no: int, page_no: int, page_size: int) -> bytes:
        page = self._cache.get(file_no, page_no)
        if page is not None:
            return page

        def check(page: bytes) -> bytes:
            if len(page) < page_size or page_is_zero(page):
                raise FormatError(
                    "page is missing or all zero although it was written",
                    file=binlog_name(file_no),
                    page=page_no,
                )
            check_page(page, file_no, page_no)
            return page

        page = self._files.read_page(file_no, page_no, page_size, check)
        self._cache.put(file_no, page_no, page)
        return page
