"""What files there are, and their header pages. Source: ibb-format 3, 14."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from ibb.protocol.checksum import crc32c
from ibb.protocol.errors import FormatError
from ibb.storage.aside import ASIDE_SUFFIX
from ibb.storage.disk import Disk, File
from ibb.storage.errors import DiskError
from ibb.storage.file_header import (
    HEADER_CHECKSUM_AT,
    HEADER_FIELDS_SIZE,
    HEADER_UNIT,
    MAGIC,
    MAJOR_FINAL,
    NO_XA,
    FileHeader,
)
from ibb.storage.file_name import binlog_name, is_misspelt, parse_binlog_name
from ibb.storage.listing import EMPTY_FILES_MAX, NEWEST_EMPTY
from ibb.storage.page import CHECKSUM_SIZE, PAGE_SIZE_MAX, PAGE_SIZE_MIN, check_page, page_is_zero

from .finding import Finding, Kind
from .holes import Holes

_WINDOW = 1 << 20  # bytes
_ZEROS = bytes(_WINDOW)


class FileState(NamedTuple):
    """
    A file before its pages are looked at.

    Attributes:
        file_no: its number.
        size: bytes.
        header: None if it has none that is valid.
        empty: it was made in advance and holds nothing.
        findings: what is wrong with all of it.
    """

    file_no: int
    size: int
    header: FileHeader | None
    empty: bool
    findings: list[Finding]


def check_names(names: list[str]) -> Iterator[Finding]:
    """Yield what is odd about the names in a directory."""
    for name in names:
        if is_misspelt(name):
            text = "not the canonical spelling of a binlog file's name: ignored"
            yield Finding(kind=Kind.MISSPELT_NAME, text=text, file=name)
        original, aside, _ = name.partition(ASIDE_SUFFIX)
        if aside and parse_binlog_name(original) is not None:
            text = f"a recovery cleared something in {original} and kept this copy"
            yield Finding(kind=Kind.SET_ASIDE, text=text, file=name)


def check_file(disk: Disk, path: str, file_no: int) -> FileState:
    """
    Look at the length and the header of a file.

    Raises:
        DiskError: it is missing.
    """
    size = 0
    try:
        size = disk.size(f"{path}/{binlog_name(file_no)}")
        file = disk.open(f"{path}/{binlog_name(file_no)}", read_only=True)
    except DiskError as error:
        if error.missing:
            raise
        return _unreadable(file_no, size, error)
    try:
        start = _read_start(file, file_no)
        if page_is_zero(start[:HEADER_UNIT]):
            empty = _is_zero(file, size)
            start = start if empty else _read_start(file, file_no)  # begun to be used meanwhile?
            if page_is_zero(start[:HEADER_UNIT]):
                return _without_header(file_no, size, empty=empty)
    except DiskError as error:
        return _unreadable(file_no, size, error)
    finally:
        file.close()
    return _with_header(file_no, size, start)


def _is_zero(file: File, size: int) -> bool:
    """Tell whether all of a file is zero; of what is only reserved nothing is read."""
    holes = Holes(file)
    for offset in range(0, size, _WINDOW):
        if not holes.has(offset, _WINDOW):
            data = file.read_at(offset, _WINDOW)
            if data != _ZEROS[: len(data)]:
                return False
    return True


def _read_start(file: File, file_no: int) -> bytes:
    """Return the beginning of a file, read from the device if it looked wrong at first."""
    start = file.read_at(0, PAGE_SIZE_MAX)
    try:
        FileHeader.parse(start, file_no)
    except FormatError:
        file.forget_cached(0, PAGE_SIZE_MAX)
        start = file.read_at(0, PAGE_SIZE_MAX)
    return start


def _unreadable(file_no: int, size: int, error: DiskError) -> FileState:
    finding = Finding.in_file(Kind.UNREADABLE, file_no, str(error))
    return FileState(file_no, size, None, empty=False, findings=[finding])


def _without_header(file_no: int, size: int, *, empty: bool) -> FileState:
    findings = []
    if not empty:
        name = binlog_name(file_no)
        text = f"Invalid or corrupt file header in file '{name}': it is zero, what follows is not"
        findings.append(Finding.in_page(Kind.HEADER_ZERO, file_no, 0, text))
    elif 0 < size < 2 * PAGE_SIZE_MIN:
        text = f"file too short: {size} bytes"
        findings.append(Finding.in_file(Kind.FILE_TOO_SHORT, file_no, text))
    return FileState(file_no, size, None, empty, findings)


def _with_header(file_no: int, size: int, start: bytes) -> FileState:
    try:
        header = FileHeader.parse(start, file_no)
    except FormatError as error:
        kind = _classify(start, file_no)
        finding = Finding.in_page(kind, file_no, 0, error.what)
        return FileState(file_no, size, None, empty=False, findings=[finding])
    if size < 2 * header.page_size:
        finding = Finding.in_file(Kind.FILE_TOO_SHORT, file_no, f"file too short: {size} bytes")
        return FileState(file_no, size, None, empty=False, findings=[finding])
    findings = []
    for which, reference in (
        ("oob", header.lowest_oob_file),
        ("XA", 0 if header.xa_reference == NO_XA else header.xa_reference),
    ):
        if reference > file_no:
            text = f"{which} reference {reference} in the header leads to a later file"
            findings.append(Finding.in_page(Kind.HEADER_REFERENCE, file_no, 0, text))
    rest = start[HEADER_FIELDS_SIZE:HEADER_CHECKSUM_AT], start[HEADER_UNIT : header.page_size]
    if rest[0].strip(b"\0") or rest[1][:-CHECKSUM_SIZE].strip(b"\0"):
        text = "bytes behind the header's fields are not zero"
        findings.append(Finding.in_page(Kind.HEADER_EXTRA, file_no, 0, text))
    return FileState(file_no, size, header, empty=False, findings=findings)


def _classify(start: bytes, file_no: int) -> Kind:
    """Return which rule a header page breaks that cannot be parsed."""
    if len(start) < HEADER_UNIT:
        return Kind.FILE_TOO_SHORT
    stored = int.from_bytes(start[HEADER_CHECKSUM_AT:HEADER_UNIT], "little")
    if stored != crc32c(start[:HEADER_CHECKSUM_AT]):
        return Kind.HEADER_CHECKSUM
    magic, exponent, major = (int.from_bytes(start[at : at + 4], "little") for at in (0, 4, 8))
    if magic != MAGIC:
        return Kind.HEADER_MAGIC
    if major > MAJOR_FINAL:
        return Kind.HEADER_VERSION
    if not PAGE_SIZE_MIN.bit_length() - 1 <= exponent < PAGE_SIZE_MAX.bit_length():
        return Kind.HEADER_PAGE_SIZE
    if len(start) < 1 << exponent:
        return Kind.FILE_TOO_SHORT
    try:
        check_page(start[: 1 << exponent], file_no, 0)
    except FormatError:
        return Kind.HEADER_PAGE_CHECKSUM
    return Kind.HEADER_FILE_NUMBER


def check_sequence(files: list[FileState], *, own_redo: bool) -> Iterator[Finding]:
    """
    Yield what is odd about the headers of files one behind the other.

    Args:
        files: in order.
        own_redo: a store's redo log tells where they end, however many empty ones follow.
    """
    for before, after in pairwise(state.header for state in files if state.header is not None):
        if after.lsn < before.lsn:
            text = f"LSN {after.lsn} is lower than {before.lsn} in {binlog_name(before.file_no)}"
            yield Finding.in_page(Kind.HEADER_LSN, after.file_no, 0, text)
    newest = files[-EMPTY_FILES_MAX - 1 :]
    if not own_redo and len(newest) > EMPTY_FILES_MAX and all(state.empty for state in newest):
        yield Finding.in_file(Kind.NEWEST_EMPTY, newest[0].file_no, NEWEST_EMPTY)


def newest_used(files: list[FileState]) -> int:
    """Return the highest number of a file that holds something, readable or not; -1: none does."""
    return max((state.file_no for state in files if not state.empty), default=-1)
