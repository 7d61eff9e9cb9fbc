"""
Binlog directories on object stores and other far places, as storage sees disks: to be read only.

Credentials are fsspec's own matter (environment, configuration files, instance roles), so that
none of them gets into a query plan.
"""

from __future__ import annotations

import errno
import threading
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NoReturn

from ibb.storage.disk import ReadByCopy
from ibb.storage.errors import DiskError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ibb.storage.disk import Buffer, Lock, Names

BLOCK_BYTES: Final = 4 << 20  # fetched at a time: readers ask for neighbouring pages
_MODIFIED: Final = ("mtime", "LastModified", "last_modified", "updated", "created")


class FsspecDisk:
    """
    The file system of a URL; only the half of `Disk` that reads does anything.

    Args:
        url: of a directory, e.g. `s3://bucket/binlogs`.

    Raises:
        DiskError: fsspec, or its package for this kind of URL, is not installed.
    """

    def __init__(self, url: str) -> None:
        try:
            import fsspec  # noqa: PLC0415 - only who reads from far needs it

            self._fs: Any = fsspec.core.url_to_fs(url)[0]
        except (ImportError, ValueError) as error:
            raise _failure(error, "open", url) from error

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> FsspecFile:
        """Open a file to read."""
        if create or not read_only:
            _refuse("write", path)
        with _reported("open", path):
            return FsspecFile(path, self._fs.open(path, "rb", block_size=BLOCK_BYTES))

    def exists(self, path: str) -> bool:
        """Tell whether there is a file or directory of this name."""
        with _reported("look for", path):
            return bool(self._fs.exists(path))

    def list(self, path: str) -> Names:
        """Return the names in a directory, sorted, as they are now."""
        with _reported("list", path):
            self._fs.invalidate_cache()
            found = self._fs.ls(path, detail=False)
            return sorted(str(name).rstrip("/").rpartition("/")[2] for name in found)

    def size(self, path: str) -> int:
        """Return a file's length in bytes."""
        with _reported("measure", path):
            return int(self._fs.size(path))

    def modified_at(self, path: str) -> float:
        """Return when a file changed last, in seconds since 1970; 0 where nobody can tell."""
        with _reported("look at", path):
            told = self._fs.info(path)
            times = (told.get(name) for name in _MODIFIED)
            moment = next((time for time in times if time is not None), 0.0)
            return moment.timestamp() if isinstance(moment, datetime) else float(moment)

    def lock_note(self, path: str) -> bytes | None:  # noqa: ARG002 - such places know no locks
        """Return None: nobody writes a store there."""
        return None

    def make_dir(self, path: str) -> None:
        """Refuse."""
        _refuse("make directory", path)

    def rename(self, source: str, target: str) -> None:  # noqa: ARG002 - as `Disk` has it
        """Refuse."""
        _refuse("rename", source)

    def unlink(self, path: str) -> None:
        """Refuse."""
        _refuse("remove", path)

    def sync_dir(self, path: str) -> None:
        """Refuse."""
        _refuse("sync directory", path)

    def lock(self, path: str) -> Lock:
        """Refuse."""
        _refuse("lock", path)


class FsspecFile(ReadByCopy):
    """An open file of a far place; reads take turns, as its buffer is one."""

    def __init__(self, path: str, file: Any) -> None:
        self._path = path
        self._file = file
        self._mutex = threading.Lock()

    def read_at(self, offset: int, size: int) -> bytes:
        """Return *size* bytes from byte *offset* on, fewer only where the file ends."""
        with _reported("read", self._path), self._mutex:
            self._file.seek(offset)
            parts: list[bytes] = []
            while size > 0 and (data := self._file.read(size)):
                parts.append(data)
                size -= len(data)
            return parts[0] if len(parts) == 1 else b"".join(parts)

    def next_data(self, offset: int) -> int | None:
        """Return *offset*: there may be data everywhere."""
        return offset if offset < self.size() else None

    def forget_cached(self, offset: int, size: int) -> None:
        """Do nothing: what comes from far is checked on its way."""

    def write_at(self, offset: int, data: Buffer | Sequence[Buffer]) -> None:  # noqa: ARG002
        """Refuse."""
        _refuse("write", self._path)

    def size(self) -> int:
        """Return the length in bytes."""
        with _reported("measure", self._path), self._mutex:
            end: int = self._file.seek(0, 2)
            return end

    def truncate(self, size: int) -> None:  # noqa: ARG002
        """Refuse."""
        _refuse("truncate", self._path)

    def allocate(self, size: int) -> None:  # noqa: ARG002
        """Refuse."""
        _refuse("allocate", self._path)

    def is_removed(self) -> bool:
        """Return False: nobody can tell."""
        return False

    def sync(self) -> None:
        """Refuse."""
        _refuse("sync", self._path)

    def close(self) -> None:
        """Give the file up."""
        with _reported("close", self._path):
            self._file.close()


def _refuse(operation: str, path: str) -> NoReturn:
    raise DiskError(errno.EROFS, "it is only read", operation=operation, path=path)


@contextmanager
def _reported(operation: str, path: str) -> Iterator[None]:
    """Turn whatever a far place fails with into a DiskError."""
    try:
        yield
    except DiskError:
        raise
    except Exception as error:
        raise _failure(error, operation, path) from error


def _failure(error: Exception, operation: str, path: str) -> DiskError:
    missing = isinstance(error, FileNotFoundError)
    code = errno.ENOENT if missing else getattr(error, "errno", None) or errno.EIO
    text = "there is no such file" if missing else str(error) or type(error).__name__
    return DiskError(int(code), text, operation=operation, path=path)
