"""
Second reads: what is wrong when an opening first reads it is read once more, from the device.

A bit that flips on the way from the disk must cost neither a start nor, where what is wrong reads
as the end of the log, a group. Readers of an open store have their own (`open_files.py`), which
count what they healed.
"""

import logging
from collections.abc import Callable
from typing import TypeVar

from ibb.protocol.errors import FormatError

from .disk import File
from .file_header import FileHeader
from .page import PAGE_SIZE_MAX

Checked = TypeVar("Checked")

_log = logging.getLogger(__name__)


def read_again(file: File, offset: int, size: int) -> bytes:
    """Return bytes from the device, not from a cache that may hold a wrong read."""
    file.forget_cached(offset, size)
    return file.read_at(offset, size)


def read_checked(file: File, offset: int, size: int, check: Callable[[bytes], Checked]) -> Checked:
    """
    Return what a check makes of some bytes of a file.

    Args:
        file: the file.
        offset: of the first byte.
        size: bytes; there are fewer where the file ends.
        check: raises FormatError when they are not what they should be.

    Raises:
        FormatError: the check failed twice.
        DiskError: they cannot be read.
    """
    data = file.read_at(offset, size)
    try:
        return check(data)
    except FormatError as error:
        wrong = error
    checked = check(read_again(file, offset, size))
    tell_of_healed(str(wrong))
    return checked


def read_file_header(file: File, file_no: int) -> FileHeader:
    """Return the header of a binlog file; raises as `read_checked`."""
    return read_checked(file, 0, PAGE_SIZE_MAX, lambda start: FileHeader.parse(start, file_no))


def tell_of_healed(what: str) -> None:
    """Log that something was wrong when it was first read: a sign of failing hardware."""
    _log.warning("%s: it was right when it was read again, from the device", what)
