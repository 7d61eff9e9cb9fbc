"""
A directory of binlog files without a writer in this process, at rest or growing.

What the directory holds is looked up by `refresh`; between two refreshes only the last used page
may be seen to grow. Source: ibb-format 3.4, 7.3, 7.4, 14.
"""

import threading
from functools import partial

from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid

from .chunk import chunk_area_end, used_end
from .disk import Disk
from .early_end import EarlyEnds
from .errors import DiskError
from .file_beginning import read_beginning
from .file_header import FileHeader
from .file_name import binlog_name
from .file_states import FileStates
from .healed_reads import HealedReads
from .history import BinlogFileInfo
from .listing import NOTHING_LISTED, Listing, list_files, list_sizes, modified_at
from .oddities import Oddities
from .open_files import OpenFiles
from .page import PAGE_SIZE_MAX, page_is_zero, used_page
from .page_cache import PageCache
from .page_source import NO_MORE_DATA, NO_MORE_PAGES, PageRead, PageStatus
from .position import Position
from .used_pages import UsedPages, find_used_pages
from .watched_file import WatchedFile


class BinlogDirectory:
    """
    The pages of a directory. Safe to use from several threads.

    Args:
        disk: where the directory is.
        path: of the directory.
        known: a page that was used before, as `known_page` says it; (0, 0): none.

    Attributes:
        limit: serve nothing from here on; None: no limit. Must lie behind a whole record.
        oddities: what is odd but no reason to stop.
        generation: how often the files were found begun anew (RESET MASTER of another process).
        early_ends: what older files that end early have lost.
        unreadable: why the end that the last refresh found may not be where data ends, or None.

    Raises:
        DiskError: the directory cannot be listed.
    """

    tail_is_final = False

    def __init__(self, disk: Disk, path: str, known: tuple[int, int] = (0, 0)) -> None:
        self.limit: Position | None = None
        self.generation = 0
        self.unreadable: DiskError | None = None
        self._disk, self._path = disk, path
        self.healed, self.file_states, self.oddities = HealedReads(), FileStates(), Oddities()
        self._warn = self.oddities.add  # not ours: what refers to us would keep us as garbage
        self.early_ends = EarlyEnds(lambda: BinlogDirectory(disk, path), self._warn)
        self._newest = WatchedFile(disk)
        self._files = self._files_beside(self._newest)
        self._cache = PageCache()
        self._mutex = threading.RLock()  # for what refresh changes
        self._headers: dict[int, FileHeader] = {}
        self._used: dict[int, UsedPages] = {}
        self._listing = NOTHING_LISTED
        self._known_page = known
        self.refresh()

    @property
    def listing(self) -> Listing:
        """What the last refresh found."""
        return self._listing

    @property
    def known_page(self) -> tuple[int, int]:
        """The last page that is surely used, for who opens the directory anew: file and number."""
        last = self._listing.last
        return (last, self._used[last].sure) if last >= 0 else (0, 0)

    def refresh(self) -> None:
        """
        Look again what files there are and how far the newest is used.

        Raises:
            DiskError: the directory cannot be read.
        """
        with self._mutex:
            before, self.unreadable, newest = self._listing, None, self._newest
            numbers = list_files(self._disk, self._path, self._warn)
            if newest.is_removed:
                before, newest = self._begin_anew()
            # Opening a store deletes what lies behind its newest data, and makes it anew.
            behind = [number for number in numbers if number > before.last]
            for number in set(before.numbers).difference(numbers).union(behind):
                self._forget(number)
            last = next((number for number in reversed(numbers) if not self._is_empty(number)), -1)
            if last < before.last or (last >= 0 and numbers[0] < min(before.numbers, default=0)):
                before, newest = self._begin_anew()
            known = self._used[last].sure if last == before.last >= 0 else 0
            is_sure = before is not NOTHING_LISTED or last != self._known_page[0]
            known = known if is_sure else self._known_page[1]
            # By the old listing: what was counted while the file could grow is counted again.
            self._used = {
                number: used
                for number, used in self._used.items()
                if self._is_settled(number, used)
            }
            last_page = 0
            if last >= 0:
                newest.watch(f"{self._path}/{binlog_name(last)}")
                if last != before.last:
                    self._forget(last)  # it may have been made anew just before it was watched
                used = self._used[last] = self._find_used(last, known, is_sure=is_sure)
                last_page = used.last
            changed = tuple(modified_at(self._disk, self._path, number) for number in numbers[-2:])
            self._listing = Listing(tuple(numbers), last, last_page, changed)
            if newest is not self._newest:
                self._files.close()  # what was opened before there was a newest file to watch
                self.generation += 1  # last: who has read by then has read of what is gone
                self.file_states = FileStates()
                self._newest.close()
                self._newest = newest

    def is_still(self, generation: int) -> bool:
        """Tell whether all that was read until now was of *generation*, if it was that before."""
        # In this order: the newest file of what is gone is watched until the generation is raised.
        return not self._newest.is_removed and self.generation == generation

    def close(self) -> None:
        """Close the files; reading opens them again."""
        with self._mutex:
            self._files.close()
            self._newest.close()

    def first_file(self) -> int:
        """Return the lowest file number that exists; 0 when there is none."""
        return next(iter(self._listing.numbers), 0)

    def last_file(self) -> int:
        """Return the highest number that holds data before the limit, or `first_file` - 1."""
        last, limit = self._listing.last, self.limit
        if limit is not None:
            last = min(last, limit.file_no if limit.offset else limit.file_no - 1)
        return max(last, self.first_file() - 1)

    def file_numbers(self) -> list[int]:
        """Return the numbers of the files that there are up to the last, in order."""
        last = self.last_file()
        return [number for number in self._listing.numbers if number <= last]

    def files(self) -> list[BinlogFileInfo]:
        """Return all files, the empty preallocated one too; those that vanish meanwhile, not."""
        return [
            BinlogFileInfo(binlog_name(number), number, size)
            for number, size in list_sizes(self._disk, self._path, self._warn)
        ]

    def header(self, file_no: int) -> FileHeader | None:
        """
        Return a file's header, or None if the file is missing or still empty.

        Raises:
            FormatError: it is damaged.
            DiskError: it cannot be read.
        """
        generation, header = self.generation, self._headers.get(file_no)
        if header is not None or (header := self._stored_header(file_no)) is None:
            return header
        if (size := self._files.size(file_no)) < 2 * header.page_size:
            raise FormatError(f"file too short: {size} bytes", file=binlog_name(file_no), page=0)
        with self._mutex:
            if self.generation == generation:  # else it may be of a history that is gone
                self._headers[file_no] = header
        return header

    def _stored_header(self, file_no: int) -> FileHeader | None:
        """Read a header from its file; None: the file is missing, or its header page is zero."""

        def check(start: bytes) -> FileHeader | None:
            return None if page_is_zero(start) else FileHeader.parse(start, file_no)

        try:
            return self._files.read_header(file_no, check, is_growing=file_no >= self._listing.last)
        except DiskError as error:
            if not error.missing:
                raise
            return None

    def first_state(self, file_no: int) -> list[Gtid] | None:
        """Return the entries that a file begins with; None: only its page 1 may tell."""
        generation = self.generation
        found = read_beginning(self._files, file_no) if self._is_abandoned(file_no) else None
        if found is None:
            return None
        with self._mutex:
            if self.generation == generation:
                self._headers[file_no] = found.header
        return found.entries

    def end(self) -> Position:
        """Return where data ends; behind a damaged last page, that page's end."""
        last, last_page = self._listing.last, self._listing.last_page
        if last < 0:
            return Position(self.first_file(), 0)
        end = Position(last, 0)
        try:
            header = self.header(last)
            if header is not None:
                end = Position(last, (last_page + 1) * header.page_size)
                if last_page:
                    read = self._read_last_page(header, last_page, is_abandoned=False)
                    if read.end < chunk_area_end(header.page_size):
                        end = Position(last, last_page * header.page_size + read.end)
        except FormatError as error:
            self._warn(str(error))
        except DiskError as error:
            self.unreadable = error
            self._warn(str(error))
        return end if self.limit is None else min(end, self.limit)

    def read_page(self, file_no: int, page_no: int) -> PageRead:
        """
        Return a page, or what is in its place.

        Raises:
            FormatError: it is damaged; all zero although a later page is not, too.
            DiskError: it cannot be read.
        """
        limit, generation = self.limit, self.generation  # before the header, which may be old then
        header = self._headers.get(file_no) or self.header(file_no)
        if header is None:
            return NO_MORE_DATA
        start = page_no * header.page_size
        if limit is not None and limit <= (file_no, start):
            return NO_MORE_DATA
        try:
            read = self._read_unlimited(header, page_no)
        except FormatError:
            with self._mutex:  # whoever looks just now is done
                if self.generation == generation:
                    raise
            return NO_MORE_DATA  # the history that the page was looked for in is gone
        if limit is not None and limit < (file_no, start + read.end):
            return PageRead(read.data, limit.offset - start, PageStatus.END_OF_DATA)
        return read

    def _read_unlimited(self, header: FileHeader, page_no: int) -> PageRead:
        assert page_no > 0
        file_no, area_end = header.file_no, chunk_area_end(header.page_size)
        data = self._cache.get(file_no, page_no)
        if data is not None:
            return PageRead(data, area_end, PageStatus.PAGE)
        # Before anything that they judge is looked at: a file that was passed since had grown.
        is_passed, is_abandoned = file_no < self._listing.last, self._is_abandoned(file_no)
        used = self._used_pages(file_no)
        if used.sure < page_no <= used.last:
            used = self._look_again(file_no)
        if page_no > used.last:
            if not is_passed or not (used.all_used or is_abandoned):
                return NO_MORE_DATA
            return self._behind_last_page(file_no, page_no, used)
        if page_no >= used.sure:
            return self._read_last_page(header, page_no, is_abandoned=is_abandoned)
        return PageRead(self.stored_page(file_no, page_no), area_end, PageStatus.PAGE)

    def stored_page(self, file_no: int, page_no: int) -> bytes:
        """
        Return a page that is known to be used and not to change any more, whatever the limit.

        Raises:
            FormatError: it is damaged, all zero, or the file has no such page.
            DiskError: it cannot be read.
        """
        generation, data = self.generation, self._cache.get(file_no, page_no)
        if data is not None:
            return data
        header = self.header(file_no)
        page_size = header.page_size if header else PAGE_SIZE_MAX
        check = partial(used_page, page_size=page_size, file_no=file_no, page_no=page_no)
        data = self._files.read_page(file_no, page_no, page_size, check)
        with self._mutex:
            if self.generation == generation:
                self._cache.put(file_no, page_no, data)
        return data

    def size(self, file_no: int) -> int:
        """
        Return a file's length in bytes.

        Raises:
            DiskError: it is missing.
        """
        return self._files.size(file_no)

    def _read_last_page(self, header: FileHeader, page_no: int, *, is_abandoned: bool) -> PageRead:
        """Read the last used page of a file; another program may be writing it."""
        file_no, page_size = header.file_no, header.page_size
        check = partial(used_page, page_size=page_size, file_no=file_no, page_no=page_no)
        data = self._files.read_page(file_no, page_no, page_size, check, is_growing=True)
        area_end = chunk_area_end(page_size)
        end = used_end(data)
        if end == area_end:
            return PageRead(data, end, PageStatus.PAGE)
        if not page_is_zero(data[end:area_end]):
            self._warn(f"{binlog_name(file_no)}: page {page_no} is not zero behind its end {end}")
        if not is_abandoned:
            return PageRead(data, end, PageStatus.END_OF_DATA)
        if self.early_ends.lost(file_no, f"in page {page_no} at {end}"):
            return PageRead(data, area_end, PageStatus.PAGE)  # what is missing is damage
        return PageRead(data, end, PageStatus.END_OF_FILE)

    def _behind_last_page(self, file_no: int, page_no: int, used: UsedPages) -> PageRead:
        """Return what is behind the pages of a file that will get no others."""
        if used.all_used:
            return NO_MORE_PAGES
        lost = self.early_ends.lost(file_no, f"behind page {used.last}")
        if lost and page_no == used.last + 1:  # a search further on meets just no pages
            raise FormatError(lost, file=binlog_name(file_no), page=page_no)
        return NO_MORE_PAGES

    def _is_abandoned(self, file_no: int) -> bool:
        """
        Tell whether a file that is not full will not be written any more.

        A writer creates file N + 2 only when file N is all on disk. Before that the newest pages
        of N can be missing although N + 1 has some already.
        """
        return file_no < self.last_file() and file_no + 2 <= (self._listing.numbers or (0,))[-1]

    def _used_pages(self, file_no: int) -> UsedPages:
        used = self._used.get(file_no)
        if used is None:
            if file_no > self._listing.last:
                return UsedPages(0, 0, 1)
            used = self._look_again(file_no)
            header = self._headers.get(file_no)
            if header is not None and (rest := self._files.size(file_no) % header.page_size):
                self._warn(f"{binlog_name(file_no)}: {rest} bytes behind the last whole page")
        return used

    def _look_again(self, file_no: int) -> UsedPages:
        """Look how far a file is used; what could not be read before may be by now."""
        with self._mutex:
            used = self._used[file_no] = self._find_used(file_no, 0)
        return used

    def _is_settled(self, file_no: int, used: UsedPages) -> bool:
        """Tell whether no page of a file will be used any more."""
        return (used.all_used and file_no < self._listing.last) or self._is_abandoned(file_no)

    def _find_used(self, file_no: int, known: int, *, is_sure: bool = True) -> UsedPages:
        """Find how far a file is used; it is known to be used up to page *known*, or was once."""
        try:
            header = self.header(file_no)
        except FormatError:
            header = None  # whoever wants to read the file will see the reason
        except DiskError as error:
            self.unreadable, header = error, None
        if header is None:
            return UsedPages(0, 0, 1)
        return find_used_pages(self._files, file_no, header.page_size, known, is_sure=is_sure)

    def _is_empty(self, file_no: int) -> bool:
        """Tell whether a file is missing or has an empty header; what cannot be read has one."""
        if file_no in self._headers:
            return False
        try:
            return page_is_zero(self._files.read_start(file_no))
        except DiskError as error:
            return error.missing

    def _forget(self, file_no: int) -> None:
        self._headers.pop(file_no, None)
        self._used.pop(file_no, None)
        self.file_states.forget(file_no)
        self.early_ends.forget(file_no)
        self._files.drop(file_no)

    def _begin_anew(self) -> tuple[Listing, WatchedFile]:
        """Forget everything, as the files were begun anew; return what is known and watched."""
        if self.limit is not None:
            self.limit = Position(0, 0)  # it was of what is gone
        self._headers.clear()
        self._used.clear()
        self.early_ends.forget_all()
        self._cache.clear()
        newest = WatchedFile(self._disk)
        self._files.close()
        self._files = self._files_beside(newest)
        return NOTHING_LISTED, newest

    def _files_beside(self, newest: WatchedFile) -> OpenFiles:
        """Return the files of its history; it is removed before one of the next can be made."""
        return OpenFiles(self._disk, self._path, self.healed, lambda: newest.is_removed)
