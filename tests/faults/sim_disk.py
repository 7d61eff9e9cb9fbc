"""
A disk in memory that crashes, fails and lies on demand; the same seed gives the same run.

Every write is kept in a list until the file is synced, every change of names until the directory
is. `crashed` makes of it what a power loss may leave: synced bytes, and of the rest any part in
any order, writes torn between sectors. A `Fault` makes the nth operation that it matches fail; a
`Lie` changes what a read returns.
"""

from __future__ import annotations

import errno
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ibb.storage.disk import Buffer, ReadByCopy
from ibb.storage.errors import DiskError, StoreLocked

SECTOR = 512
ZEROS = bytes(1 << 16)
Lie = Callable[[str, int, bytes], bytes]  # path, offset, what is there -> what is returned


PASSING = frozenset({errno.ENOSPC, errno.EMFILE})
TRIED_AGAIN = frozenset({"open", "allocate"})


class Op(NamedTuple):
    """An operation about to happen."""

    kind: str  # open, read, write, truncate, allocate, sync, rename, unlink, sync_dir, make_dir
    path: str
    number: int  # of all operations of this disk, from 1


class PowerLost(BaseException):
    """The machine went down: nothing above may catch it."""

    def __init__(self, op: Op | None = None) -> None:
        super().__init__(op)
        self.op = op


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
    """
    Implements `Disk`.

    Args:
        capacity: bytes of all files; None: no bound.
        now: the time that files are changed at; None: the number of changes so far.
    """

    def __init__(
        self, *, capacity: int | None = None, now: Callable[[], float] | None = None
    ) -> None:
        self.capacity = capacity
        self.faults: list[Fault] = []
        self.struck = 0  # operations that failed on purpose, for want of room too
        self.harmed = 0  # those of them that are not a matter of trying again later
        self.sync_failed = False  # so that what can be read is perhaps not what will be left
        self.lies: list[Lie] = []
        self.operations = 0
        self.crash_at: int | None = None
        self.watch: Callable[[], bool] | None = None  # says before each operation if power goes
        self.strikes: Counter[str] = Counter()  # by operation and error; power losses keep it
        self.log: list[Op] = []
        self._now = now or self._count
        self._names: dict[str, _Inode] = {}
        self._durable_names: dict[str, _Inode] = {}
        self._pending_names: list[tuple[str, _Inode | None]] = []
        self._locks: dict[str, bytes] = {}  # and their notes
        self._directories: set[str] = set()
        self._time = 0.0

    # Faults

    def step(self, kind: str, path: str) -> None:
        self.operations += 1
        op = Op(kind, path, self.operations)
        self.log.append(op)
        if self.crash_at is not None and self.operations >= self.crash_at:
            raise PowerLost(op)
        if self.watch is not None and self.watch():
            raise PowerLost(op)
        for fault in self.faults:
            if fault.strikes(op):
                self._strike(kind, fault.code)
                raise DiskError(fault.code, "simulated", operation=kind, path=path)

    def _strike(self, kind: str, code: int) -> None:
        self.struck += 1
        self.harmed += kind not in TRIED_AGAIN or code not in PASSING
        self.strikes[f"{errno.errorcode[code]} on {kind}"] += 1

    def crashed(self, rng: random.Random, keep: float, *, under: str = "") -> SimDisk:
        """
        Return the disk after a power loss: each unsynced change survives with chance *keep*.

        With *keep* 1 all of them do, in order. Only files whose path begins with *under* are on it.
        """
        after = SimDisk(capacity=self.capacity, now=self._now if self._is_clocked else None)
        after.sync_failed = self.sync_failed
        after.strikes = self.strikes
        after._directories = set(self._directories)
        names = dict(self._durable_names)
        for path, inode in self._pending_names:
            if keep >= 1 or rng.random() < keep:
                if inode is None:
                    names.pop(path, None)
                else:
                    names[path] = inode
        for path, inode in names.items():
            if path.startswith(under):
                data = inode.current if keep >= 1 else _left_of(inode, rng, keep)
                copy = _Inode(bytearray(data), bytearray(data), changed_at=inode.changed_at)
                after._names[path] = after._durable_names[path] = copy
        return after

    def end_process(self) -> None:
        """The process is gone and its locks with it; what is not synced stays as it is."""
        self._locks.clear()

    def damage(self, path: str, offset: int, data: bytes) -> None:
        """Change bytes under everybody's feet."""
        inode = self._names[path]
        for image in (inode.durable, inode.current):
            image[offset : offset + len(data)] = data

    def contents(self, path: str) -> bytes:
        return bytes(self._names[path].current)

    def remove(self, path: str) -> None:
        """Make a file vanish at once, durably."""
        del self._names[path], self._durable_names[path]

    def remove_tree(self, path: str) -> None:
        """Make a directory and its files vanish at once, as if they had never been."""
        prefix = f"{path}/"
        for names in (self._names, self._durable_names):
            for name in [name for name in names if name.startswith(prefix)]:
                del names[name]
        self._pending_names = [
            (name, inode) for name, inode in self._pending_names if not name.startswith(prefix)
        ]
        self._directories.discard(path)

    @property
    def used(self) -> int:
        """Bytes of all files."""
        return sum(len(inode.current) for inode in list(self._names.values()))

    @property
    def _is_clocked(self) -> bool:
        return self._now != self._count

    def _count(self) -> float:
        self._time += 1.0
        return self._time

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
            for name in list(self._names)  # a copy: another thread may make a file meanwhile
            if name.startswith(prefix) and "/" not in name[len(prefix) :]
        )

    def size(self, path: str) -> int:
        return len(self._inode(path, "measure").current)

    def modified_at(self, path: str) -> float:
        return self._inode(path, "look at").changed_at

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
        self._inode(path, "remove")
        del self._names[path]
        self._pending_names.append((path, None))

    def sync_dir(self, path: str) -> None:
        self.step("sync_dir", path)
        prefix = path.rstrip("/") + "/"
        waiting, self._pending_names = self._pending_names, []
        for name, inode in waiting:
            if not name.startswith(prefix) or "/" in name[len(prefix) :]:
                self._pending_names.append((name, inode))
            elif inode is None:
                self._durable_names.pop(name, None)
            else:
                self._durable_names[name] = inode

    def lock(self, path: str) -> SimLock:
        if path in self._locks:
            raise StoreLocked(path)
        self._locks[path] = b""
        return SimLock(self._locks, path)

    def lock_note(self, path: str) -> bytes | None:
        return self._locks.get(path)

    def change(self, path: str, inode: _Inode, write: _Write) -> None:
        size = write.new_size if write.new_size is not None else write.offset + len(write.data)
        growth = size - len(inode.current)
        if self.capacity is not None and growth > 0 and self.used + growth > self.capacity:
            self._strike("growth", errno.ENOSPC)
            raise DiskError(errno.ENOSPC, "simulated", operation="write", path=path)
        inode.changed_at = self._now()
        inode.pending.append(write)
        _apply(inode.current, write)

    def _inode(self, path: str, operation: str) -> _Inode:
        inode = self._names.get(path)
        if inode is None:
            raise DiskError(errno.ENOENT, "no such file", operation=operation, path=path)
        return inode


def _left_of(inode: _Inode, rng: random.Random, keep: float) -> bytearray:
    """Return what a power loss leaves of a file."""
    data = bytearray(inode.durable)
    survivors = [
        part for write in inode.pending for part in _torn(write, rng) if rng.random() < keep
    ]
    rng.shuffle(survivors)
    for part in survivors:
        _apply(data, part)
    return data


def _torn(write: _Write, rng: random.Random) -> Iterable[_Write]:
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
    def __init__(self, locks: dict[str, bytes], path: str) -> None:
        self._locks, self._path = locks, path

    def write_note(self, data: bytes) -> None:
        if self._path in self._locks:  # else the process has ended
            self._locks[self._path] = data

    def release(self) -> None:
        self._locks.pop(self._path, None)


class SimFile(ReadByCopy):
    """Implements `File`."""

    def __init__(self, disk: SimDisk, path: str, inode: _Inode) -> None:
        self._disk, self._path, self._inode = disk, path, inode
        self._is_open = True

    def _step(self, kind: str) -> None:
        assert self._is_open, f"{kind} of {self._path} behind its close"
        self._disk.step(kind, self._path)

    def read_at(self, offset: int, size: int) -> bytes:
        self._step("read")
        data = bytes(self._inode.current[offset : offset + size])
        for lie in self._disk.lies:
            data = lie(self._path, offset, data)
        return data

    def next_data(self, offset: int) -> int | None:
        self._step("read")
        for at in range(offset, len(self._inode.current), len(ZEROS)):
            data = self._inode.current[at : at + len(ZEROS)]
            if not ZEROS.startswith(data):
                return at + len(data) - len(data.lstrip(b"\0"))
        return None

    def is_removed(self) -> bool:
        return all(inode is not self._inode for inode in self._disk._names.values())

    def forget_cached(self, offset: int, size: int) -> None:
        """There is no cache; a disk lies for as long as it is told to."""

    def write_at(self, offset: int, data: Buffer | Sequence[Buffer]) -> None:
        parts = [data] if isinstance(data, bytes | bytearray | memoryview) else data
        joined = b"".join(parts)
        try:
            self._step("write")
        except DiskError:  # a write that failed may have got somewhere
            self._disk.change(self._path, self._inode, _Write(offset, joined[: len(joined) // 2]))
            raise
        self._disk.change(self._path, self._inode, _Write(offset, joined))

    def size(self) -> int:
        return len(self._inode.current)

    def truncate(self, size: int) -> None:
        self._step("truncate")
        self._disk.change(self._path, self._inode, _Write(0, b"", size))

    def allocate(self, size: int) -> None:
        self._step("allocate")
        if size > len(self._inode.current):
            self._disk.change(self._path, self._inode, _Write(0, b"", size))

    def sync(self) -> None:
        inode = self._inode
        try:
            self._step("sync")
        except DiskError:  # whatever got lost, the next sync will not notice
            self._disk.sync_failed = True
            inode.durable = _left_of(inode, random.Random(self._disk.operations), 0.5)
            inode.pending.clear()
            raise
        for write in inode.pending:
            _apply(inode.durable, write)
        inode.pending.clear()

    def close(self) -> None:
        self._is_open = False
