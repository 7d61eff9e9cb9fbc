"""
Runs of pages in big reads, for who passes through gigabytes of history.

What is read at once are pages that cannot change any more. Where the first of them is not right in
its file, because it is damaged or has not been written yet, pages come from the `PageSource` one
by one, which knows what to do about either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.errors import FormatError

from .chunk import chunk_area_end
from .errors import DiskError
from .file_header import MAJOR_FINAL
from .page_source import PageStatus
from .record_walker import count_good

if TYPE_CHECKING:
    from .file_header import FileHeader
    from .history import History
    from .open_files import OpenFiles

RUN_BYTES: Final = 256 << 10  # read at a time
SINGLE_PAGES_MAX: Final = 16  # that are asked for one by one


class PageRun(NamedTuple):
    """
    Pages of one file that follow one another.

    Attributes:
        data: their images, checked.
        page_size: bytes.
        first: number of the first one.
        pages: how many there are.
        visible: bytes of the last one that may be looked at.
    """

    data: bytes
    page_size: int
    first: int
    pages: int
    visible: int


class PageRuns:
    """
    The runs of a history's files.

    Args:
        history: where they are.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._pages = history.pages
        self._files: OpenFiles = history.pages._files  # type: ignore[attr-defined] # noqa: SLF001 - of one house

    def header(self, file_no: int) -> FileHeader | None:
        """Return the header of a file whose records can be walked over, or None."""
        try:
            header = self._pages.header(file_no)
        except (FormatError, DiskError):
            return None  # who reads on is told
        if header is None or header.major != MAJOR_FINAL or header.lowest_oob_file > file_no:
            return None
        return header

    def load(self, header: FileHeader, page_no: int) -> PageRun | None:
        """Return pages of a file from one on, or None if it is not there, or damaged."""
        file_no, page_size = header.file_no, header.page_size
        try:
            whole = self._whole_pages(header) - page_no
            count = min(RUN_BYTES // page_size, whole)
            if count > 1:
                data = self._files.read(file_no, page_no * page_size, count * page_size)
                good = count_good(data, page_size)
                if good < count:
                    good -= 1  # the last one that was written may have grown since
                if good > 1 or good == count:
                    return PageRun(data, page_size, page_no, good, chunk_area_end(page_size))
        except DiskError:
            pass  # one by one it will be seen which page is at fault
        return self._singly(header, page_no)

    def _whole_pages(self, header: FileHeader) -> int:
        """Return the number of a file's first page that is not there as a whole, or may not be."""
        end = self._history.end()
        if header.file_no < end.file_no:
            return self._files.size(header.file_no) // header.page_size
        return end.offset // header.page_size if header.file_no == end.file_no else 0

    def _singly(self, header: FileHeader, page_no: int) -> PageRun | None:
        page_size, images, visible = header.page_size, [], 0
        area_end = chunk_area_end(page_size)
        try:
            for number in range(page_no, page_no + SINGLE_PAGES_MAX):
                read = self._pages.read_page(header.file_no, number)
                if not read.end or len(read.data) < page_size:
                    break
                images.append(read.data)
                visible = read.end
                if visible < area_end or read.status is not PageStatus.PAGE:
                    break
        except (FormatError, DiskError):
            pass  # who reads on is told
        if not images:
            return None
        return PageRun(b"".join(images), page_size, page_no, len(images), visible)
