"""
The binlog state at the end of the data, and from there on as the data grows.

The full state of the newest file, the last differential state on top of it, and the commit
records behind that. Source: ibb-format 5.2, 11.5.
"""

from typing import NamedTuple

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.errors import FormatError

from .chunk import CONTINUATION, TYPE_MASK
from .errors import DiskError
from .group_head import read_head
from .page_source import PageSource
from .position import Position
from .record import GtidState, RecordType, parse_state
from .record_reader import Record, RecordReader


class FoundState(NamedTuple):
    """
    The end of the data.

    Attributes:
        state: everything logged.
        base: the full state on page 1 of the last file; None if it was left out.
    """

    state: BinlogState
    base: BinlogState | None

    def since_base(self) -> BinlogState:
        """
        Return what a differential state at the end has to hold.

        Without a base all of the state is as good: it is applied on top of the full one.
        """
        return self.state.copy() if self.base is None else self.state.since(self.base)


def find_state(source: PageSource) -> FoundState:
    """
    Return the binlog state at the end of *source*.

    Raises:
        FormatError: the pages that have to be read are damaged.
    """
    follower = StateFollower(source)
    follower.advance()
    return FoundState(follower.state, follower.base)


def read_state(source: PageSource, file_no: int, page_no: int) -> GtidState | None:
    """
    Return the GTID state that stands at the very beginning of a page.

    Returns:
        None if another record, or a continuation of whatever record, or nothing begins the page;
        a state found further on is not the state of this page.

    Raises:
        FormatError: the page or the record is damaged.
    """
    header = source.header(file_no)
    if header is None:
        return None
    reader = RecordReader(source, Position(file_no, page_no * header.page_size))
    type_byte = reader.peek()
    if type_byte is None or type_byte & (TYPE_MASK | CONTINUATION) != RecordType.GTID_STATE:
        return None
    record = reader.next()
    return None if record is None else _parse(record)


def last_page(source: PageSource, file_no: int) -> int:
    """Return the last page of a file that holds data, damaged or not; 0 if none does."""
    reached = 1
    while _has_page(source, file_no, reached):
        reached *= 2
    low, high = reached // 2, reached
    while high - low > 1:
        middle = (low + high) // 2
        if _has_page(source, file_no, middle):
            low = middle
        else:
            high = middle
    return low


class StateFollower:
    """
    Keeps the state of a source that grows.

    Args:
        source: the pages.

    Attributes:
        state: of everything read so far; nothing before the first `advance`.
    """

    def __init__(self, source: PageSource) -> None:
        self._source = source
        self.state = BinlogState()
        self._base: BinlogState | None = None
        self._file_no = source.first_file()  # whose full state is loaded
        self._records: RecordReader | None = None

    @property
    def base(self) -> BinlogState | None:
        """The full state on page 1 of the last file; None if it was left out."""
        return self._base if self._file_no == self._source.last_file() else None

    def advance(self) -> None:
        """
        Read on to the end of data.

        Raises:
            FormatError: damage; `state` is that before it, and the next call fails again.
        """
        if self._records is None:
            self._records = RecordReader(self._source, self._begin())
        while (record := self._records.next()) is not None:
            if record.type == RecordType.COMMIT:
                head = read_head(record)
                if head is not None and head.gtid is not None:
                    self.state.update(head.gtid)
            elif record.type == RecordType.GTID_STATE and self._is_later_full_state(record):
                # It may hold less than what was followed: a domain was deleted from it.
                self._load_full(record.position.file_no, _parse(record))

    def _begin(self) -> Position:
        """Load the newest states that can be read; return where to scan from."""
        source = self._source
        first = source.first_file()
        for file_no in reversed(source.file_numbers()):
            full = _state_or_none(source, file_no, 1)
            if full is None:
                continue
            self._load_full(file_no, full)
            return self._last_differential(file_no)
        return Position(first, 0)

    def _last_differential(self, file_no: int) -> Position:
        """Apply the last differential state of the last file; return the page to scan from."""
        source = self._source
        header = source.header(file_no)
        assert header is not None
        interval = header.state_interval
        if interval and file_no == source.last_file():
            last = last_page(source, file_no)
            for page_no in range(last - last % interval, 1, -interval):
                differential = _state_or_none(source, file_no, page_no)
                if differential is not None:
                    self.state.load(differential.entries)
                    return Position(file_no, page_no * header.page_size)
        return Position(file_no, header.page_size)

    def _is_later_full_state(self, record: Record) -> bool:
        return (
            record.position.offset == record.page_size and record.position.file_no > self._file_no
        )

    def _load_full(self, file_no: int, full: GtidState) -> None:
        self._file_no = file_no
        self.state = BinlogState(full.entries)
        self._base = self.state.copy()


def _state_or_none(source: PageSource, file_no: int, page_no: int) -> GtidState | None:
    """Return the state on a page unless it is damaged: the scan will meet the damage itself."""
    try:
        return read_state(source, file_no, page_no)
    except (FormatError, DiskError):
        return None


def _has_page(source: PageSource, file_no: int, page_no: int) -> bool:
    try:
        return source.read_page(file_no, page_no).end > 0
    except (FormatError, DiskError):
        return True


def _parse(record: Record) -> GtidState:
    try:
        return parse_state(record.contents(), record.major)
    except FormatError as error:
        if error.file is not None:
            raise
        raise record.error(error.what) from error
