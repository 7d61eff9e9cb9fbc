"""
Right behind one group: found by a few pages of the stretch that it lies in.

Between two states may lie megabytes of groups. Where one server alone has logged there, its
numbers rise from page to page as a rule, and often evenly: the page is guessed by them, and where
guesses do not help, pages are bisected by the first group of each. That the group is there is seen,
not concluded: where numbers do not rise it may not be found, and whoever asked passes over the
stretch instead. Source: ibb-format 4, 5.1, 8.4.
"""

from collections.abc import Iterator

from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid

from .chunk import CONTINUATION, FILLER, TYPE_MASK, UNUSED, last_chunk_start, read_chunk
from .commit_scan import find_commit
from .errors import DiskError
from .file_header import MAJOR_FINAL
from .group_head import peek_gtid, read_head
from .page_source import PageSource
from .position import Position
from .record import RecordType
from .record_reader import RecordReader

PAGES_AHEAD_MAX = 8  # that are looked at for one in which a group is committed
GUESSES_MAX = 4  # one behind the other; from there on every other page is the one in the middle


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


class _PageSearch:
    def __init__(self, source: PageSource, file_no: int, page_size: int) -> None:
        self._source = source
        self._file_no = file_no
        self._page_size = page_size

    def behind(self, pages: range, gtid: Gtid, before: int | None, last: int) -> Position | None:
        low, high, probes = pages.start, pages.stop, 0
        if before is None and (first := next(self._commits(low), None)) is not None:
            before = first[1].seq
        while high - low > 1:
            middle = (low + high) // 2
            if before is not None and (probes < GUESSES_MAX or probes % 2):
                share = (gtid.seq - before) / max(last - before, 1)
                middle = min(max(low + int((high - low) * share), low + 1), high - 1)
            probes += 1
            page = middle
            while (first := next(self._commits(page), None)) is None and page < high - 1:
                if page == middle and not self._source.read_page(self._file_no, page).end:
                    break  # behind the end
                page += 1
                if page - middle == PAGES_AHEAD_MAX:
                    return None
            if first is None:
                high = middle  # no group is committed behind it
            elif first[1].seq <= gtid.seq:
                low, before = page, first[1].seq
            else:
                high, last = middle, first[1].seq
        for offset, found in self._commits(low, gtid):
            if found == gtid:
                reader = RecordReader(self._source, Position(self._file_no, offset))
                return None if reader.next() is None else reader.position
        return None

    def _commits(self, page_no: int, wanted: Gtid | None = None) -> Iterator[tuple[int, Gtid]]:
        """
        Yield offset in the file, and GTID, of the groups whose record begins in a page.

        Args:
            page_no: of the page.
            wanted: those that are surely others may be left out; None: all.
        """
        read = self._source.read_page(self._file_no, page_no)
        page, end = read.data, read.end
        start, last = 0, min(last_chunk_start(self._page_size), end - 1)
        while start <= last and page[start] not in (FILLER, UNUSED):
            if wanted is not None:
                start = find_commit(page, start, end, wanted)
                if start < 0:
                    return
            chunk = read_chunk(page, start, end)
            if chunk is None:
                return
            kind, flags, data, size = chunk
            if kind & TYPE_MASK == RecordType.COMMIT and not flags & CONTINUATION:
                offset = page_no * self._page_size + start
                gtid = peek_gtid(page, data, size) or self._read_gtid(offset)
                if gtid is not None:
                    yield offset, gtid
            start = data + size

    def _read_gtid(self, offset: int) -> Gtid | None:
        """Return the GTID of the commit record at an offset of the file; None: it is no group's."""
        record = RecordReader(self._source, Position(self._file_no, offset)).next()
        head = None if record is None else read_head(record)
        return None if head is None else head.gtid
