"""
The files that the writer has open: the active one, the one before until it is closed, and the
next one, made in advance.

A file is made at its full length, all zero and with its room reserved, so that no later page
write can fail for want of space. Before file N+1 is made, file N-1 is synced and closed: so at
most the two newest non-empty files need recovery. Source: ibb-format 3.6, 9.4.
"""

import errno
import threading

from .disk import Disk, File
from .errors import DiskError, StoreFull
from .file_name import binlog_name
from .listing import list_sizes
from .page import PAGE_SIZE_MIN


class BinlogFiles:
    """
    Open files by number. Methods may be called from the writer and the background thread.

    Args:
        disk: where they are.
        directory: path of the store.
    """

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self._open: dict[int, File] = {}
        self._mutex = threading.Lock()
        self._syncing = threading.Lock()  # held so that no file is closed while it is synced

    def path(self, file_no: int) -> str:
        """Return the path of a file."""
        return f"{self._directory}/{binlog_name(file_no)}"

    def exists(self, file_no: int) -> bool:
        """Tell whether a file is there."""
        return self._disk.exists(self.path(file_no))

    def size(self, file_no: int) -> int:
        """Return a file's physical length in bytes."""
        return self._disk.size(self.path(file_no))

    def sizes(self) -> list[tuple[int, int]]:
        """Return the files in order, each with its physical length; not those that vanish now."""
        return list_sizes(self._disk, self._directory)

    def create(self, file_no: int, size: int) -> None:
        """
        Make a file of *size* zero bytes, durable with its name.

        Raises:
            StoreFull: there is no room.
            DiskError: it failed otherwise, or there is one that has a header; as with
                StoreFull, no partial file is left.
        """
        path, file = self.path(file_no), None
        try:
            file = self._new(path)
            file.allocate(size)
            file.sync()
            self._disk.sync_dir(self._directory)
        except DiskError as error:
            if file is not None:
                file.close()
                self._disk.unlink(path)
            if error.full:
                raise StoreFull(f"no room for {path} of {size} bytes: {error}") from error
            raise
        with self._mutex:
            self._open[file_no] = file

    def _new(self, path: str) -> File:
        """Open a file, made if there is none; one that has a header is not ours to write."""
        file = self._disk.open(path, create=True)
        if any(file.read_at(0, PAGE_SIZE_MIN)):
            file.close()
            what = "there is a file that this store has not made; it may be another's history"
            raise DiskError(errno.EEXIST, what, operation="make", path=path)
        return file

    def file(self, file_no: int) -> File:
        """Return a file, opened for writing if it was not yet."""
        with self._mutex:
            file = self._open.get(file_no)
            if file is None:
                file = self._open[file_no] = self._disk.open(self.path(file_no))
            return file

    def sync_all(self) -> None:
        """Sync every open file."""
        with self._syncing:
            with self._mutex:
                files = list(self._open.values())
            for file in files:
                file.sync()

    def sync_before(self, file_no: int) -> None:
        """Sync every open file with a number below *file_no*."""
        with self._syncing:
            with self._mutex:
                files = [file for number, file in self._open.items() if number < file_no]
            for file in files:
                file.sync()

    def close(self, file_no: int) -> None:
        """Sync and close a file that gets no more pages."""
        with self._syncing:
            with self._mutex:
                file = self._open.get(file_no)
            if file is not None:
                file.sync()
                with self._mutex:
                    del self._open[file_no]  # first: nobody may find it closed
                file.close()

    def close_all(self) -> None:
        """Close every file as it is."""
        with self._mutex:
            for file in self._open.values():
                file.close()
            self._open.clear()

    def truncate(self, file_no: int, size: int) -> None:
        """Cut a file to *size* bytes, durably."""
        file = self.file(file_no)
        file.truncate(size)
        file.sync()
