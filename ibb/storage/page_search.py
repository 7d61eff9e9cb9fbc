"""
Right behind one group: found by a few pages of the stretch that it lies in.

Between two states may lie megabytes of groups. Where one server alone has logged there, its
numbers rise from page to page as a rule, and often evenly: the page is guessed by them, and where
guesses do not help, pages are bisected by the first group of each. That the group is there is seen,
not concluded: where numbers do not rise it may not be found, and whoever asked passes over the
stretch instead. Source: ibb-format 4, 5.1, 8.4.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid

from .chunk import LAST, read_chunk
from .commit_scan import find_commit
from .errors import DiskError
from .file_header import MAJOR_FINAL
from .group_head import peek_gtid, read_head
from .page_source import PageRead, PageSource
from .position import Position
from .record_reader import RecordReader

PAGES_AHEAD_MAX = 8  # that are looked at for one in which a group is committed
LARGE_GROUP_PAGES = 4 * PAGES_AHEAD_MAX
GUESSES_MAX = 4  # one behind the other; from there on every other look is in the middle


def are_large(pages: range, before: int | None, last: int) -> bool:
    """
    Tell whether groups are so large, on average, that most looks among them meet no end.

    Args:
        pages: that they fill.
        before: number of the last group before those pages; None: there is none.
        last: number of the last one in them.
    """
    return pages.stop - pages.start > LARGE_GROUP_PAGES * (last - (before or 0))


def find_behind(
    source: PageSource, file_no: int, pages: range, gtid: Gtid, numbers: tuple[int | None, int]
) -> Position | None:
    """
    Return where a group ends; None if it was not found by a few pages.

    Args:
        source: the pages.
        file_no: of the file in which its commit record begins.
        pages: numbers of the pages of which one is that record's.
        gtid: of the group; nobody else has logged in those pages.
        numbers: the last one logged before those pages, if there is one, and the last in them.
    """
    header = source.header(file_no)
    if header is None or header.major != MAJOR_FINAL:
        return None
    search = _PageSearch(source, file_no, header.page_size)
    try:
        return search.behind(pages, gtid, *numbers)
    except (FormatError, DiskError):
        return None  # who passes over the stretch is told


class _Commit(NamedTuple):
    """A commit record in a page: whose, and where it begins; where it ends, if it does so there."""

    gtid: Gtid
    start: int
    end: int | None


class _Look(NamedTuple):
    """
    What one page tells of a group.

    Attributes:
        end: of what can be read of the page.
        first: GTID of the first group whose commit record begins in it; None: there is none.
        behind: where the group ends that is looked for, if its record begins there.
    """

    end: int
    first: Gtid | None
    behind: Position | None


class _PageSearch:
    def __init__(self, source: PageSource, file_no: int, page_size: int) -> None:
        self._source = source
        self._file_no = file_no
        self._page_size = page_size

    def behind(self, pages: range, gtid: Gtid, before: int | None, last: int) -> Position | None:
        low, high, probes = pages.start, pages.stop, 0
        if before is None and (first := self._look(low).first) is not None:
            before = first.seq
        while high - low > 1:
            middle = (low + high) // 2
            if before is not None and (probes < GUESSES_MAX or probes % 2):
                share = (gtid.seq - before) / max(last - before, 1)
                middle = min(max(low + int((high - low) * share), low + 1), high - 1)
            probes += 1
            page = middle
            while (look := self._look(page, gtid)).first is None and page < high - 1:
                if page == middle and not look.end:
                    break  # behind the end
                page += 1
                if page - middle == PAGES_AHEAD_MAX:
                    return None
            if look.behind is not None:
                return look.behind
            if look.first is None:
                high = middle  # no group is committed behind it
            elif look.first.seq <= gtid.seq:
                low, before = page, look.first.seq
            else:
                high, last = middle, look.first.seq
        return self._look(low, gtid).behind

    def _look(self, page_no: int, gtid: Gtid | None = None) -> _Look:
        read, behind = self._source.read_page(self._file_no, page_no), None
        first = next(self._commits(read, page_no), None)
        if first is None:
            return _Look(read.end, None, None)
        if gtid is not None and first.gtid.seq <= gtid.seq:
            own = (one for one in self._commits(read, page_no, gtid) if one.gtid == gtid)
            found = next(own, None)
            if found is not None:
                behind = self._behind(page_no, found)
        return _Look(read.end, first.gtid, behind)

    def _commits(
        self, read: PageRead, page_no: int, wanted: Gtid | None = None
    ) -> Iterator[_Commit]:
        """
        Yield the groups whose record begins in a page.

        Args:
            read: the page.
            page_no: its number.
            wanted: those that are surely others may be left out; None: all.
        """
        page, end, start = read.data, read.end, 0
        while (start := find_commit(page, start, end, wanted)) >= 0:
            chunk = read_chunk(page, start, end)
            assert chunk is not None  # else it would not have been found
            _, flags, data, size = chunk
            gtid = peek_gtid(page, data, size) or self._read_gtid(page_no, start)
            if gtid is not None:
                yield _Commit(gtid, start, data + size if flags & LAST else None)
            start = data + size

    def _behind(self, page_no: int, commit: _Commit) -> Position | None:
        """Return where a group ends; None: not yet, its record is not all there."""
        if commit.end is not None:
            return self._place(page_no, commit.end)
        reader = RecordReader(self._source, self._place(page_no, commit.start))
        return None if reader.next() is None else reader.position

    def _read_gtid(self, page_no: int, start: int) -> Gtid | None:
        """Return the GTID of the commit record at a place in a page; None: it is no group's."""
        record = RecordReader(self._source, self._place(page_no, start)).next()
        head = None if record is None else read_head(record)
        return None if head is None else head.gtid

    def _place(self, page_no: int, place: int) -> Position:
        return Position(self._file_no, page_no * self._page_size + place)
