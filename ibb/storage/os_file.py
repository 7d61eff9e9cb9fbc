"""A file of the operating system, by its descriptor, and its errors as those of a disk."""

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from .disk import Buffer
from .errors import DiskError

WRITE_BUFFERS_MAX = 1024  # buffers a call of pwritev takes (IOV_MAX)
_CACHE_UNIT = os.sysconf("SC_PAGESIZE")
_CANNOT_ALLOCATE = frozenset({errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS})
_CANNOT_SEEK_DATA = frozenset({errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTTY})


class OsFile:
    """
    A file descriptor with positioned reads and writes, which share no file offset.

    What each commit or seek calls reports its errors without `reported`, which costs as much as
    the call.
    """

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor: int | None = descriptor

    def _open_descriptor(self) -> int:
        assert self._descriptor is not None, f"{self._path} is closed"
        return self._descriptor

    @property
    def descriptor(self) -> int:
        """The system's number for the file, which is open."""
        return self._open_descriptor()

    def read_at(self, offset: int, size: int) -> bytes:
        """Return *size* bytes from byte *offset* on, fewer only where the file ends."""
        descriptor = self._open_descriptor()
        try:
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
        except OSError as error:
            raise disk_error(error, "read", self._path, offset) from error

    def read_into(self, offset: int, room: memoryview) -> int:
        """Fill *room* from byte *offset* on, less of it only at the end; return how far."""
        descriptor, done = self._open_descriptor(), 0
        with reported("read", self._path, offset):
            while done < len(room):
                size = os.preadv(descriptor, [room[done:]], offset + done)
                if not size:
                    break
                done += size
        return done

    def next_data(self, offset: int) -> int | None:
        """Return where data may begin from *offset* on, None if all is a hole."""
        descriptor = self._open_descriptor()
        with reported("look for data in", self._path, offset):
            try:
                return os.lseek(descriptor, offset, os.SEEK_DATA)
            except OSError as error:
                if error.errno == errno.ENXIO:
                    return None
                if error.errno in _CANNOT_SEEK_DATA:
                    return offset  # there may be data everywhere
                raise

    def is_removed(self) -> bool:
        """Tell whether the file has no name any more."""
        try:
            return os.fstat(self._open_descriptor()).st_nlink == 0
        except OSError as error:
            raise disk_error(error, "look at", self._path) from error

    def forget_cached(self, offset: int, size: int) -> None:
        """Drop these bytes from the page cache, if the system follows."""
        descriptor = self._open_descriptor()
        start = offset - offset % _CACHE_UNIT  # of units that are not covered none is forgotten
        end = -(-(offset + size) // _CACHE_UNIT) * _CACHE_UNIT
        with suppress(OSError):  # a hint: without it the next read may tell the same again
            os.posix_fadvise(descriptor, start, end - start, os.POSIX_FADV_DONTNEED)

    def write_at(self, offset: int, data: Buffer | Sequence[Buffer]) -> None:
        """Write all of *data* at byte *offset*, in as few calls as can be."""
        descriptor = self._open_descriptor()
        try:
            if isinstance(data, (bytes, bytearray, memoryview)):
                written = os.pwrite(descriptor, data, offset)
                buffers = [] if written == len(data) else _unwritten([data], written)
                offset += written
            else:
                buffers = list(data)
            while buffers:
                some = buffers[:WRITE_BUFFERS_MAX]
                written = os.pwritev(descriptor, some, offset)
                offset += written
                if written == sum(map(len, some)):
                    del buffers[:WRITE_BUFFERS_MAX]
                else:
                    buffers = _unwritten(buffers, written)
        except OSError as error:
            raise disk_error(error, "write", self._path, offset) from error

    def size(self) -> int:
        """Return the length in bytes."""
        descriptor = self._open_descriptor()
        try:
            return os.fstat(descriptor).st_size
        except OSError as error:
            raise disk_error(error, "measure", self._path) from error

    def truncate(self, size: int) -> None:
        """Cut or lengthen the file to *size* bytes."""
        descriptor = self._open_descriptor()
        with reported("truncate", self._path, size):
            os.ftruncate(descriptor, size)

    def allocate(self, size: int) -> None:
        """Reserve room for *size* bytes, or make the file so long where none can be reserved."""
        descriptor = self._open_descriptor()
        with reported("allocate", self._path, size):
            try:
                os.posix_fallocate(descriptor, 0, size)
            except OSError as error:
                if error.errno not in _CANNOT_ALLOCATE:
                    raise
                if os.fstat(descriptor).st_size < size:
                    os.ftruncate(descriptor, size)

    def sync(self) -> None:
        """Sync contents and length."""
        descriptor = self._open_descriptor()
        try:
            os.fdatasync(descriptor)  # carries the length as well
        except OSError as error:
            raise disk_error(error, "sync", self._path) from error

    def close(self) -> None:
        """Close the descriptor; a second call does nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            try:
                os.close(descriptor)
            except OSError as error:
                raise disk_error(error, "close", self._path) from error


def _unwritten(buffers: list[Buffer], written: int) -> list[Buffer]:
    """Return what is left of *buffers* after their first *written* bytes."""
    for index, buffer in enumerate(buffers):
        view = memoryview(buffer)
        if written < view.nbytes:
            return [view.cast("B")[written:], *buffers[index + 1 :]]
        written -= view.nbytes
    return []


@contextmanager
def reported(operation: str, path: str, offset: int | None = None) -> Iterator[None]:
    """Turn an OSError into a DiskError that says what was tried where."""
    try:
        yield
    except OSError as error:
        raise disk_error(error, operation, path, offset) from error


def disk_error(error: OSError, operation: str, path: str, offset: int | None = None) -> DiskError:
    """Return what an OSError is to a disk: with what was tried, and where."""
    return DiskError(
        error.errno or 0,
        error.strerror or str(error),
        operation=operation,
        path=path,
        offset=offset,
    )
