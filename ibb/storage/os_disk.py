"""The operating system's file system, by path, or by names in directories that are held."""

# ruff: noqa: PTH103, PTH120, PTH208 (str paths, so that a test disk is simple)
import errno
import fcntl
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager

from .disk import File, Lock, Names
from .errors import StoreLocked
from .forks import disown_in_children
from .os_file import OsFile, disk_error, reported

FILE_MODE = 0o640
DIRECTORY_MODE = 0o750
LOCK_NOTE_SIZE_MAX = 64  # bytes
_READ_LIKE_FILES = stat.S_IFREG, stat.S_IFDIR  # of a directory, reading tells what it is


class OsDisk:
    """The operating system's file system."""

    _held: tuple[tuple[str, int], ...] = ()  # "path/" of directories, each with its descriptor

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> File:
        """Open a file for positioned reads and writes."""
        flags = (os.O_RDONLY if read_only else os.O_RDWR) | (os.O_CREAT if create else 0)
        name, directory = self._at(path)
        try:  # seeks open files, so not `reported`
            return OsFile(path, _open_regular(name, flags, directory))
        except OSError as error:
            raise disk_error(error, "open", path) from error

    def exists(self, path: str) -> bool:
        """Tell whether *path* is there; unlike `os.path.exists`, say so when it cannot be told."""
        name, directory = self._at(path)
        with reported("look for", path):
            try:
                os.stat(name, dir_fd=directory)
            except (FileNotFoundError, NotADirectoryError):
                return False
        return True

    def list(self, path: str) -> Names:
        """Return the names in a directory, sorted."""
        name, directory = self._at(path)
        with reported("list", path):
            if directory is None:
                return sorted(os.listdir(name))
            with _opened(name, os.O_RDONLY | os.O_DIRECTORY, directory) as descriptor:
                return sorted(os.listdir(descriptor))

    def size(self, path: str) -> int:
        """Return a file's length in bytes."""
        return self._status("measure", path).st_size

    def modified_at(self, path: str) -> float:
        """Return a file's modification time in seconds since 1970."""
        return self._status("look at", path).st_mtime

    def make_dir(self, path: str) -> None:
        """Make a directory and its parents, each in one whose own name is durable."""
        missing, existing = [], path
        while not self.exists(existing):
            missing.append(existing)
            existing = _parent(existing)
        with reported("make directory", path):
            was_just_made = _may_be_unsynced(existing)
        if was_just_made:
            self.sync_dir(_parent(existing))
        for directory in reversed(missing):
            with reported("make directory", path):
                os.makedirs(
                    directory, DIRECTORY_MODE if directory == path else 0o777, exist_ok=True
                )
            self.sync_dir(_parent(directory))

    def rename(self, source: str, target: str) -> None:
        """Rename atomically within one file system."""
        (old, old_directory), (new, new_directory) = self._at(source), self._at(target)
        with reported("rename", source):
            os.replace(old, new, src_dir_fd=old_directory, dst_dir_fd=new_directory)

    def unlink(self, path: str) -> None:
        """Remove a file."""
        name, directory = self._at(path)
        with reported("remove", path):
            os.unlink(name, dir_fd=directory)

    def sync_dir(self, path: str) -> None:
        """Sync a directory."""
        name, directory = self._at(path)
        with (
            reported("sync directory", path),
            _opened(name, os.O_RDONLY | os.O_DIRECTORY, directory) as descriptor,
        ):
            os.fsync(descriptor)

    def lock(self, path: str) -> Lock:
        """
        Lock the open file: the kernel lets go of it when the process ends, however it ends.

        Unlike flock, such a lock can be asked for without being taken for a moment, which would
        get in the way of a store that is just being opened.
        """
        name, directory = self._at(path)
        with reported("lock", path):
            descriptor = os.open(name, os.O_RDWR | os.O_CREAT, FILE_MODE, dir_fd=directory)
            try:
                fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _whole_file(fcntl.F_WRLCK))
                os.ftruncate(descriptor, 0)  # the note of the one before
            except (BlockingIOError, PermissionError):
                os.close(descriptor)
                raise StoreLocked(path) from None
            except OSError:
                os.close(descriptor)
                raise
            return _OsLock(path, descriptor)

    def lock_note(self, path: str) -> bytes | None:
        """Return the note in a locked file, or None; who locks it does not notice."""
        name, directory = self._at(path)
        with reported("look at the lock", path):
            try:
                with _opened(name, os.O_RDONLY, directory) as descriptor:
                    asked = _whole_file(fcntl.F_RDLCK)
                    answer = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked)
                    if _FLOCK.unpack_from(answer)[0] == fcntl.F_UNLCK:
                        return None
                    return os.pread(descriptor, LOCK_NOTE_SIZE_MAX, 0)
            except FileNotFoundError:
                return None

    def hold(self, directory: str) -> int:
        """
        Have names in *directory* mean what is in it now, also when its path leads elsewhere later.

        The working directory may change, or the directory be moved and another one put there.

        Returns:
            What `let_go` ends it by; of several for one path the first one counts.
        """
        with reported("open directory", directory):
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        self._held = (*self._held, (f"{directory}/", descriptor))
        return descriptor

    def let_go(self, hold: int) -> None:
        """End what `hold` began."""
        self._held = tuple(held for held in self._held if held[1] != hold)
        os.close(hold)

    def _at(self, path: str) -> tuple[str, int | None]:
        """Return a path with the directory's descriptor that it begins at; None: as any path."""
        for inside, descriptor in self._held:
            if f"{path}/".startswith(inside):
                return path[len(inside) :] or ".", descriptor
        return path, None

    def _status(self, operation: str, path: str) -> os.stat_result:
        name, directory = self._at(path)
        with reported(operation, path):
            return os.stat(name, dir_fd=directory)


def _open_regular(path: str, flags: int, directory: int | None) -> int:
    """Open what must be a file: a pipe of its name would wait for a writer for ever."""
    descriptor = os.open(path, flags | os.O_NONBLOCK, FILE_MODE, dir_fd=directory)
    if stat.S_IFMT(os.fstat(descriptor).st_mode) in _READ_LIKE_FILES:
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is not a regular file")


@contextmanager
def _opened(path: str, flags: int, directory: int | None) -> Iterator[int]:
    descriptor = _open_regular(path, flags, directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _parent(path: str) -> str:
    return os.path.dirname(path.rstrip("/")) or ("/" if path.startswith("/") else ".")


def _may_be_unsynced(directory: str) -> bool:
    """Tell whether a directory may have been made by one who was killed before its name's sync."""
    if os.listdir(directory) or os.path.ismount(directory):
        return False
    return os.access(_parent(directory), os.R_OK)  # else it is somebody else's, and his to sync


_FLOCK = struct.Struct("hhqqi0q")  # the kernel's struct flock: type, whence, start, length, process


def _whole_file(kind: int) -> bytes:
    return _FLOCK.pack(kind, os.SEEK_SET, 0, 0, 0)


class _OsLock:
    """
    The lock belongs to the open file description, so to a child that is forked, too.

    A child gives its share up at once: the lock shall end with who asked for it.
    """

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor: int | None = descriptor
        disown_in_children(self)

    def write_note(self, data: bytes) -> None:
        assert self._descriptor is not None, f"{self._path} is not locked any more"
        try:  # each sync comes by, so not `reported`, which takes as long as the write
            os.pwrite(self._descriptor, data, 0)
        except OSError as error:
            raise disk_error(error, "write", self._path, 0) from error

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _whole_file(fcntl.F_UNLCK))
            os.close(descriptor)

    def disown(self) -> None:
        """Give up a child's share of the lock, which stays with its parent."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
