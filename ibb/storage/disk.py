"""
The disk as storage sees it; `os_disk` has the real one.

All that storage does to files goes through `Disk` and `File`, so that a test can hand in a disk
that crashes, fails or lies. Nothing is durable before `File.sync` has returned (contents and
length), and a name before `Disk.sync_dir` has. A failure is a `DiskError`; which of the writes
before a failed sync reached the disk is then unknown for ever.
"""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview
Names: TypeAlias = list[str]


class Lock(Protocol):
    """An exclusive lock that is held."""

    def write_note(self, data: bytes) -> None:
        """Write *data* over the beginning of the locked file, for others to read; not durable."""

    def release(self) -> None:
        """Give the lock up; a second call does nothing."""


class File(Protocol):
    """
    An open file. Safe for use from several threads, except that `close` must come last.

    Attributes:
        descriptor: the system's number for it, by which kernels read it; -1: it has none.
    """

    @property
    def descriptor(self) -> int:
        """See above."""

    def read_at(self, offset: int, size: int) -> bytes:
        """Return *size* bytes from byte *offset* on, fewer only where the file ends."""

    def read_into(self, offset: int, room: memoryview) -> int:
        """Fill *room* from byte *offset* on, less of it only at the end; return how far."""

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


class ReadByCopy(Protocol):
    """Part of a `File` that has no quicker way to read into memory that is there."""

    descriptor: int = -1

    def read_at(self, offset: int, size: int) -> bytes:
        """As in `File`."""

    def read_into(self, offset: int, room: memoryview) -> int:
        """Do as `File.read_into`."""
        data = self.read_at(offset, len(room))
        room[: len(data)] = data
        return len(data)


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
