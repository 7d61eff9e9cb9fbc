"""
A file held open, so that its removal is seen even when another one has its name by now.

So is that of the one watched before, should it have gone since it was looked at last.
"""

import threading
from contextlib import suppress

from .disk import Disk, File
from .errors import DiskError


class WatchedFile:
    """
    The file, if there is one. Safe to use from several threads.

    Args:
        disk: where it is.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._mutex = threading.Lock()
        self._path = ""
        self._file: File | None = None
        self._has_lost = False

    @property
    def is_removed(self) -> bool:
        """Whether the file that is watched, or was before, is not there any more."""
        with self._mutex:
            self._look()
            return self._has_lost

    def watch(self, path: str) -> None:
        """Watch the file *path* from now on; one that cannot be opened is not watched."""
        if self._file is not None and path == self._path:
            return
        file: File | None = None
        with suppress(DiskError):  # who reads it is told
            file = self._disk.open(path, read_only=True)
        with self._mutex:
            self._close()  # by now: what is watched next is there
            self._path, self._file = path, file

    def close(self) -> None:
        """Watch nothing more; what is lost by now stays lost."""
        with self._mutex:
            self._close()

    def _look(self) -> None:
        if not self._has_lost and self._file is not None:
            try:
                self._has_lost = self._file.is_removed()
            except DiskError:
                self._has_lost = True  # what an open file does not tell any more, nobody will

    def _close(self) -> None:
        self._look()
        if self._file is not None:
            self._file.close()
            self._file = None
