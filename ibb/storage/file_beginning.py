"""
What a file begins with, out of one read: a kernel.

Who looks for a place among many files wants of most no more than the state that they begin with.
The readers of headers, pages and records would tell it, too; here all that they check is checked at
once, and whatever is not as it mostly is, is theirs. Runs as plain Python, too;
`file_beginning.pxd` gives it C types. Source: ibb-format 3.2, 4, 5.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython

from ibb.protocol.checksum import crc32c
from ibb.protocol.errors import FormatError

from .chunk import CHUNK_HEADER_SIZE, LAST
from .errors import DiskError
from .file_header import HEADER_UNIT, MAGIC, MAJOR_FINAL, FileHeader
from .file_name import binlog_name
from .page import CHECKSUM_SIZE, PAGE_SIZE_MAX, PAGE_SIZE_MIN
from .record import RecordType, parse_state

if not cython.compiled:  # else the .pxd names it
    from ibb.protocol.little_endian import number_at

if TYPE_CHECKING:
    from ibb.protocol.gtid import Gtid

    from .open_files import OpenFiles

READ_BYTES: Final = 32 << 10  # the header page and page 1 of the usual size

_unit, _checksum_size, _chunk_header = HEADER_UNIT, CHECKSUM_SIZE, CHUNK_HEADER_SIZE
_exponent_at, _major_at, _file_no_at = 4, 8, 16  # in a header page
_magic, _major_final = MAGIC, MAJOR_FINAL
_byte = 1
_exponent_min, _exponent_max = PAGE_SIZE_MIN.bit_length() - 1, PAGE_SIZE_MAX.bit_length() - 1
_whole_state = int(RecordType.GTID_STATE) | LAST


class FileBeginning(NamedTuple):
    """
    The beginning of a file.

    Attributes:
        header: its header.
        entries: of the full state on its page 1.
        page: page 1.
    """

    header: FileHeader
    entries: list[Gtid]
    page: bytes


def read_beginning(files: OpenFiles, file_no: int) -> FileBeginning | None:
    """
    Return the beginning of a file; None: it has to be looked at page by page.

    Args:
        files: to read it.
        file_no: of a file whose first pages do not change any more.
    """
    try:
        return files.read_page(file_no, 0, READ_BYTES, lambda start: _parse(start, file_no))
    except (FormatError, DiskError):
        return None  # who looks page by page is told, if it is one of these pages


def _parse(start: bytes, file_no: int) -> FileBeginning | None:
    """Return the beginning of a file out of its first bytes, as above; raises FormatError."""
    size = _state_size(start, file_no)
    if size < 0:
        raise FormatError("wrong checksum of page 0 or 1", file=binlog_name(file_no))
    if not size:
        return None
    header = FileHeader.unpack(start)
    page = start[header.page_size : 2 * header.page_size]
    state = parse_state(page[CHUNK_HEADER_SIZE : CHUNK_HEADER_SIZE + size], header.major)
    return FileBeginning(header, state.entries, page)


def _state_size(start: bytes, file_no: int) -> int:
    """Return the size of the state that page 1 begins with; 0: it is not as here; -1: damage."""
    view = start
    length = len(view)
    if length < _unit:
        return 0
    if not _is_sealed(view, 0, _unit):
        return -1
    exponent = number_at(view, _exponent_at, 4)
    if number_at(view, 0, 4) != _magic or number_at(view, _major_at, 4) > _major_final:
        return 0
    if not _exponent_min <= exponent <= _exponent_max:
        return 0
    page_size = _byte << exponent
    if length < 2 * page_size:
        return 0
    if not (_is_sealed(view, 0, page_size) and _is_sealed(view, page_size, page_size)):
        return -1
    if number_at(view, _file_no_at, 8) != file_no or view[page_size] != _whole_state:
        return 0
    size = view[page_size + 1] | view[page_size + 2] << 8
    return size if _chunk_header + size <= page_size - _checksum_size else 0


def _is_sealed(view: bytes, at: int, size: int) -> bool:
    """Tell whether *size* bytes from *at* on end with their checksum."""
    end = size - _checksum_size
    if cython.compiled:
        checksum = crc32c_at(cython.address(view[at]), end, 0)  # noqa: F821
    else:
        checksum = crc32c(view[at : at + end])
    return checksum == number_at(view, at + end, _checksum_size)
