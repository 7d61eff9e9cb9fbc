"""
A file held open, so that its removal is seen even when another one has its name by now.

So is that of the one watched before, should it have gone since it was looked at last.
"""

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
        self._has_lost = False

    @property
    def is_removed(self) -> bool:
        """Whether the file that is watched, or was before, is not there any more."""
        return self._has_lost or (self._file is not None and self._file.is_removed())

    def watch(self, path: str) -> None:
        """Watch the file *path* from now on; one that cannot be opened is not watched."""
        if self._file is not None and path == self._path:
            return
        file: File | None = None
        with suppress(DiskError):  # who reads it is told
            file = self._disk.open(path, read_only=True)
        has_lost = self.is_removed  # by now: what is watched next is there
        self.close()
        self._path, self._file, self._has_lost = path, file, has_lost

    def close(self) -> None:
        """Watch nothing, and know of no loss."""
        self._has_lost = False
        if self._file is not None:
            self._file.close()
            self._file = None
