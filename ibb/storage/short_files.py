"""
Whether older files that end before their full length hold all that was logged in them.

FLUSH cuts a file behind its last record, and a writer that was killed gave one up early; what a
disk or a person cut off looks the same. It shows in three places: a record without its end, the
state that the next file begins with, and pieces that later groups and prepared transactions point
to. Pages of files that are full need no such look. Source: ibb-format 5.2, 6.3, 7.3, 12.1.
"""

import logging
from collections.abc import Iterator

from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid

from .chunk import chunk_area_end, used_end
from .early_end import told_gtids
from .errors import BackupError
from .file_header import FileHeader
from .file_name import binlog_name
from .file_states import FileStates
from .group_reader import GroupReader, read_list
from .page_source import NO_MORE_DATA, PageRead, PageSource, PageStatus
from .position import Position
from .state_scan import find_state, last_page, read_state
from .xa import find_prepared

_log = logging.getLogger(__name__)


def check_ends(source: PageSource, files: list[int], end: Position) -> None:
    """
    Raise unless every older file that ends early has all that it must have.

    Args:
        source: the pages.
        files: numbers of all files up to that of *end*, without a gap.
        end: behind the last record that matters.

    Raises:
        BackupError: a file is empty.
        FormatError: groups, or parts of them, are gone; or what has to be read is damaged.
        DiskError: it cannot be read.
    """
    headers = {file_no: _header(source, file_no) for file_no in files}
    short = [no for no in files if no < end.file_no and _is_short(source, headers[no])]
    for file_no in short:
        _check_records(source, file_no)
    if short:
        _check_pieces(source, headers, short, end)


def _header(source: PageSource, file_no: int) -> FileHeader:
    header = source.header(file_no)
    if header is None:
        raise BackupError(
            f"{binlog_name(file_no)} is empty although data follows, and its groups are missing:"
            " `ibb verify` says which; put it back, or purge the files up to it"
        )
    return header


def _is_short(source: PageSource, header: FileHeader) -> bool:
    """Tell whether not every page of a file is there, and full."""
    read = source.read_page(header.file_no, max(header.page_count - 1, 1))
    if read.status is not PageStatus.PAGE:
        return True
    return used_end(read.data) < chunk_area_end(header.page_size)


def _check_records(source: PageSource, file_no: int) -> None:
    """Raise if a record of a file has no end, or the next file begins with a later state."""
    below = _UpTo(source, Position(file_no + 1, 0))
    passed = find_state(below).state
    full = read_state(source, file_no + 1, 1)
    if full is None or not _has_state(below):
        return  # there is nothing to tell it by
    if lost := [gtid for gtid in full.entries if not passed.contains(gtid)]:
        page = last_page(source, file_no) + 1
        what = f"data ends early: the groups up to {told_gtids(lost)} are missing"
        raise FormatError(what, file=binlog_name(file_no), page=page)


def _has_state(source: PageSource) -> bool:
    """Tell whether the state at the end of a source is known, not only what its files add."""
    return source.first_file() == 0 or any(
        read_state(source, file_no, 1) is not None for file_no in reversed(source.file_numbers())
    )


def _check_pieces(
    source: PageSource, headers: dict[int, FileHeader], short: list[int], end: Position
) -> None:
    """Raise if a group or a prepared transaction lacks pieces from a file that ends early."""
    first = source.first_file()

    def may_lack(piece: Position, file_no: int) -> bool:
        """Tell whether a list from *piece* to a file passes the end of one; purged ones do not."""
        return piece.file_no >= first and any(piece.file_no <= no < file_no for no in short)

    below = _UpTo(source, end)
    for file_no, header in headers.items():
        if not any(header.lowest_oob_file <= no < file_no for no in short):
            continue
        groups = GroupReader(below, Position(file_no, 0))
        while (group := groups.next()) is not None and group.position.file_no == file_no:
            if any(may_lack(events.first, file_no) for events in group.lists):
                _read_all(group.pieces())
    for prepared in find_prepared(below, torn=True).values():
        pieces, file_no = prepared.oob, prepared.file_no
        if pieces.count and may_lack(pieces.first, end.file_no):
            _read_all(read_list(below, pieces, before=end, lowest_file=file_no, report=_log.info))


def _read_all(pieces: Iterator[bytes | memoryview]) -> None:
    for _ in pieces:
        pass


class _UpTo:
    """
    A source that ends at a place although its writer goes on behind it.

    Args:
        source: the whole.
        end: behind a whole record, or at the beginning of a file.
    """

    tail_is_final = True

    def __init__(self, source: PageSource, end: Position) -> None:
        self._source = source
        self._end = end
        self._last = end.file_no if end.offset else end.file_no - 1
        self.healed, self.file_states = source.healed, FileStates()

    def first_file(self) -> int:
        return self._source.first_file()

    def last_file(self) -> int:
        return min(self._last, self._source.last_file())

    def file_numbers(self) -> list[int]:
        return [number for number in self._source.file_numbers() if number <= self._last]

    def header(self, file_no: int) -> FileHeader | None:
        return self._source.header(file_no) if file_no <= self._last else None

    def first_state(self, file_no: int) -> list[Gtid] | None:
        return self._source.first_state(file_no) if file_no < self._last else None

    def read_page(self, file_no: int, page_no: int) -> PageRead:
        header = self.header(file_no)
        start = page_no * header.page_size if header is not None else 0
        if self._end <= (file_no, start):
            return NO_MORE_DATA
        read = self._source.read_page(file_no, page_no)
        if self._end < (file_no, start + read.end):
            return PageRead(read.data, self._end.offset - start, PageStatus.END_OF_DATA)
        return read
