"""
What is plainly right of a file's pages, taken at the speed of a kernel.

`SoundRun` looks at the pages; here the history is told what groups and states were in them. Where
it stops, behind a whole record, the other checks take the next one. They are the only ones that
find something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.gtid import Gtid
from ibb.storage.file_header import MAJOR_FINAL
from ibb.storage.record import RecordType

from .finding import Place
from .found_items import Stretch
from .sound_run import FULL, MORE, SoundRun

if TYPE_CHECKING:
    from ibb.storage.file_header import FileHeader

    from .chunks import ChunkChecks
    from .found_items import FoundState
    from .losses import Losses
    from .records import RecordChecks

STOPS_MAX: Final = 4  # in a page; above that the other checks take the rest of it
_INTERVAL_MAX: Final = 1 << 40  # pages; no file has as many


class PagePlace(NamedTuple):
    """A page's number, and an offset in it."""

    page_no: int
    offset: int


class SoundPages:
    """
    Takes pages as far as nothing is wrong in them.

    Args:
        chunks: takes those that are left.
        records: is told of states, and knows the history.
        losses: whether findings wait in it.

    Attributes:
        is_under_way: all was right up to the end of the pages it got last, where a record may be
            open.
    """

    def __init__(self, chunks: ChunkChecks, records: RecordChecks, losses: Losses) -> None:
        self._chunks = chunks
        self._records = records
        self._losses = losses
        self._run = SoundRun()
        self._header: FileHeader | None = None  # of a file whose pages may be taken
        self._stopped = PagePlace(0, 0)  # where others took the next record
        self._stops = 0  # in that page
        self.is_under_way = False

    def enter_file(self, header: FileHeader) -> None:
        """The pages that come next are those of another file."""
        self.is_under_way, self._stopped, self._header = False, PagePlace(0, 0), None
        if header.major == MAJOR_FINAL and header.lowest_oob_file <= header.file_no:
            self._header = header
            interval = header.state_interval if header.state_interval < _INTERVAL_MAX else 0
            self._run.enter_file(header.file_no, header.page_size, interval)

    def wants(self, page_no: int) -> bool:
        """Tell whether it would go on at a border between records in a page."""
        if self._header is None or self._losses.open or self._records.xa.is_completing:
            return False
        return page_no > self._stopped.page_no or self._stops < STOPS_MAX

    def take(self, pages: bytes, first: int, end: int, start: PagePlace) -> PagePlace | None:
        """
        Take pages; return where to go on, or None if what is there is not for here.

        Args:
            pages: what is in the file from the first page on.
            first: number of the first page.
            end: number of the page behind the last one.
            start: where to go on. A record ends there, unless it is under way.
        """
        if not self.is_under_way:
            is_fit = self.wants(start.page_no) and self._chunks.is_between
            if not is_fit or start == self._stopped:
                return None
            self._run.begin(*start)
            self.is_under_way = True
        while True:
            code = self._run.run(pages, first, end)
            self._tell()
            if code != FULL:
                break
        if code == MORE:
            return PagePlace(self._run.page, 0)
        return self.leave()

    def leave(self) -> PagePlace:
        """Stop; return where the other checks go on, behind the last whole record."""
        assert self._header is not None
        self.is_under_way = False
        stopped = PagePlace(*divmod(self._run.border, self._header.page_size))
        self._stops = self._stops + 1 if stopped.page_no == self._stopped.page_no else 1
        self._stopped = stopped
        return stopped

    def _tell(self) -> None:
        """Tell the history what was found."""
        self._records.records += self._run.records
        for item in self._run.take():
            if isinstance(item, Stretch):
                first = Gtid(item.domain, item.server, item.first)
                place = self._place(item.offset)
                self._records.history.stretch(first, item.last, item.groups, place)
            else:
                self._tell_state(item)
        if self._run.last_type:
            self._chunks.last_type = self._run.last_type

    def _tell_state(self, state: FoundState) -> None:
        record = self._records.begin(RecordType.GTID_STATE, self._place(state.offset))
        record.add(state.contents)
        record.end()

    def _place(self, offset: int) -> Place:
        assert self._header is not None
        size = self._header.page_size
        return Place(self._header.file_no, *divmod(offset, size), size)
