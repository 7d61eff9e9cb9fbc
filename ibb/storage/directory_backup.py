"""
A backup of a directory that another process may be writing: `ibb backup` beside `ibb serve`.

Nothing is asked of the writer, and nothing written into its directory. What it has synced is what
its redo log says; the files are held open from the first moment on, so that a purge takes away
their names, but not what is in them.
"""

from .backup import Backup, check_finished, copy_store
from .directory import BinlogDirectory
from .disk import Disk
from .errors import BackupError
from .format_catalogue import SIDECAR_NAME
from .gtid_search import find_file_start
from .held_files import HeldFiles
from .history import BinlogFileInfo
from .holds import HoldKind, Holds
from .position import Position
from .record_reader import FILES_OF_RECORD_MAX, RecordReader
from .reset_marker import ResetMarker
from .state_scan import find_state, last_page
from .verify.files_now import FilesNow
from .verify.finding import Finding, Kind
from .verify.redo import check_redo

LOOKS_MAX = 5  # at a redo log whose files change meanwhile


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
        BackupError: *target* is not empty, there is nothing to copy, a file is missing, the
            newest groups cannot be told, as the redo log is damaged, or all of it is being begun
            anew.
        FormatError: a page that was copied is damaged; the copy is not whole.
        DiskError: something could not be read or written.
    """
    check_finished(disk, directory)
    files_now = FilesNow(disk, directory)
    if ResetMarker(disk, directory).read() is not None:
        raise _begun_anew(directory)
    held = HeldFiles(disk, directory)
    try:
        for _ in range(LOOKS_MAX):
            names = disk.list(directory)
            redo = check_redo(held, directory)
            refusal = _refusal(directory, redo.findings)
            if refusal is None or disk.list(directory) == names:
                break  # else a purge may have taken a file from under the look
        if refusal is None:
            held.hold()
        if files_now.are_begun_anew():  # the log may tell of other files by the same names
            raise _begun_anew(directory)
        if refusal is not None:
            raise refusal
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


def _begun_anew(directory: str) -> BackupError:
    return BackupError(f"{directory} is just being begun anew (RESET MASTER): try again")


def _refusal(directory: str, findings: list[Finding]) -> BackupError | None:
    """Return why nobody can tell which groups are the newest, if that is so."""
    for finding in findings:
        if finding.kind is Kind.REDO_DAMAGED:
            return BackupError(f"the redo log of {directory} is damaged: `ibb verify` says how")
        if finding.kind is Kind.UNREADABLE:
            return BackupError(f"{finding.text}: `ibb verify` says what is lost")
    return None


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
        self.pages = pages
        self.sidecar = sidecar

    def files(self) -> list[BinlogFileInfo]:
        return [self._used(file) for file in self._directory.files()]

    def _used(self, file: BinlogFileInfo) -> BinlogFileInfo:
        """Return a file without unused pages, if its writer went on in the next one early."""
        header = self._directory.header(file.file_no)
        if header is None or file.file_no >= self._directory.last_file():
            return file
        used = (max(last_page(self._directory, file.file_no), 1) + 1) * header.page_size
        self._directory.early_ends.check(file.file_no)  # by now it was looked for the end
        return file._replace(size=min(file.size, used))
