"""What stands for a disk that must not be changed: its files are read, every change is refused."""

import errno
from collections.abc import Sequence

from .disk import Buffer, Disk, File, Lock, Names
from .errors import DiskError


class ReadOnlyDisk:
    """
    A disk without its writing half; to be extended by what is read in another way.

    Args:
        disk: the real one.
        why: for the error of a call that would change it.

    Raises:
        DiskError: from any call, as the real disk; EROFS from one that would change something.
    """

    def __init__(self, disk: Disk, why: str) -> None:
        self._disk = disk
        self._why = why

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> File:
        """Open a file that is there, for reading."""
        del create, read_only
        return ReadOnlyFile(self._disk.open(path, read_only=True), path, self._why)

    def exists(self, path: str) -> bool:
        """Tell whether a file or directory is there."""
        return self._disk.exists(path)

    def list(self, path: str) -> Names:
        """Return the names in a directory."""
        return self._disk.list(path)

    def size(self, path: str) -> int:
        """Return a file's length in bytes."""
        return self._disk.size(path)

    def modified_at(self, path: str) -> float:
        """Return when a file's contents changed, in seconds since 1970."""
        return self._disk.modified_at(path)

    def lock_note(self, path: str) -> bytes | None:
        """Return the note in a file, if it is locked."""
        return self._disk.lock_note(path)

    def make_dir(self, path: str) -> None:
        """Do nothing: directories are there."""
        assert self._disk.exists(path)

    def rename(self, source: str, target: str) -> None:
        """Refuse."""
        raise _refused("rename", f"{source} to {target}", self._why)

    def unlink(self, path: str) -> None:
        """Refuse."""
        raise _refused("remove", path, self._why)

    def lock(self, path: str) -> Lock:
        """Refuse."""
        raise _refused("lock", path, self._why)

    def sync_dir(self, path: str) -> None:
        """Do nothing: nothing was changed."""


class ReadOnlyFile:
    """
    An open file without its writing half.

    Args:
        file: the real one.
        path: its name, for errors.
        why: as above.
    """

    def __init__(self, file: File, path: str, why: str) -> None:
        self._file = file
        self._path = path
        self._why = why
        self.descriptor = file.descriptor
        self.read_at = file.read_at
        self.read_into = file.read_into
        self.next_data = file.next_data
        self.forget_cached = file.forget_cached
        self.size = file.size
        self.is_removed = file.is_removed

    def write_at(self, offset: int, data: Buffer | Sequence[Buffer]) -> None:
        """Refuse."""
        del data
        raise _refused("write", self._path, self._why, offset)

    def truncate(self, size: int) -> None:
        """Refuse."""
        raise _refused("truncate", self._path, self._why, size)

    def allocate(self, size: int) -> None:
        """Refuse."""
        raise _refused("allocate", self._path, self._why, size)

    def sync(self) -> None:
        """Do nothing: nothing was written."""

    def close(self) -> None:
        """Let the file go."""
        self._file.close()


def _refused(operation: str, path: str, why: str, offset: int | None = None) -> DiskError:
    return DiskError(errno.EROFS, why, operation=operation, path=path, offset=offset)
