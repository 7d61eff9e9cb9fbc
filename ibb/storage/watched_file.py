"""One file held open, so that its removal is seen even when another one has its name by now."""

from contextlib import suppress

from .disk import Disk, File
from .errors import DiskError


class WatchedFile:
    """
    The file, if there is one. Not safe to use from several threads.

    Args:
        disk: where it is.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._path = ""
        self._file: File | None = None

    @property
    def is_removed(self) -> bool:
        """Whether the file that is watched is not there any more."""
        return self._file is not None and self._file.is_removed()

    def watch(self, path: str) -> None:
        """Watch the file *path* from now on; one that cannot be opened is not watched."""
        if self._file is not None and path == self._path and not self.is_removed:
            return
        self.close()
        with suppress(DiskError):  # who reads it is told
            self._path, self._file = path, self._disk.open(path, read_only=True)

    def close(self) -> None:
        """Watch nothing."""
        if self._file is not None:
            self._file.close()
            self._file = None
