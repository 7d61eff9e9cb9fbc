"""
A place in the endless stream of chunks, and the steps from one chunk to the next.

Pages and files follow one another here; what the chunks mean is the record reader's business.
Source: ibb-format 4, 4.2, 7.1, 7.2.
"""

import copy
from typing import Self

from ibb.protocol.errors import FormatError

from .chunk import CHUNK_HEADER_SIZE, FILLER, UNUSED, chunk_area_end, last_chunk_start
from .file_name import binlog_name
from .page_source import PageSource, PageStatus
from .position import Position


class ChunkCursor:
    """
    Takes chunks one after the other.

    Args:
        source: the pages.
        start: where to begin, a chunk's beginning. An offset inside the header page means page
            1, also of a file that does not exist yet.

    Attributes:
        page_size: of the present file, in bytes; 0 before the first chunk was looked for.
        major: format version of the present file.
        at_page_start: the start was the beginning of a page, where a record may be going on.
        type_byte: of the chunk taken last.
        data: contents of that chunk; a view of the page, valid as long as it is held.
    """

    def __init__(self, source: PageSource, start: Position) -> None:
        self.source = source
        self.page_size = 0
        self.major = 0
        self.at_page_start = True
        self.type_byte = 0
        self.data = memoryview(b"")
        self._file_no, self._start_offset = start
        self._page_no = 0
        self._place = 0  # in the page: where the next chunk is looked for
        self._chunk_place = 0  # where the chunk taken last is
        self._page: bytes | None = None
        self._end = 0
        self._status = PageStatus.END_OF_DATA
        self._last_start = 0
        self._area_end = 0

    @property
    def file_no(self) -> int:
        """The present file."""
        return self._file_no

    @property
    def position(self) -> Position:
        """Where the next chunk is looked for."""
        if not self.page_size:
            return Position(self._file_no, self._start_offset)
        return Position(self._file_no, self._page_no * self.page_size + self._place)

    @property
    def chunk_position(self) -> Position:
        """Where the chunk taken last is."""
        return Position(self._file_no, self._page_no * self.page_size + self._chunk_place)

    def copy(self) -> Self:
        """Return an independent cursor at the same place."""
        return copy.copy(self)

    def next(self) -> bool:
        """
        Take the next chunk; return False, and stay, if it is not there (yet).

        Raises:
            FormatError: the page is damaged, or what stands here is no chunk.
        """
        while True:
            page = self._page
            if page is None:
                if not (self.page_size or self._begin()) or not self._load():
                    return False
                continue
            place = self._place
            if place > self._last_start:
                self._turn_page()
                continue
            if place >= self._end:
                if self._status is PageStatus.END_OF_FILE and self._next_file():
                    continue
                self._page = None  # it may grow
                return False
            type_byte = page[place]
            if type_byte == FILLER:
                self._turn_page()
                continue
            self._chunk_place = place
            if type_byte == UNUSED:
                raise self.error("nothing is written here although data follows")
            start = place + CHUNK_HEADER_SIZE
            end = start + (page[place + 1] | page[place + 2] << 8)
            if end == start or end > self._area_end:
                raise self.error(
                    f"Invalid record of type 0x{type_byte:02x} (invalid chunk length {end - start})"
                )
            if end > self._end:  # only part of it may be seen: as good as nothing
                self._page = None
                return False
            self.type_byte = type_byte
            self.data = memoryview(page)[start:end]
            self._place = end
            return True

    def unread(self) -> None:
        """Step back before the chunk taken last, and forget its page, which may grow."""
        self._place = self._chunk_place
        self._page = None

    def peek(self) -> int | None:
        """Return the byte at the very place of the cursor; None if no data is there."""
        if (self.page_size or self._begin()) and (self._page or self._load()):
            page = self._page
            if page is not None and self._place < self._end:
                return page[self._place]
        return None

    def error(self, what: str) -> FormatError:
        """Return an error that names the place of the chunk taken last."""
        name = binlog_name(self._file_no)
        return FormatError(what, file=name, page=self._page_no, offset=self._chunk_place)

    def _begin(self) -> bool:
        """Go to the start; return False if its file is not there yet."""
        return self._enter_file(self._file_no, self._start_offset)

    def _turn_page(self) -> None:
        self._page_no += 1
        self._place = 0
        self._page = None

    def _load(self) -> bool:
        """Get the present page; return False at the end of data."""
        read = self.source.read_page(self._file_no, self._page_no)
        if read.status is PageStatus.END_OF_DATA and read.end <= self._place:
            return False
        self._page, self._end, self._status = read
        return True

    def _next_file(self) -> bool:
        """Go on at page 1 of the next file; return False, and stay, if it is not there yet."""
        at_page_start = self.at_page_start
        if not self._enter_file(self._file_no + 1, 0):
            return False
        self.at_page_start = at_page_start  # a record does not end with its file
        return True

    def _enter_file(self, file_no: int, offset: int) -> bool:
        """Go to an offset in a file; return False, and stay, if the file is not there yet."""
        header = self.source.header(file_no)
        if header is None:
            if file_no > self.source.last_file():
                return False
            name = binlog_name(file_no)
            raise FormatError("binlog file is missing, or empty, although data follows", file=name)
        self._file_no = file_no
        self.page_size = header.page_size
        self.major = header.major
        self._last_start = last_chunk_start(header.page_size)
        self._area_end = chunk_area_end(header.page_size)
        self._page_no, self._place = divmod(max(offset, header.page_size), header.page_size)
        self._page = None
        self.at_page_start = self._place == 0
        return True
