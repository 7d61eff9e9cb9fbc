"""What has become of the files of a directory since they were looked at."""

from ibb.protocol.errors import FormatError
from ibb.storage.disk import Disk
from ibb.storage.errors import DiskError
from ibb.storage.file_header import FileHeader
from ibb.storage.file_name import binlog_name
from ibb.storage.listing import list_files
from ibb.storage.page import PAGE_SIZE_MAX
from ibb.storage.reset_marker import MARKER_NAME

HEADERS_COMPARED_MAX = 4  # of the newest files; that of a file just begun may not be there yet
_NONE_LEFT = 1 << 62  # the number of the oldest file when there is none


class FilesNow:
    """
    The files as they are by now.

    Args:
        disk: where the directory is, without what its redo log holds.
        path: of the directory.

    Raises:
        DiskError: the directory cannot be listed.
    """

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._had_marker = self._has_marker()
        numbers = list_files(disk, path)
        self._oldest = min(numbers, default=0)
        newest = (self._header(file_no) for file_no in numbers[: -HEADERS_COMPARED_MAX - 1 : -1])
        self._newest = [header for header in newest if header is not None]

    def was_final(self, file_no: int) -> bool:
        """Tell whether nobody was writing a file any more when this was made: two are in use."""
        return bool(self._newest) and file_no + 2 <= self._newest[0].file_no

    def oldest(self) -> int:
        """
        Return the oldest file.

        Raises:
            DiskError: the directory cannot be listed.
        """
        return next(iter(list_files(self._disk, self._path)), _NONE_LEFT)

    def is_purged(self, file_no: int) -> bool:
        """
        Tell whether a file is gone as older ones may go at any time.

        Raises:
            DiskError: the directory cannot be listed.
        """
        return file_no < self.oldest() or self.are_begun_anew()

    def are_begun_anew(self) -> bool:
        """
        Tell whether the files were deleted and others made instead of them (RESET MASTER).

        Raises:
            DiskError: the directory cannot be listed.
        """
        if self._has_marker() != self._had_marker:
            return True
        numbers = list_files(self._disk, self._path)
        if numbers and numbers[0] < self._oldest:
            return True
        if not self._newest:  # that of the newest may not be in its file yet, and no other be left
            return False
        if not numbers or numbers[-1] < self._newest[0].file_no:
            return True
        for listed in self._newest:
            now = self._header(listed.file_no)
            if now is not None:
                return now.lsn != listed.lsn
        return False

    def _has_marker(self) -> bool:
        return self._disk.exists(f"{self._path}/{MARKER_NAME}")

    def _header(self, file_no: int) -> FileHeader | None:
        """Return a header as it is in its file, if it is."""
        try:
            file = self._disk.open(f"{self._path}/{binlog_name(file_no)}", read_only=True)
        except DiskError:
            return None
        try:
            return FileHeader.parse(file.read_at(0, PAGE_SIZE_MAX), file_no)
        except (FormatError, DiskError):
            return None
        finally:
            file.close()
