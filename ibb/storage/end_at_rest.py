"""
Where a binlog ends of which the redo log does not tell: behind its last whole record.

Files can end inside a record: a program that was killed has not written the rest, or a power loss
took it. Nobody was ever given such a record, so it is as if nothing of it were there. What follows
it is nothing either, for pages can be missing before others that were written later, as long as a
file is not known to be complete. Source: ibb-format 7.3, 9.4, 11.3.
"""

from collections.abc import Iterator

from ibb.protocol.errors import FormatError

from .chunk import LAST, TYPE_MASK, chunk_area_end, chunks_end
from .chunk_cursor import ChunkCursor
from .directory import BinlogDirectory
from .disk import Disk
from .file_name import binlog_name
from .page_source import PageStatus
from .position import Position
from .record_reader import NESTED_TYPES, RecordReader
from .state_scan import last_page


def find_end_at_rest(disk: Disk, directory: str) -> Position:
    """
    Return the end of the last whole record in the files; filler may still be due there.

    Args:
        disk: where the files are.
        directory: their path.

    Raises:
        FormatError: pages that have to be read are damaged, or hold no beginning of a record.
        DiskError: they cannot be read.
    """
    pages = BinlogDirectory(disk, directory)
    try:
        end = _end_of_data(pages)
        whole = _behind_whole_records(pages)
        return whole if whole < end else _before_filler(pages, end)
    finally:
        pages.close()


def find_end_of_data(disk: Disk, directory: str) -> Position:
    """
    Return the end of the last page that holds anything, whole records or not, damaged or not.

    Raises:
        DiskError: the files cannot be read.
    """
    pages = BinlogDirectory(disk, directory)
    try:
        return _end_of_data(pages)
    finally:
        pages.close()


def _end_of_data(pages: BinlogDirectory) -> Position:
    end = pages.end()
    if pages.unreadable is not None:
        raise pages.unreadable
    return end


def _behind_whole_records(pages: BinlogDirectory) -> Position:
    for start in _starts(pages):
        records = _read_on(pages, start)
        if records.met_boundary:
            return records.position
    _check_beginning(pages)
    return records.position


def _read_on(pages: BinlogDirectory, start: Position) -> RecordReader:
    """Return a reader that has come to the end, or to a record without an end."""
    records = RecordReader(pages, start)
    while records.next() is not None:
        pass
    return records


def _starts(pages: BinlogDirectory) -> Iterator[Position]:
    """Yield places from the newest back: the last state's in each file, and its beginning."""
    newest, first = pages.last_file(), pages.first_file()
    if newest > first and _ends_early(pages, newest - 1):
        newest -= 1
    for file_no in range(newest, first - 1, -1):
        header = pages.header(file_no)
        if header is not None and header.state_interval:
            last = last_page(pages, file_no)
            yield Position(file_no, (last - last % header.state_interval) * header.page_size)
        yield Position(file_no, 0)


def _ends_early(pages: BinlogDirectory, file_no: int) -> bool:
    """Tell whether pages may be missing at the end of a file though a later one is used."""
    try:
        header = pages.header(file_no)
        if header is None:
            return False
        last = pages.size(file_no) // header.page_size - 1
        return pages.read_page(file_no, last).status is PageStatus.END_OF_DATA
    except FormatError:
        return False  # it is there; whoever reads it will see what is wrong


def _check_beginning(pages: BinlogDirectory) -> None:
    """Check that files without any beginning of a record hold no rest of one, and a whole state."""
    first, has_state, begins_one = pages.first_file(), False, False
    chunks = ChunkCursor(pages, Position(first, 0))
    while chunks.next():
        if chunks.type_byte & TYPE_MASK not in NESTED_TYPES:
            raise chunks.error("the files hold only a part of a record whose beginning is gone")
        begins_one, has_state = True, has_state or bool(chunks.type_byte & LAST)
    if not has_state and (begins_one or first > 0):
        left = "only the beginning of a record" if begins_one else "nothing but a header"
        text = f"{left} is left, so the GTID state is not known"
        raise FormatError(text, file=binlog_name(first), page=1)


def _before_filler(pages: BinlogDirectory, end: Position) -> Position:
    """Return the end of data, before the last bytes of a page that were not filled up yet."""
    header = pages.header(end.file_no)
    if header is None or end.offset <= header.page_size or end.offset % header.page_size:
        return end
    start = end.offset - header.page_size
    unfilled = chunks_end(pages.stored_page(end.file_no, start // header.page_size))
    if unfilled < chunk_area_end(header.page_size):
        return Position(end.file_no, start + unfilled)
    return end
