"""
A position in the middle of what a file's page 1 holds: then it is this file, and this the place.

That is seen by the page alone, where to compare the states of two files takes a look at the next
one, too. So it is where files are many and hold little. Source: ibb-format 4, 5.1, 8.4.
"""

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid, GtidPosition

from .chunk import LAST, read_chunk
from .commit_scan import find_alone, find_commit
from .errors import DiskError
from .file_header import MAJOR_FINAL
from .group_head import peek_gtid
from .page_source import PageSource
from .position import Position


def find_on_first_page(
    source: PageSource, file_no: int, base: BinlogState, position: GtidPosition
) -> tuple[Position, BinlogState] | None:
    """
    Return the place behind a position's own group, and the state there, if page 1 tells that.

    It does so by a group behind that place which the position has not got: no later file begins
    before the position then, if no number is logged twice. Before it there are none but those of
    the same server with lower numbers, or none at all.

    Args:
        source: the pages.
        file_no: of the file.
        base: the state that it begins with, which is before *position*.
        position: what the reader has.
    """
    try:
        header, read = source.header(file_no), source.read_page(file_no, 1)
    except (FormatError, DiskError):
        return None  # who reads from there is told
    if header is None or header.major != MAJOR_FINAL:
        return None
    page, end = read.data, read.end
    for wanted in position:
        start: int | None = 0
        if base.newest(wanted.domain) != wanted:
            start = _end_of(page, find_alone(page, end, wanted), end)
        if start is None or not _is_passed(page, start, end, wanted):
            continue
        state = base.copy()
        state.update(wanted)
        return Position(file_no, header.page_size + start), state
    return None


def _end_of(page: bytes, at: int, end: int) -> int | None:
    """Return where the record in a chunk ends; None: there is none, or it goes on."""
    chunk = read_chunk(page, at, end) if at >= 0 else None
    if chunk is None or not chunk[1] & LAST:
        return None
    return chunk[2] + chunk[3]


def _is_passed(page: bytes, start: int, end: int, gtid: Gtid) -> bool:
    """Tell whether a place in a page is followed by a later group of a domain, and not that one."""
    at = find_commit(page, start, end, None)
    chunk = read_chunk(page, at, end) if at >= 0 else None
    if chunk is None or find_commit(page, at, end, gtid) >= 0:
        return False  # it may be logged once more: then that is where it is
    following = peek_gtid(page, chunk[2], chunk[3])
    return following is not None and following.domain == gtid.domain and following.seq > gtid.seq
