"""
A hot backup: the store as it was at one moment, copied page by page while commits go on.

The copy ends exactly at the durable end of that moment: the page there is cut, and behind it the
last file is empty. An older file that its writer gave up is made full, so that it is not taken for
one that was being written. The copy has no redo log, so whoever opens it to write goes on in a file
of its own. Until it is whole a marker stands beside it, with which nobody opens it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.errors import FormatError

from .chunk import used_end
from .disk import Disk
from .errors import BackupError
from .file_name import binlog_name
from .format_catalogue import SIDECAR_NAME
from .given_up_files import full_page
from .history import BinlogFileInfo
from .holds import Hold
from .page_seal import seal_page
from .page_source import PageSource
from .position import Position
from .short_files import check_ends
from .small_file import read_small_file, replace_small_file

UNFINISHED_NAME = "backup.unfinished"
RUN_PAGES_MAX = 64  # pages written at once


class Backup(NamedTuple):
    """Where a backup ends: the place, and the GTID state of all that it holds."""

    end: Position
    state: BinlogState


class BackupSource(Protocol):
    """What is copied."""

    @property
    def pages(self) -> PageSource:
        """The pages."""

    @property
    def sidecar(self) -> str:
        """Path of the sidecar of format descriptions."""

    def files(self) -> list[BinlogFileInfo]:
        """Return the files."""


def copy_store(source: BackupSource, disk: Disk, target: str, backup: Backup, hold: Hold) -> Backup:
    """
    Copy everything up to the end of *backup* into the directory *target*; return *backup*.

    Args:
        source: the store.
        disk: where both are.
        target: path of the copy, a directory that is new or empty.
        backup: where the copy ends.
        hold: keeps the files meanwhile; moved on as they are copied.

    Raises:
        BackupError: *target* is not empty, or a file is missing.
        FormatError: a file lacks its end, or a page is damaged; the copy is not whole.
        DiskError: the copy could not be written.
    """
    with _nothing_copied_yet():
        files = [file for file in source.files() if file.file_no <= backup.end.file_no]
        _check_complete(files, backup.end)
        check_ends(source.pages, [file.file_no for file in files], backup.end)
    disk.make_dir(target)
    if disk.list(target):
        raise BackupError(f"the backup's directory {target} is not empty")
    marker = f"{target}/{UNFINISHED_NAME}"
    replace_small_file(disk, marker, b"This backup was begun and is not whole.\n")
    sidecar = read_small_file(disk, source.sidecar, bytes)
    for file in files:
        _copy_file(source.pages, disk, target, file, backup.end)
        hold.move(file.file_no)
    if sidecar is not None:
        replace_small_file(disk, f"{target}/{SIDECAR_NAME}", sidecar)
    disk.sync_dir(target)
    disk.unlink(marker)
    disk.sync_dir(target)
    return backup


def check_finished(disk: Disk, directory: str) -> None:
    """
    Raise if a directory is half a backup.

    Raises:
        FormatError: it is; nothing else in it was looked at.
    """
    marker = f"{directory}/{UNFINISHED_NAME}"
    if disk.exists(marker):
        raise FormatError("this backup was not finished: make it again", file=marker)


@contextmanager
def _nothing_copied_yet() -> Iterator[None]:
    """Say of damage that it was met before anything was copied, and who knows more of it."""
    try:
        yield
    except FormatError as error:
        what = f"{error.what}, so nothing was copied; `ibb verify` says what is lost"
        raise FormatError(what, file=error.file, page=error.page, offset=error.offset) from error


def _check_complete(files: list[BinlogFileInfo], end: Position) -> None:
    """Raise BackupError if a file is missing: the copy would say that it has its groups."""
    there = {file.file_no for file in files}
    first = min(there, default=end.file_no)
    for file_no in range(first, end.file_no + 1):
        if file_no not in there:
            raise BackupError(
                f"{binlog_name(file_no)} is missing, and its groups with it: `ibb verify` says"
                " which; put it back, or purge the files before it"
            )


def _copy_file(
    pages: PageSource, disk: Disk, target: str, info: BinlogFileInfo, end: Position
) -> None:
    header = pages.header(info.file_no)
    assert header is not None  # it was checked
    page_size = header.page_size
    is_last = info.file_no == end.file_no
    page_count = -(-end.offset // page_size) if is_last else info.size // page_size
    file = disk.open(f"{target}/{binlog_name(info.file_no)}", create=True)
    try:
        file.allocate(info.size)
        run: list[bytes | bytearray] = [header.encode()]
        begin = 0
        for page_no in range(1, page_count):
            ends_file = page_no == page_count - 1 and not is_last
            run.append(
                _page_image(pages, info.file_no, page_no, page_size, end, ends_file=ends_file)
            )
            if len(run) == RUN_PAGES_MAX:
                file.write_at(begin * page_size, run)
                begin, run = page_no + 1, []
        if run:
            file.write_at(begin * page_size, run)
        file.sync()
    finally:
        file.close()


def _page_image(
    pages: PageSource, file_no: int, page_no: int, page_size: int, end: Position, *, ends_file: bool
) -> bytearray:
    """
    Return a page with nothing behind the end of the backup, sealed.

    Args:
        pages: where it is.
        file_no: its file.
        page_no: its number there.
        page_size: bytes.
        end: of the backup.
        ends_file: it is the last one of a file that others follow, and made full as by a flush.
            A file that its writer gave up ends before: only a later file tells that it is not
            the one being written, and an empty one, which may be all there is, is not copied.
    """
    read = pages.read_page(file_no, page_no)
    if not read.data and page_no == 1 and ends_file:  # it was given up with nothing but a header
        return full_page(b"", 0, page_size)
    if not read.data:
        raise FormatError("a page is missing", file=binlog_name(file_no), page=page_no)
    visible = read.end
    if ends_file and used_end(read.data) < visible:
        raise FormatError(
            "data ends here although a later file is used", file=binlog_name(file_no), page=page_no
        )
    if file_no == end.file_no:
        visible = min(visible, end.offset - page_no * page_size)
    if ends_file:
        return full_page(read.data, visible, page_size)
    image = bytearray(page_size)
    image[:visible] = read.data[:visible]
    seal_page(image)
    return image
