"""
The disk as storage sees it: two protocols, and the real one.

All that storage does to files goes through `Disk` and `File`, so that a test can hand in a disk
that crashes, fails or lies. Nothing is durable before `File.sync` has returned (contents and
length), and a name before `Disk.sync_dir` has. A failure is a `DiskError`; which of the writes
before a failed sync reached the disk is then unknown for ever.
"""

# ruff: noqa: PTH103, PTH105, PTH108, PTH116, PTH120, PTH208 (str paths, so that a test disk is simple)
import errno
import fcntl
import os
import stat
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol, TypeAlias

from .errors import DiskError, StoreLocked
from .partial_write import unwritten

Buffer: TypeAlias = bytes | bytearray | memoryview
Names: TypeAlias = list[str]

WRITE_BUFFERS_MAX = 1024  # buffers a call of pwritev takes (IOV_MAX)
FILE_MODE = 0o640
DIRECTORY_MODE = 0o750
LOCK_NOTE_SIZE_MAX = 64  # bytes
_CACHE_UNIT = os.sysconf("SC_PAGESIZE")
_CANNOT_ALLOCATE = frozenset({errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS})
_READ_LIKE_FILES = stat.S_IFREG, stat.S_IFDIR  # of a directory, reading tells what it is
_CANNOT_SEEK_DATA = frozenset({errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTTY})


class Lock(Protocol):
    """An exclusive lock that is held."""

    def write_note(self, data: bytes) -> None:
        """Write *data* over the beginning of the locked file, for others to read; not durable."""

    def release(self) -> None:
        """Give the lock up; a second call does nothing."""


class File(Protocol):
    """An open file. Safe for use from several threads, except that `close` must come last."""

    def read_at(self, offset: int, size: int) -> bytes:
        """Return *size* bytes from byte *offset* on, fewer only where the file ends."""

    def next_data(self, offset: int) -> int | None:
        """
        Return an offset from *offset* on before which all bytes are zero; None: all are.

        Holes are skipped without being read, so the bytes found may be zero as well.
        """

    def forget_cached(self, offset: int, size: int) -> None:
        """Have these bytes come from the device when they are read next, not from a cache."""

    def write_at(self, offset: int, data: Buffer | Sequence[Buffer]) -> None:
        """Write all of *data*, one buffer or several one behind the other, at byte *offset*."""

    def size(self) -> int:
        """Return the length in bytes."""

    def truncate(self, size: int) -> None:
        """Cut the file, or lengthen it by zeros, to *size* bytes."""

    def allocate(self, size: int) -> None:
        """Make the file at least *size* bytes long, new ones zero, and reserve room for all."""

    def is_removed(self) -> bool:
        """Tell whether the file has no name any more: what has its name now is another one."""

    def sync(self) -> None:
        """Return when contents and length are durable."""

    def close(self) -> None:
        """Give the file up; a second call does nothing."""


class Disk(Protocol):
    """The file system."""

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> File:
        """Open a file; with *create* it is made, empty, if it is missing."""

    def exists(self, path: str) -> bool:
        """Tell whether a file or directory of this name is there."""

    def list(self, path: str) -> Names:
        """Return the names in a directory, sorted."""

    def size(self, path: str) -> int:
        """Return a file's length in bytes."""

    def modified_at(self, path: str) -> float:
        """Return when a file's contents changed last, in seconds since 1970."""

    def make_dir(self, path: str) -> None:
        """Make a directory and those above it, if missing; return when their names are durable."""

    def rename(self, source: str, target: str) -> None:
        """Give a file another name, in place of what had that name."""

    def unlink(self, path: str) -> None:
        """Remove a file."""

    def sync_dir(self, path: str) -> None:
        """Return when the names in a directory are durable."""

    def lock(self, path: str) -> Lock:
        """
        Lock the file *path*, made if missing, against every other opener.

        Raises:
            StoreLocked: somebody holds it.
        """

    def lock_note(self, path: str) -> bytes | None:
        """Return the note in the locked file *path*; None: nobody holds its lock."""


class OsDisk:
    """The operating system's file system."""

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> File:
        """Open a file for positioned reads and writes."""
        flags = (os.O_RDONLY if read_only else os.O_RDWR) | (os.O_CREAT if create else 0)
        with _reported("open", path):
            return _OsFile(path, _open_regular(path, flags))

    def exists(self, path: str) -> bool:
        """Tell whether *path* is there; unlike `os.path.exists`, say so when it cannot be told."""
        with _reported("look for", path):
            try:
                os.stat(path)
            except (FileNotFoundError, NotADirectoryError):
                return False
        return True

    def list(self, path: str) -> Names:
        """Return the names in a directory, sorted."""
        with _reported("list", path):
            return sorted(os.listdir(path))

    def size(self, path: str) -> int:
        """Return a file's length in bytes."""
        with _reported("measure", path):
            return os.stat(path).st_size

    def modified_at(self, path: str) -> float:
        """Return a file's modification time in seconds since 1970."""
        with _reported("look at", path):
            return os.stat(path).st_mtime

    def make_dir(self, path: str) -> None:
        """Make a directory and its parents, each in one whose own name is durable."""
        missing, existing = [], path
        while not self.exists(existing):
            missing.append(existing)
            existing = _parent(existing)
        with _reported("make directory", path):
            was_just_made = _may_be_unsynced(existing)
        if was_just_made:
            self.sync_dir(_parent(existing))
        for directory in reversed(missing):
            with _reported("make directory", path):
                os.makedirs(
                    directory, DIRECTORY_MODE if directory == path else 0o777, exist_ok=True
                )
            self.sync_dir(_parent(directory))

    def rename(self, source: str, target: str) -> None:
        """Rename atomically within one file system."""
        with _reported("rename", source):
            os.replace(source, target)

    def unlink(self, path: str) -> None:
        """Remove a file."""
        with _reported("remove", path):
            os.unlink(path)

    def sync_dir(self, path: str) -> None:
        """Sync a directory."""
        with _reported("sync directory", path):
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def lock(self, path: str) -> Lock:
        """
        Lock the open file: the kernel lets go of it when the process ends, however it ends.

        Unlike flock, such a lock can be asked for without being taken for a moment, which would
        get in the way of a store that is just being opened.
        """
        with _reported("lock", path):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, FILE_MODE)
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
        with _reported("look at the lock", path):
            try:
                descriptor = _open_regular(path, os.O_RDONLY)
            except FileNotFoundError:
                return None
            try:
                asked = _whole_file(fcntl.F_RDLCK)
                answer = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked)
                if _FLOCK.unpack_from(answer)[0] == fcntl.F_UNLCK:
                    return None
                return os.pread(descriptor, LOCK_NOTE_SIZE_MAX, 0)
            finally:
                os.close(descriptor)


def _open_regular(path: str, flags: int) -> int:
    """Open what must be a file: a pipe of its name would wait for a writer for ever."""
    descriptor = os.open(path, flags | os.O_NONBLOCK, FILE_MODE)
    if stat.S_IFMT(os.fstat(descriptor).st_mode) in _READ_LIKE_FILES:
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is not a regular file")


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
    """The lock is the open file description: closing it is letting go."""

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor: int | None = descriptor

    def write_note(self, data: bytes) -> None:
        assert self._descriptor is not None, f"{self._path} is not locked any more"
        with _reported("write", self._path, 0):
            os.pwrite(self._descriptor, data, 0)

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


class _OsFile:
    """
    A file descriptor with positioned reads and writes, which share no file offset.

    What each commit calls reports its errors without `_reported`, which costs as much as a commit.
    """

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor: int | None = descriptor

    def _open_descriptor(self) -> int:
        assert self._descriptor is not None, f"{self._path} is closed"
        return self._descriptor

    def read_at(self, offset: int, size: int) -> bytes:
        descriptor = self._open_descriptor()
        with _reported("read", self._path, offset):
            data = os.pread(descriptor, size, offset)
            if len(data) == size or not data:
                return data
            parts = [data]
            offset += len(data)
            size -= len(data)
            while size:
                data = os.pread(descriptor, size, offset)
                if not data:
                    break
                parts.append(data)
                offset += len(data)
                size -= len(data)
            return b"".join(parts)

    def next_data(self, offset: int) -> int | None:
        descriptor = self._open_descriptor()
        with _reported("look for data in", self._path, offset):
            try:
                return os.lseek(descriptor, offset, os.SEEK_DATA)
            except OSError as error:
                if error.errno == errno.ENXIO:
                    return None
                if error.errno in _CANNOT_SEEK_DATA:
                    return offset  # there may be data everywhere
                raise

    def is_removed(self) -> bool:
        with _reported("look at", self._path):
            return os.fstat(self._open_descriptor()).st_nlink == 0

    def forget_cached(self, offset: int, size: int) -> None:
        descriptor = self._open_descriptor()
        start = offset - offset % _CACHE_UNIT  # of units that are not covered none is forgotten
        end = -(-(offset + size) // _CACHE_UNIT) * _CACHE_UNIT
        with suppress(OSError):  # a hint: without it the next read may tell the same again
            os.posix_fadvise(descriptor, start, end - start, os.POSIX_FADV_DONTNEED)

    def write_at(self, offset: int, data: Buffer | Sequence[Buffer]) -> None:
        descriptor = self._open_descriptor()
        try:
            if isinstance(data, (bytes, bytearray, memoryview)):
                written = os.pwrite(descriptor, data, offset)
                buffers = [] if written == len(data) else unwritten([data], written)
                offset += written
            else:
                buffers = list(data)
            while buffers:
                written = os.pwritev(descriptor, buffers[:WRITE_BUFFERS_MAX], offset)
                offset += written
                buffers = unwritten(buffers, written)
        except OSError as error:
            raise _disk_error(error, "write", self._path, offset) from error

    def size(self) -> int:
        descriptor = self._open_descriptor()
        with _reported("measure", self._path):
            return os.fstat(descriptor).st_size

    def truncate(self, size: int) -> None:
        descriptor = self._open_descriptor()
        with _reported("truncate", self._path, size):
            os.ftruncate(descriptor, size)

    def allocate(self, size: int) -> None:
        descriptor = self._open_descriptor()
        with _reported("allocate", self._path, size):
            try:
                os.posix_fallocate(descriptor, 0, size)
            except OSError as error:
                if error.errno not in _CANNOT_ALLOCATE:
                    raise
                if os.fstat(descriptor).st_size < size:
                    os.ftruncate(descriptor, size)

    def sync(self) -> None:
        descriptor = self._open_descriptor()
        try:
            os.fdatasync(descriptor)  # carries the length as well
        except OSError as error:
            raise _disk_error(error, "sync", self._path) from error

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with _reported("close", self._path):
                os.close(descriptor)


@contextmanager
def _reported(operation: str, path: str, offset: int | None = None) -> Iterator[None]:
    """Turn an OSError into a DiskError that says what was tried where."""
    try:
        yield
    except OSError as error:
        raise _disk_error(error, operation, path, offset) from error


def _disk_error(error: OSError, operation: str, path: str, offset: int | None = None) -> DiskError:
    return DiskError(
        error.errno or 0,
        error.strerror or str(error),
        operation=operation,
        path=path,
        offset=offset,
    )
