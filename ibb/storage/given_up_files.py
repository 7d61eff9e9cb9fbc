"""
Older files that another program gave up early, when a store takes their directory over.

Such a file ends where a record would be next, and has all the same every group that was logged
before the next one. In a file of a store of ours that is always damage, as it fills a file before
it goes on in the next. So the take-over makes such a file full, as a flush leaves one: nobody has
to know later who wrote it. Source: ibb-format 4.2, 7.3, 11.4, 12.1.
"""

import logging
from typing import NamedTuple

from ibb.protocol.errors import FormatError

from .aside import is_used_from, set_aside
from .chunk import (
    CHUNK_HEADER_SIZE,
    CHUNK_SIZE_MIN,
    FILLER,
    LAST,
    chunk_area_end,
    chunk_header,
    chunks_end,
)
from .directory import BinlogDirectory
from .disk import Disk
from .errors import DiskError
from .file_name import binlog_name
from .page import CHECKSUM_SIZE, page_is_zero
from .page_seal import seal_page
from .page_source import PageStatus
from .record import RecordType
from .state_scan import last_page, read_state

_COPY_BYTES = 1 << 20

_log = logging.getLogger(__name__)


class _GivenUp(NamedTuple):
    """A file that was given up, and the last page that it is to have."""

    file_no: int
    page_size: int
    page_no: int
    page: bytes
    end: int  # of what is used of that page


def close_given_up_files(disk: Disk, directory: str, active: int) -> list[str]:
    """
    Make older files full that were given up early and have all groups.

    One that lacks groups stays as it is, and one of which no state of the next file tells: reading
    it says that something is missing. So does one that cannot be read.

    Args:
        disk: where the directory is.
        directory: its path. No store has written in it.
        active: the file in which data ends.

    Returns:
        Copies that were set aside, of files that held something behind their end.

    Raises:
        DiskError: a file cannot be written; it is as it was.
    """
    copies = []
    pages = BinlogDirectory(disk, directory)
    try:
        for file_no in range(pages.first_file(), active):
            found = _look(pages, file_no)
            if found is not None:
                copies += _close(disk, f"{directory}/{binlog_name(file_no)}", found)
    finally:
        pages.close()
    return copies


def full_page(data: bytes, end: int, page_size: int) -> bytearray:
    """
    Return a page, sealed, with what is left of it filled up as a flush does with the last.

    Args:
        data: the page.
        end: of what is used of it: that of its last chunk, or of the chunk area.
        page_size: bytes.
    """
    page = bytearray(page_size)
    page[:end] = data[:end]
    end = min(end, chunks_end(bytes(page)))  # its last bytes may not have been filled up
    room = chunk_area_end(page_size) - end
    if room < CHUNK_SIZE_MIN:
        page[end:-CHECKSUM_SIZE] = bytes([FILLER]) * room
    else:
        length = room - CHUNK_HEADER_SIZE
        filler = bytes([FILLER]) * length
        page[end:-CHECKSUM_SIZE] = chunk_header(RecordType.DUMMY | LAST, length) + filler
    seal_page(page)
    return page


def _look(pages: BinlogDirectory, file_no: int) -> _GivenUp | None:
    """Return a file if it was given up and nothing is lost."""
    try:
        header = pages.header(file_no)
        if header is None:
            return None
        page_size = header.page_size
        last = pages.read_page(file_no, pages.size(file_no) // page_size - 1)
        if last.status is not PageStatus.END_OF_FILE:
            return None  # it is full, or has lost groups
        pages.early_ends.check(file_no)
        if read_state(pages, file_no + 1, 1) is None:
            return None
        page_no = max(last_page(pages, file_no), 1)
        read = pages.read_page(file_no, page_no)
        return _GivenUp(file_no, page_size, page_no, read.data, read.end)
    except (FormatError, DiskError) as error:
        _log.warning("%s stays as it is, though others follow: %s", binlog_name(file_no), error)
        return None


def _close(disk: Disk, path: str, given_up: _GivenUp) -> list[str]:
    """Make a file full; return the copy that was set aside of it, if there is one."""
    page_size, end = given_up.page_size, given_up.end
    start = given_up.page_no * page_size
    file = disk.open(path)
    try:
        behind = given_up.page[end : chunk_area_end(page_size)]
        odd = not page_is_zero(behind) or is_used_from(file, start + page_size)
        copies = [set_aside(disk, path)] if odd else []
        last = full_page(given_up.page, end, page_size)
        if last == given_up.page:
            file.truncate(start + page_size)
            file.sync()
        else:  # not in place: a write that is torn would take groups along
            new = disk.open(f"{path}.new", create=True)
            try:
                new.truncate(0)
                for offset in range(0, start, _COPY_BYTES):
                    new.write_at(offset, file.read_at(offset, min(_COPY_BYTES, start - offset)))
                new.write_at(start, last)
                new.sync()
            finally:
                new.close()
            disk.rename(f"{path}.new", path)
            disk.sync_dir(path.rpartition("/")[0])
    finally:
        file.close()
    _log.warning("%s was given up early with all its groups: it is made full", path)
    return copies
