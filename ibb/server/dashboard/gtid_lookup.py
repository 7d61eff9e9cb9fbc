"""
Where a group is: the file and the offset of a GTID.

The states in the files lead to a place before it, from which its domain is read on: an interval of
states at most, unless numbers do not ascend.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.server.dump.readers import bytes_between
from ibb.storage.file_name import binlog_name
from ibb.storage.group_head import read_head
from ibb.storage.gtid_search import TooOld, find_start
from ibb.storage.holds import HoldKind
from ibb.storage.record import RecordType
from ibb.storage.record_reader import RecordReader

from .group_look import HOLDER

if TYPE_CHECKING:
    from ibb.protocol.gtid import Gtid
    from ibb.storage.history import History
    from ibb.storage.position import Position

SEARCH_SECONDS_MAX: Final = 3.0
_RECORDS_A_LOOK: Final = 256  # between looks at the clock
_BYTES_PAST_MAX: Final = 64 << 20  # read behind the place where it should have been


class FoundGtid(NamedTuple):
    """
    What came of a search.

    Attributes:
        position: of the group's commit record, None if it was not found.
        answer: in words.
    """

    gtid: Gtid
    position: Position | None
    answer: str


def find_gtid(history: History, gtid: Gtid, seconds: float = SEARCH_SECONDS_MAX) -> FoundGtid:
    """
    Return where *gtid* is, or why that cannot be told; blocking, for *seconds* at most.

    Raises:
        FormatError, DiskError: a file that has to be read is damaged, or cannot be read.
    """
    state = history.state()
    newest = state.newest(gtid.domain)
    if newest is None:
        return FoundGtid(gtid, None, f"the binlog has no groups of domain {gtid.domain}")
    if not state.contains(gtid):
        last = state.seq(gtid.domain, gtid.server)
        known = "nothing" if last is None else f"nothing behind {gtid._replace(seq=last)}"
        text = f"not in the binlog: it has {known} of server {gtid.server} in this domain"
        return FoundGtid(gtid, None, f"{text}, whose newest group is {newest}")
    before = state.position()
    before.set(gtid._replace(seq=gtid.seq - 1))
    with history.hold(HoldKind.READER, HOLDER):
        try:
            start = find_start(history.pages, before).position
        except TooOld:
            first = binlog_name(history.pages.first_file())
            return FoundGtid(gtid, None, f"purged: it was in a file before {first}")
        return _read_on(history, gtid, start, time.monotonic() + seconds)


def _read_on(history: History, gtid: Gtid, start: Position, until: float) -> FoundGtid:
    """Read from *start* until the group comes, or one behind it long ago."""
    sizes = {file.file_no: file.size for file in history.files()}
    records = RecordReader(history.pages, start)
    passed: Position | None = None
    looked = 0
    while (record := records.next()) is not None:
        looked += 1
        if not looked % _RECORDS_A_LOOK and time.monotonic() > until:
            text = f"not found in the time for a search: read on from {_place(record.position)}"
            return FoundGtid(gtid, None, text)
        if record.type != RecordType.COMMIT:
            continue
        head = read_head(record)
        if head is None or head.gtid is None:
            continue
        if head.gtid == gtid:
            return FoundGtid(gtid, record.position, f"in {_place(record.position)}")
        if head.gtid[:2] == gtid[:2] and head.gtid.seq > gtid.seq:
            passed = passed or record.position
        if passed is not None and bytes_between(passed, record.position, sizes) > _BYTES_PAST_MAX:
            break
    where = "" if passed is None else f" (the next of its server is in {_place(passed)})"
    return FoundGtid(gtid, None, f"not in the binlog: its numbers have a hole there{where}")


def _place(position: Position) -> str:
    return f"{binlog_name(position.file_no)} at {position.offset}"
