"""
Runs of pages in big reads, for who passes through gigabytes of history.

What is read at once are pages that cannot change any more. Where the first of them is not right in
its file, because it is damaged or has not been written yet, pages come from the `PageSource` one
by one, which knows what to do about either.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.errors import FormatError

from .chunk import chunk_area_end
from .errors import DiskError
from .file_header import MAJOR_FINAL
from .page_source import PageStatus
from .position import Position
from .record_walker import count_good

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .disk import Buffer
    from .file_header import FileHeader
    from .history import PagedHistory
    from .open_files import OpenFiles
    from .record_walker import RecordWalker

RUN_BYTES: Final = 256 << 10  # read at a time
LONG_RUNS: Final = 4  # times as much, for a record that does not fit into that, or one reader
LONG_RUN_BYTES: Final = RUN_BYTES * LONG_RUNS
OVERLAP_BYTES: Final = 64 << 10  # of a run and the next
LENT_BYTES: Final = 64 << 20  # of a file, from where its reader is, are known to be whole
KEPT_BYTES_MAX: Final = 4 << 20
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
        room: what they lie in, if it will be used again.
    """

    data: Buffer
    page_size: int
    first: int
    pages: int
    visible: int
    room: memoryview | None = None

    def give_to(self, walker: RecordWalker) -> bool:
        """Have a walker take the pages; tell whether they hold what it was missing."""
        return walker.load(*self[:5])


class LentFile(NamedTuple):
    """
    A file that stays open.

    Attributes:
        file_no: its number.
        page_size: bytes.
        descriptor: to read it by; -1: there is none.
        stop: number of the page behind those that are whole and will not change; 0: there is none.
    """

    file_no: int
    page_size: int
    descriptor: int
    stop: int


class PageRuns:
    """
    The runs of a history's files, shared by all who read it. Safe to use from several threads.

    Runs that are whole begin at fixed places, so that readers who pass the same pages within a
    while have them read and checked once; neighbours overlap, for the records at their borders.
    What is kept is of one generation of the history, and nothing when nobody reads.

    Args:
        history: where they are.
        bytes_max: bytes of pages that are kept for others.
    """

    def __init__(self, history: PagedHistory, bytes_max: int = KEPT_BYTES_MAX) -> None:
        self._history = history
        self._bytes_max = bytes_max
        self._mutex = threading.Lock()
        self._readers = 0
        self._kept: OrderedDict[tuple[int, int, int], PageRun] = OrderedDict()  # oldest use first
        self._bytes = 0
        self._end = Position(0, 0)  # of the history, when it was looked at last
        self._generation = history.generation

    def join(self) -> None:
        """Note one who reads."""
        with self._mutex:
            self._readers += 1

    def leave(self) -> None:
        """Note that one reads no more; the last one takes everything along."""
        with self._mutex:
            self._readers -= 1
            if not self._readers:
                self._kept.clear()
                self._bytes = 0
                self._end = Position(0, 0)

    def header(self, file_no: int) -> FileHeader | None:
        """Return the header of a file whose records can be walked over, or None."""
        try:
            header = self._history.pages.header(file_no)
        except (FormatError, DiskError):
            return None  # who reads on is told
        if header is None or header.major != MAJOR_FINAL or header.lowest_oob_file > file_no:
            return None
        return header

    def size(self, file_no: int) -> int:
        """
        Return a file's length in bytes.

        Raises:
            DiskError: the file is missing.
        """
        return _files_of(self._history).size(file_no)

    def load(
        self,
        header: FileHeader,
        page_no: int,
        known_end: int,
        *,
        room: memoryview | None = None,
    ) -> PageRun | None:
        """
        Return pages of a file, or None if the first wanted is not there, or damaged.

        Args:
            header: of the file.
            page_no: a page that is wanted.
            known_end: number of the page behind those that are known from that one on, 0: none.
            room: of `LONG_RUN_BYTES`, for pages that nobody else will want: more are read at a
                time, and none kept. None: they are shared.
        """
        if self._is_last(header, page_no):
            return self._singly(header, page_no)
        try:
            run = None if room is not None else self._shared(header, page_no)
            if run is not None and run.first + run.pages > known_end:
                return run
            runs = LONG_RUNS if room is not None or page_no < known_end else 1
            most = RUN_BYTES * runs // header.page_size
            count = min(most, self._whole_pages(header, page_no + most) - page_no)
            if count > 1 and page_no + count > known_end:
                run = self._read(header, page_no, count, room)
                # The last page that was written may have grown since.
                if run.pages == count or run.pages > 2:
                    return run if run.pages == count else run._replace(pages=run.pages - 1)
        except DiskError:
            pass  # one by one it will be seen which page is at fault
        return self._singly(header, page_no)

    @contextmanager
    def lent(self, header: FileHeader, walker: RecordWalker, generation: int) -> Iterator[LentFile]:
        """
        Lend a file for a block to who reads its pages by itself, in order and for nobody else.

        Args:
            header: of the file.
            walker: is there.
            generation: of the history; if it is over, nothing of the file is whole.
        """
        page_size, descriptor, stop = header.page_size, -1, 0
        with ExitStack() as stack:
            with suppress(DiskError):  # who reads on is told
                first = walker.wanted_page(page_size)
                whole = self._whole_pages(header, first + LENT_BYTES // page_size)
                descriptor = stack.enter_context(_files_of(self._history).lent(header.file_no))
                is_it = self._history.generation == generation  # asked when it is open
                stop = whole if descriptor >= 0 and is_it else 0
            yield LentFile(header.file_no, page_size, descriptor, stop)

    def _is_last(self, header: FileHeader, page_no: int) -> bool:
        """Tell whether the history ends in a page, or before it."""
        behind = Position(header.file_no, (page_no + 1) * header.page_size)
        return self._end_behind(behind) < behind

    def _shared(self, header: FileHeader, page_no: int) -> PageRun | None:
        """Return the run of all pages around one, if they are whole and right."""
        page_size, generation = header.page_size, self._history.generation
        count = max(RUN_BYTES // page_size, 1)
        first = page_no - page_no % count
        key = generation, header.file_no, first
        with self._mutex:
            run = self._kept.get(key)
            if run is not None:
                self._kept.move_to_end(key)
                return run
        stop = first + count + max(OVERLAP_BYTES // page_size, 1)
        first = max(first, 1)
        whole = self._whole_pages(header, stop)
        if whole < stop and header.file_no >= self._end_behind(Position(0, 0)).file_no:
            return None
        count = min(stop, whole) - first
        if page_no >= first + count:
            return None
        run = self._read(header, first, count)
        if run.pages < count:
            return None
        with self._mutex:
            if self._readers and key not in self._kept:
                self._kept[key] = run
                self._bytes += len(run.data)
                while self._bytes > self._bytes_max:
                    self._bytes -= len(self._kept.popitem(last=False)[1].data)
        return run

    def _read(
        self, header: FileHeader, first: int, count: int, room: memoryview | None = None
    ) -> PageRun:
        """Read pages that are whole; return those of them that are right, up to the first not."""
        page_size, files = header.page_size, _files_of(self._history)
        start, size = first * page_size, count * page_size
        if room is None:
            data: Buffer = files.read(header.file_no, start, size)
        else:
            data = room[: files.read_into(header.file_no, start, room[:size])]
        good = count_good(data, page_size)
        return PageRun(data, page_size, first, good, page_size - 4, room)

    def _whole_pages(self, header: FileHeader, stop: int) -> int:
        """Return how many pages of a file are whole, or *stop* if there are as many."""
        page_size, file_no = header.page_size, header.file_no
        end = self._end_behind(Position(file_no, stop * page_size))
        if file_no < end.file_no:
            return min(_files_of(self._history).size(file_no) // page_size, stop)
        return min(end.offset // page_size, stop) if file_no == end.file_no else 0

    def _end_behind(self, position: Position) -> Position:
        """Return where the history ends, looked at anew where that was not behind *position*."""
        generation = self._history.generation
        with self._mutex:
            if self._generation == generation and position <= self._end:
                return self._end
        end = self._history.end()
        with self._mutex:
            if self._history.generation == generation:  # else it may be of the one that is gone
                self._generation, self._end = generation, end
        return end

    def _singly(self, header: FileHeader, page_no: int) -> PageRun | None:
        page_size, images, visible = header.page_size, [], 0
        area_end = chunk_area_end(page_size)
        try:
            for number in range(page_no, page_no + SINGLE_PAGES_MAX):
                read = self._history.pages.read_page(header.file_no, number)
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


def _files_of(history: PagedHistory) -> OpenFiles:
    files: OpenFiles = history.pages._files  # type: ignore[attr-defined] # noqa: SLF001 - one house
    return files
