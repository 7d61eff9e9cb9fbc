"""
What a reader has still to be sent, for SHOW BINLOG READERS.

The groups ahead of it are counted one by one as far as that is cheap, and beyond it by their
sequence numbers. What that number is worth for a domain depends on its history; the count is exact
for whoever is near the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.dump_filter import DumpFilter, Verdict
from ibb.protocol.errors import FormatError, SqlError
from ibb.protocol.event import EventHeader
from ibb.storage.errors import DiskError
from ibb.storage.group_head import read_head
from ibb.storage.record import RecordType
from ibb.storage.record_reader import RecordReader

if TYPE_CHECKING:
    from ibb.protocol.gtid import Gtid
    from ibb.storage.history import History
    from ibb.storage.position import Position

    from .dump_batch import Place
    from .readers import Progress

GROUPS_COUNTED_MAX: Final = 1000  # for one reader
RECORDS_READ_MAX: Final = 4000  # for one reader: pieces of large groups are records, too


class Ahead(NamedTuple):
    """
    What a reader has still to be sent.

    Attributes:
        start: behind the last group that was sent.
        groups: how many are ahead of it.
        oldest: when the first of them was written, in seconds since 1970; None: nobody knows.
    """

    start: Position
    groups: int
    oldest: int | None


def look_ahead(history: History, progress: Progress, at: Place) -> Ahead:
    """Return what a reader of *history* has still to be sent that is *at* a place."""
    count = _Count(history, progress, at)
    try:
        count.walk()
    except (FormatError, DiskError, SqlError):
        count.is_whole = False  # the reader will be told when it is there
    groups = count.groups if count.is_whole else count.groups + count.by_numbers()
    oldest, first = count.oldest, at.unsent
    if first is not None and first.gtid is not None:
        oldest = first.timestamp
    return Ahead(count.start, groups, oldest)


class _Count:
    """
    A count of groups.

    Attributes:
        start: behind the last group that was sent, as far as is known.
        groups: that were counted.
        oldest: timestamp of the first one.
        is_whole: the end of the history was reached.
    """

    def __init__(self, history: History, progress: Progress, at: Place) -> None:
        self._history = history
        self._first = at.position if at.unsent is None else at.unsent.position
        self._had: dict[int, Gtid] = {gtid.domain: gtid for gtid in progress.reached}
        had = progress.start if at.skipping else None
        self._filter = None if had is None else DumpFilter(had, BinlogState())
        self.start = at.position
        self.groups = 0
        self.oldest: int | None = None
        self.is_whole = False

    def walk(self) -> None:
        """Count groups one by one, up to the limits; raises what reading may meet."""
        records = RecordReader(self._history.pages, self.start)
        for _ in range(RECORDS_READ_MAX):
            record = records.next()
            if record is None:
                self.is_whole = self._history.pages.first_file() <= self.start.file_no
                return
            if record.type != RecordType.COMMIT:
                continue
            head = read_head(record)
            if head is None or head.gtid is None:
                continue
            if record.position < self._first:
                self.start = records.position
                continue
            self._had[head.gtid.domain] = head.gtid
            if self._filter is not None and self._filter.wants(head.gtid) is Verdict.SKIP:
                continue
            self.groups += 1
            if self.oldest is None:
                self.oldest = EventHeader.unpack(head.event).timestamp
            if self.groups >= GROUPS_COUNTED_MAX:
                return

    def by_numbers(self) -> int:
        """Return how many more there are by sequence numbers; one of a domain not met yet."""
        groups = 0
        for newest in self._history.state().position():
            had = self._had.get(newest.domain)
            groups += 1 if had is None else max(0, newest.seq - had.seq)
        return groups
