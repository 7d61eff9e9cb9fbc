"""
A disk in memory that crashes, fails and lies on demand; the same seed gives the same run.

Every write is kept in a list until the file is synced, every change of names until the directory
is. `crash` makes of it what a power loss may leave: synced bytes, and of the rest any part in any
order, writes torn between sectors. A `Fault` makes the nth operation that it matches fail.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ibb.storage.errors import DiskError, StoreLocked

SECTOR = 512
Buffer = bytes | bytearray | memoryview


@dataclass(frozen=True)
class Op:
    """An operation about to happen."""

    kind: str  # open, read, write, truncate, allocate, sync, rename, unlink, sync_dir, make_dir
    path: str
    number: int  # of all operations of this disk, from 1


class PowerLost(BaseException):
    """The machine went down: nothing above may catch it."""


@dataclass
class Fault:
    """Fails operations: those that *matches* says, from the *nth* on, *times* times."""

    matches: Callable[[Op], bool]
    code: int = errno.EIO
    nth: int = 1
    times: int = 1
    seen: int = 0

    def strikes(self, op: Op) -> bool:
        if not self.matches(op):
            return False
        self.seen += 1
        return self.nth <= self.seen < self.nth + self.times


@dataclass
class _Write:
    """A change of a file that is not certain yet: new bytes, or a new length."""

    offset: int
    data: bytes
    new_size: int | None = None


@dataclass
class _Inode:
    durable: bytearray = field(default_factory=bytearray)
    current: bytearray = field(default_factory=bytearray)
    pending: list[_Write] = field(default_factory=list)
    changed_at: float = 0.0


def _apply(data: bytearray, write: _Write) -> None:
    if write.new_size is not None:
        del data[write.new_size :]
        data.extend(bytes(write.new_size - len(data)))
        return
    end = write.offset + len(write.data)
    if len(data) < end:
        data.extend(bytes(end - len(data)))
    data[write.offset : end] = write.data


class SimDisk:
    """Implements `Disk`. *capacity* bounds the bytes of all files (None: no bound)."""

    def __init__(self, *, capacity: int | None = None) -> None:
        self.capacity = capacity
        self.faults: list[Fault] = []
        self.operations = 0
        self.crash_at: int | None = None
        self.log: list[Op] = []
        self._names: dict[str, _Inode] = {}
        self._durable_names: dict[str, _Inode] = {}
        self._pending_names: list[tuple[str, _Inode | None]] = []
        self._locks: set[str] = set()
        self._directories: set[str] = set()
        self._time = 0.0

    # Faults

    def step(self, kind: str, path: str) -> None:
        self.operations += 1
        op = Op(kind, path, self.operations)
        self.log.append(op)
        if self.crash_at is not None and self.operations >= self.crash_at:
            raise PowerLost
        for fault in self.faults:
            if fault.strikes(op):
                raise DiskError(fault.code, "simulated", operation=kind, path=path)

    def crashed(self, rng: random.Random, keep: float) -> SimDisk:
        """Return the disk after a power loss: each unsynced change survives with chance *keep*."""
        after = SimDisk(capacity=self.capacity)
        after._directories = set(self._directories)
        names = dict(self._durable_names)
        for path, inode in self._pending_names:
            if rng.random() < keep:
                if inode is None:
                    names.pop(path, None)
                else:
                    names[path] = inode
        for path, inode in names.items():
            data = bytearray(inode.durable)
            survivors = [
                part for write in inode.pending for part in _torn(write, rng) if rng.random() < keep
            ]
            rng.shuffle(survivors)
            for part in survivors:
                _apply(data, part)
            copy = _Inode(bytearray(data), bytearray(data))
            after._names[path] = after._durable_names[path] = copy
        return after

    def damage(self, path: str, offset: int, data: bytes) -> None:
        """Change bytes under everybody's feet."""
        inode = self._names[path]
        for image in (inode.durable, inode.current):
            image[offset : offset + len(data)] = data

    def contents(self, path: str) -> bytes:
        return bytes(self._names[path].current)

    # Disk

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> SimFile:
        self.step("open", path)
        inode = self._names.get(path)
        if inode is None:
            if not create:
                raise DiskError(errno.ENOENT, "no such file", operation="open", path=path)
            inode = self._names[path] = _Inode()
            self._pending_names.append((path, inode))
        return SimFile(self, path, inode)

    def exists(self, path: str) -> bool:
        return path in self._names or path in self._directories

    def list(self, path: str) -> list[str]:
        prefix = path.rstrip("/") + "/"
        return sorted(
            name[len(prefix) :]
            for name in self._names
            if name.startswith(prefix) and "/" not in name[len(prefix) :]
        )

    def size(self, path: str) -> int:
        return len(self._names[path].current)

    def modified_at(self, path: str) -> float:
        return self._names[path].changed_at

    def make_dir(self, path: str) -> None:
        self.step("make_dir", path)
        self._directories.add(path)

    def rename(self, source: str, target: str) -> None:
        self.step("rename", target)
        inode = self._names.pop(source)
        self._names[target] = inode
        self._pending_names += [(source, None), (target, inode)]

    def unlink(self, path: str) -> None:
        self.step("unlink", path)
        del self._names[path]
        self._pending_names.append((path, None))

    def sync_dir(self, path: str) -> None:
        self.step("sync_dir", path)
        self._durable_names = dict(self._names)
        self._pending_names.clear()

    def lock(self, path: str) -> SimLock:
        if path in self._locks:
            raise StoreLocked(path)
        self._locks.add(path)
        return SimLock(self._locks, path)

    def change(self, inode: _Inode, write: _Write) -> None:
        size = write.new_size if write.new_size is not None else write.offset + len(write.data)
        growth = size - len(inode.current)
        used = sum(len(other.current) for other in set_of(self._names.values()))
        if self.capacity is not None and growth > 0 and used + growth > self.capacity:
            raise DiskError(errno.ENOSPC, "simulated", operation="write", path="")
        self._time += 1.0
        inode.changed_at = self._time
        inode.pending.append(write)
        _apply(inode.current, write)


def set_of(inodes: object) -> list[_Inode]:
    """Return inodes once each; they are told apart by identity."""
    return list({id(inode): inode for inode in inodes}.values())  # type: ignore[attr-defined]


def _torn(write: _Write, rng: random.Random) -> list[_Write]:
    """Cut a write between sectors, at most into a few parts, so that parts may get lost."""
    if write.new_size is not None or len(write.data) <= SECTOR:
        return [write]
    cuts = sorted(
        {
            cut
            for _ in range(3)
            if 0 < (cut := rng.randrange(len(write.data)) // SECTOR * SECTOR) < len(write.data)
        }
    )
    return [
        _Write(write.offset + start, write.data[start:end])
        for start, end in zip([0, *cuts], [*cuts, len(write.data)], strict=True)
    ]


class SimLock:
    def __init__(self, locks: set[str], path: str) -> None:
        self._locks, self._path = locks, path

    def release(self) -> None:
        self._locks.discard(self._path)


class SimFile:
    """Implements `File`."""

    def __init__(self, disk: SimDisk, path: str, inode: _Inode) -> None:
        self._disk, self._path, self._inode = disk, path, inode

    def read_at(self, offset: int, size: int) -> bytes:
        self._disk.step("read", self._path)
        return bytes(self._inode.current[offset : offset + size])

    def write_at(self, offset: int, data: Buffer | Sequence[Buffer]) -> None:
        parts = [data] if isinstance(data, bytes | bytearray | memoryview) else data
        joined = b"".join(bytes(part) for part in parts)
        self._disk.step("write", self._path)
        self._disk.change(self._inode, _Write(offset, joined))

    def size(self) -> int:
        return len(self._inode.current)

    def truncate(self, size: int) -> None:
        self._disk.step("truncate", self._path)
        self._disk.change(self._inode, _Write(0, b"", size))

    def allocate(self, size: int) -> None:
        self._disk.step("allocate", self._path)
        if size > len(self._inode.current):
            self._disk.change(self._inode, _Write(0, b"", size))

    def sync(self) -> None:
        self._disk.step("sync", self._path)
        self._inode.durable = bytearray(self._inode.current)
        self._inode.pending.clear()

    def close(self) -> None:
        """Nothing to give up."""
