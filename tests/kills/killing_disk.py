"""A real disk under which the process dies at a chosen operation."""

from __future__ import annotations

import os
import signal
import threading
from typing import NamedTuple, NoReturn

from ibb.storage.disk import Buffer, File
from ibb.storage.os_disk import OsDisk

OPERATIONS = ("write", "sync", "allocate", "truncate", "unlink", "sync_dir", "open")


class KillPoint(NamedTuple):
    """The *count*-th call of *operation*, counted from when the disk was made."""

    operation: str
    count: int


def die() -> NoReturn:
    """End this process as `kill -9` does."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("SIGKILL was survived")


class KillingDisk(OsDisk):
    """
    The operating system's disk; SIGKILL comes just before the operation at `point`, or within a
    write half of which is done.
    """

    def __init__(self, point: KillPoint) -> None:
        self._operation = point.operation
        self._left = point.count
        self._mutex = threading.Lock()

    def strikes(self, operation: str) -> bool:
        """Count an operation; tell whether it is the one."""
        if operation != self._operation:
            return False
        with self._mutex:
            self._left -= 1
            return self._left == 0

    def note(self, operation: str) -> None:
        if self.strikes(operation):
            die()

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> File:
        if not read_only:
            self.note("open")
        return _KillingFile(super().open(path, create=create, read_only=read_only), self)

    def unlink(self, path: str) -> None:
        self.note("unlink")
        super().unlink(path)

    def sync_dir(self, path: str) -> None:
        self.note("sync_dir")
        super().sync_dir(path)


class _KillingFile:
    def __init__(self, file: File, disk: KillingDisk) -> None:
        self._file = file
        self._disk = disk
        self.read_at, self.size, self.close = file.read_at, file.size, file.close
        self.next_data, self.forget_cached = file.next_data, file.forget_cached
        self.is_removed = file.is_removed

    def write_at(self, offset, data) -> None:
        if self._disk.strikes("write"):
            buffers = [data] if isinstance(data, Buffer) else data
            whole = b"".join(bytes(buffer) for buffer in buffers)
            self._file.write_at(offset, whole[: len(whole) // 2])
            die()
        self._file.write_at(offset, data)

    def truncate(self, size: int) -> None:
        self._disk.note("truncate")
        self._file.truncate(size)

    def allocate(self, size: int) -> None:
        self._disk.note("allocate")
        self._file.allocate(size)

    def sync(self) -> None:
        self._disk.note("sync")
        self._file.sync()
