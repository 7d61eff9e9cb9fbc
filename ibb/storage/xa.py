"""
Prepared XA transactions: what survives a crash without being published.

A prepare record names the transaction and points to its pieces; a complete record ends it, as
the last word on that name. State records tell how far back a restart has to look for them.
Source: ibb-format 5.5, 5.6, 11.5.
"""

from typing import NamedTuple

from .page_source import PageSource
from .position import Position
from .record import OobReference, RecordType, Xid, parse_xa_complete, parse_xa_prepare
from .record_reader import RecordReader
from .state_scan import last_page, read_state


class PreparedXa(NamedTuple):
    """
    A transaction that waits for its end.

    Attributes:
        xid: its name.
        engines: storage engines that took part.
        oob: its pieces.
        file_no: the lowest file that it needs.
    """

    xid: Xid
    engines: int
    oob: OobReference
    file_no: int


def find_prepared(source: PageSource, *, torn: bool = False) -> dict[Xid, PreparedXa]:
    """
    Return the transactions that are prepared at the end of *source*.

    Args:
        source: the binlog.
        torn: what was last in it may be missing. A transaction whose files are gone was ended
            there, since nobody purges what one that is prepared needs.

    Raises:
        FormatError: pages or records that have to be read are damaged, or missing.
    """
    prepared: dict[Xid, PreparedXa] = {}
    start, first = _scan_start(source), source.first_file()
    records = RecordReader(source, max(start, Position(first, 0)) if torn else start)
    while (record := records.next()) is not None:
        if record.type == RecordType.XA_PREPARE:
            found = parse_xa_prepare(record.contents())
            file_no = found.oob.first.file_no if found.oob.count else record.position.file_no
            prepared[found.xid] = PreparedXa(found.xid, found.engines, found.oob, file_no)
        elif record.type == RecordType.XA_COMPLETE:
            prepared.pop(parse_xa_complete(record.contents()).xid, None)
    if torn:
        return {xid: found for xid, found in prepared.items() if found.file_no >= first}
    return prepared


def _scan_start(source: PageSource) -> Position:
    """Return from where on every prepare record still open can be met."""
    first = source.first_file()
    for file_no in reversed(source.file_numbers()):
        header = source.header(file_no)
        if header is None:
            continue
        interval = header.state_interval
        last = last_page(source, file_no)
        pages = range(last - last % interval, 1, -interval) if interval else ()
        for page_no in (*pages, 1):
            state = read_state(source, file_no, page_no)
            if state is not None:
                if state.xa_file is not None:
                    return Position(state.xa_file, 0)
                return Position(file_no, page_no * header.page_size)
    return Position(first, 0)
