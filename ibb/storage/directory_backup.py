"""
A backup of a directory that another process may be writing: `ibb backup` beside `ibb serve`.

Nothing is asked of the writer, and nothing written into its directory. What it has synced is what
its redo log says; the files are held open from the first moment on, so that a purge takes away
their names, but not what is in them.
"""

import errno
from collections.abc import Sequence

from ibb.protocol.errors import FormatError

from .backup import Backup, check_finished, copy_store
from .directory import BinlogDirectory
from .disk import Buffer, Disk, File, Lock
from .errors import BackupError, DiskError
from .file_header import FileHeader
from .file_name import binlog_name, parse_binlog_name
from .format_catalogue import SIDECAR_NAME
from .gtid_search import find_file_start
from .history import BinlogFileInfo
from .holds import HoldKind, Holds
from .page_source import PageRead, PageStatus
from .position import Position
from .record_reader import FILES_OF_RECORD_MAX, RecordReader
from .reset_marker import ResetMarker
from .state_scan import find_state, last_page
from .verify.finding import Kind
from .verify.redo import check_redo

TRIES_MAX = 5  # to open all files, while a purge removes some


def back_up_directory(disk: Disk, directory: str, target: str) -> Backup:
    """
    Copy all that is durable in a directory, which may be in use, into the directory *target*.

    Args:
        disk: where both are.
        directory: path of the binlog files and the redo log; it is only read.
        target: path of the copy, a directory that is new or empty; it will be a store by itself.

    Returns:
        The end of the copy and its GTID state.

    Raises:
        BackupError: *target* is not empty, there is nothing to copy, or the newest groups cannot
            be told, as the redo log is damaged.
        FormatError: a page that was copied is damaged; the copy is not whole.
        DiskError: something could not be read or written.
    """
    check_finished(disk, directory)
    if ResetMarker(disk, directory).read() is not None:
        raise BackupError(f"{directory} is just being begun anew (RESET MASTER): try again")
    held = HeldFiles(disk, directory)
    try:
        redo = check_redo(held, directory)
        if any(finding.kind is Kind.REDO_DAMAGED for finding in redo.findings):
            raise BackupError(f"the redo log of {directory} is damaged: `ibb verify` says how")
        held.hold()
        pages = BinlogDirectory(redo.disk, directory)
        try:
            pages.limit = redo.end  # the writer has put no record behind it on the disk for certain
            if pages.last_file() < pages.first_file():
                raise BackupError(f"{directory} holds no event groups")
            end = pages.limit = redo.end or _end_of_records(pages)
            source = _Source(pages, f"{directory}/{SIDECAR_NAME}")
            with Holds().take(HoldKind.BACKUP, target, pages.first_file) as hold:
                return copy_store(source, disk, target, Backup(end, find_state(pages).state), hold)
        finally:
            pages.close()
    finally:
        held.close()


def _end_of_records(pages: BinlogDirectory) -> Position:
    """Return where the last whole record ends: the next one may be on its way."""
    last = pages.last_file()
    first = max(pages.first_file(), last - FILES_OF_RECORD_MAX)
    reader = RecordReader(pages, find_file_start(pages, first))
    while reader.next() is not None:
        pass
    return reader.position


class _Source:
    """What is copied: pages as they are below the limit, files as far as they are used."""

    def __init__(self, pages: BinlogDirectory, sidecar: str) -> None:
        self._directory = pages
        self.pages = _WholePages(pages)
        self.sidecar = sidecar

    def files(self) -> list[BinlogFileInfo]:
        return [self._used(file) for file in self._directory.files()]

    def _used(self, file: BinlogFileInfo) -> BinlogFileInfo:
        """Return a file without unused pages, if its writer went on in the next one early."""
        header = self._directory.header(file.file_no)
        if header is None or file.file_no >= self._directory.last_file():
            return file
        used = (last_page(self._directory, file.file_no) + 1) * header.page_size
        return file._replace(size=min(file.size, used))


class _WholePages:
    """A source of pages of which none is unfinished: what is not there yet is not copied."""

    tail_is_final = True

    def __init__(self, pages: BinlogDirectory) -> None:
        self._pages = pages
        self.healed = pages.healed

    def first_file(self) -> int:
        return self._pages.first_file()

    def last_file(self) -> int:
        return self._pages.last_file()

    def header(self, file_no: int) -> FileHeader | None:
        return self._pages.header(file_no)

    def read_page(self, file_no: int, page_no: int) -> PageRead:
        read = self._pages.read_page(file_no, page_no)
        if not read.data:
            raise FormatError("a page is missing", file=binlog_name(file_no), page=page_no)
        return read._replace(status=PageStatus.PAGE)


class HeldFiles:
    """
    A disk on which the binlog files of a directory stay what they are once they are held.

    Args:
        disk: the real one.
        directory: path of the files.
    """

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self._held: dict[str, File] = {}
        self._names: list[str] | None = None

    def hold(self) -> None:
        """
        Open all files.

        Raises:
            DiskError: one cannot be opened, or they go faster than they can be.
        """
        for attempt in range(1, TRIES_MAX + 1):
            names = self._disk.list(self._directory)
            try:
                for name in names:
                    if parse_binlog_name(name) is not None:
                        path = f"{self._directory}/{name}"
                        self._held[path] = self._disk.open(path, read_only=True)
            except DiskError as error:
                self.close()
                if not error.missing or attempt == TRIES_MAX:
                    raise
            else:
                self._names = names
                return

    def close(self) -> None:
        """Let the files go."""
        for file in self._held.values():
            file.close()
        self._held.clear()

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> File:
        """Open a file; one that is held once more, though it has no name any more."""
        del create  # nothing is made here
        held = self._held.get(path)
        return _HeldFile(held) if held else self._disk.open(path, read_only=read_only)

    def exists(self, path: str) -> bool:
        """Tell whether a file is there, or held."""
        return path in self._held or self._disk.exists(path)

    def list(self, path: str) -> list[str]:
        """Return the names in a directory, those of the moment in which the files were held."""
        names = self._names if path == self._directory else None
        return list(self._disk.list(path) if names is None else names)

    def size(self, path: str) -> int:
        """Return a file's length in bytes."""
        held = self._held.get(path)
        return held.size() if held else self._disk.size(path)

    def modified_at(self, path: str) -> float:
        """Return when a file's contents changed; 0 for one that has lost its name."""
        if path in self._held and not self._disk.exists(path):
            return 0.0
        return self._disk.modified_at(path)

    def lock_note(self, path: str) -> bytes | None:
        """Return the note in a locked file."""
        return self._disk.lock_note(path)

    def make_dir(self, path: str) -> None:
        """Directories are there."""
        assert self._disk.exists(path)

    def rename(self, source: str, target: str) -> None:
        """Nothing is changed here."""
        raise _read_only("rename", f"{source} to {target}")

    def unlink(self, path: str) -> None:
        """Nothing is changed here."""
        raise _read_only("remove", path)

    def sync_dir(self, path: str) -> None:
        """Do nothing: nothing was changed here."""

    def lock(self, path: str) -> Lock:
        """Nothing is changed here."""
        raise _read_only("lock", path)


def _read_only(operation: str, path: str) -> DiskError:
    return DiskError(errno.EROFS, "the files are only read", operation=operation, path=path)


class _HeldFile:
    """One opening of a held file; closing it leaves the file held."""

    def __init__(self, file: File) -> None:
        self._file = file
        self.read_at = file.read_at
        self.next_data = file.next_data
        self.forget_cached = file.forget_cached
        self.size = file.size
        self.is_removed = file.is_removed

    def write_at(self, offset: int, data: Buffer | Sequence[Buffer]) -> None:
        del data
        raise _read_only("write", f"{offset} in a held file")

    def truncate(self, size: int) -> None:
        raise _read_only("truncate", f"a held file to {size}")

    def allocate(self, size: int) -> None:
        raise _read_only("allocate", f"{size} of a held file")

    def sync(self) -> None:
        """Nothing was written."""

    def close(self) -> None:
        """It stays held."""
