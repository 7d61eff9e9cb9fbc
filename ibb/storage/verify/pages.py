"""
The pages of a file, one after the other: checksums, unused pages, states where they are due.

Each page is read once, in large pieces, but for those before a record that is not plainly right;
what the file system only reserves behind the data, not at all. In the files that a program may be
writing, a page that looks wrong is read again before it is reported, and what has grown meanwhile
is taken as it is now. Source: ibb-format 4, 5.2, 7.3, 7.4.
"""

from collections.abc import Iterator

from ibb.protocol.errors import FormatError
from ibb.storage.chunk import TYPE_MASK, chunk_area_end, last_chunk_start
from ibb.storage.disk import File
from ibb.storage.errors import DiskError
from ibb.storage.file_header import FileHeader
from ibb.storage.open_files import TORN_READS_MAX
from ibb.storage.page import CHECKSUM_SIZE, check_page, page_is_zero
from ibb.storage.position import Position
from ibb.storage.record import RecordType, encode_state

from .chunks import ChunkChecks
from .finding import Finding, Kind, Place
from .holes import Holes
from .losses import Losses
from .records import RecordChecks
from .sound_pages import PagePlace, SoundPages

WINDOW_BYTES = 1 << 20  # read at once
READS_MAX = 2  # of a page: what was read wrongly once may be right on the device
_ZEROS = bytes(WINDOW_BYTES)
_STATE_OR_PADDING = frozenset({RecordType.GTID_STATE, RecordType.DUMMY})


class PageChecks:
    """
    Walks over files.

    Args:
        chunks: takes the pages that can be read.
        records: knows the history.
        losses: takes findings.

    Attributes:
        used_pages: number of pages that were used, in all files.
        pages: number of whole pages of the present file.
        unused: where data ended in the present file; None: it is full.
        end: where data ended in the last file.
    """

    def __init__(self, chunks: ChunkChecks, records: RecordChecks, losses: Losses) -> None:
        self._chunks = chunks
        self._records = records
        self._losses = losses
        self._sound = SoundPages(chunks, records, losses)
        self.used_pages = 0
        self.pages = 0
        self.unused: Place | None = None
        self.end = Position(0, 0)

    def walk(self, file: File, header: FileHeader, pages: int, *, growing: bool) -> Iterator[int]:
        """
        Take all pages of a file; yield the number of bytes done each time some were read.

        Args:
            file: the open file.
            header: its header.
            pages: how many whole pages it had; it may be cut behind used ones meanwhile (FLUSH).
            growing: a program may be writing it.
        """
        self.unused, self.pages = None, pages
        self._records.enter_file(header)
        self._sound.enter_file(header)
        self.end = Position(header.file_no, header.page_size)
        window = _Window(file, header, TORN_READS_MAX if growing else READS_MAX)
        page_no, resume_at, told = 1, 0, 0
        while page_no < self.pages or self._sound.is_under_way:
            if page_no < self.pages and window.load(page_no, is_behind=self.unused is not None):
                if page_no > told:
                    told = page_no
                    yield page_no * header.page_size
                if page_no < window.zeros_end:
                    page_no = window.zeros_end
                    continue
            sound = self._take_sound(window, page_no, resume_at)
            if sound is not None:
                page_no, resume_at = sound
                continue
            page = self._page(window, page_no)
            if page is None:
                page_no, resume_at = page_no + 1, 0
                continue
            unused = self._take_unused()
            if unused is not None:
                if growing and window.has_grown(unused):
                    page_no, resume_at = unused.page_no, unused.offset
                    window.forget()
                    told = 0
                    continue
                self._report_hole(unused, page_no)
            if not resume_at:
                self.used_pages += 1
                self._check_due(header, page_no, page)
            border = self._take(header, page_no, page, resume_at)
            page_no, resume_at = (page_no + 1, 0) if border is None else (page_no, border)
        yield pages * header.page_size

    def _take_sound(self, window: "_Window", page_no: int, at: int) -> PagePlace | None:
        """Take what is plainly right from a place on; return where to go on, None: just there."""
        sound, end = self._sound, min(window.end, self.pages)
        if window.first <= page_no < end and self.unused is None:
            place = sound.take(window.data, window.first, end, PagePlace(page_no, at))
        else:
            place = sound.leave() if sound.is_under_way else None
        if place is not None:
            self.used_pages += place.page_no + (place.offset > 0) - page_no - (at > 0)
        return place

    def _take_unused(self) -> Place | None:
        """Forget where data seemed to end; return it."""
        unused, self.unused = self.unused, None
        return unused

    def _page(self, window: "_Window", page_no: int) -> bytes | None:
        """Return a used page that is whole, or None."""
        header = window.header
        try:
            page = window.page(page_no)
            if not page_is_zero(page):
                return window.checked(page, page_no)
        except _NoSuchPageError as error:
            self.pages = min(self.pages, window.pages())
            if page_no >= self.pages:
                return None
            kind, text = Kind.PAGE_CHECKSUM, error.what
        except FormatError as error:
            kind, text = Kind.PAGE_CHECKSUM, error.what
        except DiskError as error:
            kind, text = Kind.UNREADABLE, str(error)
        else:
            if self.unused is None:
                self.unused = Place(header.file_no, page_no, 0, header.page_size)
            return None
        self._chunks.skip(Finding.in_page(kind, header.file_no, page_no, text))
        if self.unused is None:
            self.used_pages += 1
            self.end = Position(header.file_no, (page_no + 1) * header.page_size)
        return None

    def _take(self, header: FileHeader, page_no: int, page: bytes, start: int) -> int | None:
        """Take a page up to where `_sound` may go on, which is returned, or to its end."""
        to_border = self._sound.wants(page_no)
        end = self._chunks.page(header.file_no, page_no, page, start, to_border=to_border)
        if self._chunks.border is not None:
            return end
        self.end = Position(header.file_no, page_no * header.page_size + end)
        area_end = chunk_area_end(header.page_size)
        if end == area_end:
            self.end = Position(header.file_no, (page_no + 1) * header.page_size)
            return None
        self.unused = Place(header.file_no, page_no, end, header.page_size)
        if not page_is_zero(page[end:area_end]):
            text = "bytes behind the last chunk are not zero"
            self._losses.report(Finding.at(Kind.BYTES_BEHIND_END, self.unused, text))
        return None

    def end_early(self, unused: Place) -> Place | None:
        """
        Return where data ends too early when something follows; None: no chunk fits there.

        Bytes that are left over must be padding then, but readers do not look.
        """
        if unused.offset <= last_chunk_start(unused.page_size):
            return unused
        text = "the end of the page is not filled up as it should be"
        self._losses.report(Finding.at(Kind.PADDING, unused, text))
        return None

    def _report_hole(self, unused: Place, used_page: int) -> None:
        if self.end_early(unused) is None:
            unused = unused._replace(page_no=unused.page_no + 1, offset=0)
            if unused.page_no == used_page:
                return
        if unused.offset:
            text = f"nothing is written here although page {used_page} is used"
            self._chunks.skip(Finding.at(Kind.UNUSED_BYTES, unused, text))
            return
        last = used_page - 1
        which = "page is" if last == unused.page_no else f"pages {unused.page_no} to {last} are"
        text = f"{which} all zero although page {used_page} is used"
        finding = Finding.in_page(Kind.ZERO_PAGE, unused.file_no, unused.page_no, text)
        self._chunks.skip(finding)

    def _check_due(self, header: FileHeader, page_no: int, page: bytes) -> None:
        """
        Report a page without the state that is due there.

        It may be left out when there is no room behind it in the file, and behind a state that
        filled the page before; how long it would be is estimated from above.
        """
        interval = header.state_interval
        if page_no != 1 and not (interval and page_no % interval == 0):
            return
        history = self._records.history
        if page[0] & TYPE_MASK in _STATE_OR_PADDING or not history.certain:
            return
        if self._chunks.last_type == RecordType.GTID_STATE and page_no != 1:
            return
        size = len(encode_state(history.state.entries(), header.file_no, header.major))
        needed = 2 - (-size // (header.page_size - CHECKSUM_SIZE))
        if page_no + needed < header.page_count:
            text = "no GTID state record at the beginning of this page, where one is due"
            place = Place(header.file_no, page_no, 0, header.page_size)
            self._losses.report(Finding.at(Kind.STATE_MISSING, place, text))


class _NoSuchPageError(FormatError):
    """The file ends before a page."""


class _Window:
    """
    A large piece of a file, cut into pages.

    Attributes:
        first: number of its first page.
        data: what is in the file from there on.
        zeros_end: the page behind those at its beginning that are known to be zero, or less.
    """

    def __init__(self, file: File, header: FileHeader, reads_max: int) -> None:
        self.header = header
        self._file = file
        self._holes = Holes(file)
        self._size = header.page_size
        self._reads_max = reads_max
        self.first = self.zeros_end = 0
        self.data = b""

    @property
    def end(self) -> int:
        """Number of the page behind the last whole one."""
        return self.first + len(self.data) // self._size

    def load(self, page_no: int, *, is_behind: bool) -> bool:
        """
        Make sure that a page is in the window, if it can be read; tell if that took reading.

        Args:
            page_no: of it. A page before the window is left where it is.
            is_behind: data has ended before it; what is zero need not be told page by page.
        """
        start = (page_no - self.first) * self._size
        if start < len(self.data):
            return False
        self.first, self.data, self.zeros_end = page_no, b"", 0
        size = max(WINDOW_BYTES, self._size)
        try:
            if is_behind and self._holes.has(page_no * self._size, size):
                self.zeros_end = min(page_no + size // self._size, self.pages())
                return True
            self.data = self._file.read_at(page_no * self._size, size)
        except DiskError:
            pass  # page by page it may be possible
        if is_behind and self.data == _ZEROS[: len(self.data)]:
            self.zeros_end = self.end
        return True

    def forget(self) -> None:
        """Read again what comes next."""
        self.first, self.data = 0, b""

    def pages(self) -> int:
        """Return how many whole pages the file has by now."""
        return self._file.size() // self._size

    def page(self, page_no: int) -> bytes:
        """Return a page; raise DiskError."""
        start = (page_no - self.first) * self._size
        page = self.data[start : start + self._size] if start >= 0 else b""
        return page if len(page) == self._size else self._read(page_no)

    def checked(self, page: bytes, page_no: int) -> bytes:
        """Return a page with a right checksum, reading it again if need be; raise FormatError."""
        for _ in range(1, self._reads_max):
            try:
                check_page(page, self.header.file_no, page_no)
            except FormatError:
                self._file.forget_cached(page_no * self._size, self._size)
                page = self._read(page_no)
            else:
                return page
        check_page(page, self.header.file_no, page_no)
        return page

    def has_grown(self, unused: Place) -> bool:
        """Tell whether something is by now where nothing was."""
        page = self._read(unused.page_no)
        return page[unused.offset] != 0

    def _read(self, page_no: int) -> bytes:
        page = self._file.read_at(page_no * self._size, self._size)
        if len(page) < self._size:
            name = str(Position(self.header.file_no, page_no * self._size))
            raise _NoSuchPageError(f"file has no such page at {name}")
        return page
