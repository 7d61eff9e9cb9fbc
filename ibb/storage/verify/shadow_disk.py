"""
A disk on which writing leaves the real one alone: what is written stays in memory.

So recovery can be tried out on a directory that must not be touched, and whoever reads through
the shadow sees the files as they will be. Pages are kept only where they differ, and only as long
as nobody else writes the same page: what is on the disk by then is newer.
"""

import errno
from bisect import bisect_left, insort
from collections.abc import Callable, Sequence

from ibb.storage.disk import Buffer, Disk, File, ReadByCopy
from ibb.storage.errors import DiskError
from ibb.storage.page import PAGE_SIZE_MAX
from ibb.storage.read_only_disk import ReadOnlyDisk

SHADOW_BYTES_MAX = 256 << 20  # of writes that differ from the disk; the redo log is bounded too

Keep = Callable[[str, int, bytes, bytes], bool]


class ShadowDisk(ReadOnlyDisk):
    """
    What a disk would be like.

    Args:
        disk: the real one, which is only read.
        keep: tells whether a write (path, offset, new bytes, bytes there now) makes a
            difference; the others are forgotten.
        begun_anew: tells whether the real files are no longer those that were written to, but
            others by the same names (RESET MASTER); what was written is forgotten then.

    Raises:
        DiskError: from any call, as the real disk; ENOSPC above `SHADOW_BYTES_MAX`.
    """

    def __init__(
        self, disk: Disk, keep: Keep, begun_anew: Callable[[], bool] = lambda: False
    ) -> None:
        super().__init__(disk, "a shadow has only contents")
        self._keep = keep
        self._begun_anew = begun_anew
        self._files: dict[str, _Changes] = {}  # those that differ
        self.bytes_kept = 0

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> File:
        """Open a file; writing to it changes only the shadow."""
        del read_only
        changes = self._files.get(path)
        if changes is None:
            if create and not self._disk.exists(path):
                changes = self._files[path] = _Changes(0, is_new=True)
            else:
                return _ShadowFile(self, path, self._disk.open(path, read_only=True), None)
        only_here = changes.is_new and not self._disk.exists(path)
        real = None if only_here else self._disk.open(path, read_only=True)
        if self._changes_of(path) is changes:  # it was opened before that was looked at
            return _ShadowFile(self, path, real, changes)
        if real is None:
            real = self._disk.open(path, read_only=True)
        return _ShadowFile(self, path, real, None)

    def exists(self, path: str) -> bool:
        """Tell whether a file is there, really or in the shadow."""
        changes = self._changes_of(path)
        return (changes is not None and changes.is_new) or super().exists(path)

    def list(self, path: str) -> list[str]:
        """Return the names in a directory, those that exist only in the shadow too."""
        new = [name for name, changes in self._files.items() if changes.is_new]
        own = (name.rpartition("/") for name in new if self._changes_of(name) is not None)
        return sorted({*self._disk.list(path), *(name for place, _, name in own if place == path)})

    def size(self, path: str) -> int:
        """Return a file's length."""
        changes = self._changes_of(path)
        return self._disk.size(path) if changes is None else changes.size

    def modified_at(self, path: str) -> float:
        """Return when the real file changed; 0 for one that exists only in the shadow."""
        return self._disk.modified_at(path) if self._disk.exists(path) else 0.0

    def changes(self, path: str, real: File | None) -> "_Changes":
        """Return what differs in a file, for `_ShadowFile`."""
        found = self._files.get(path)
        if found is None:
            size = 0 if real is None else real.size()
            found = self._files[path] = _Changes(size, is_new=real is None)
        return found

    def _changes_of(self, path: str) -> "_Changes | None":
        """Return what differs in a file, if the files are still those it was told of."""
        if path in self._files and self._begun_anew():
            self._files.clear()
        return self._files.get(path)

    def takes(self, path: str, offset: int, data: bytes, beneath: bytes) -> bool:
        """Tell whether a write is to be kept, and make room for it."""
        if not self._keep(path, offset, data, beneath):
            return False
        self.bytes_kept += len(data)
        if self.bytes_kept > SHADOW_BYTES_MAX:
            raise DiskError(
                errno.ENOSPC, "too much to be kept in memory", operation="write", path=path
            )
        return True


class _Changes:
    """What differs in a file: its length, and pages by where they begin; or all of it."""

    __slots__ = ("_blocks", "_starts", "is_new", "size")

    def __init__(self, size: int, *, is_new: bool) -> None:
        self.size = size
        self.is_new = is_new  # there was no such file
        self._blocks: dict[int, tuple[bytes, int]] = {}  # and the hash of what lay beneath
        self._starts: list[int] = []

    def put(self, offset: int, block: bytes, beneath: bytes) -> None:
        assert len(block) <= PAGE_SIZE_MAX
        if offset not in self._blocks:
            insort(self._starts, offset)
        # No CRC-32C: of bytes that end with their own it is always the same.
        self._blocks[offset] = block, hash(beneath)
        self.size = max(self.size, offset + len(block))

    def next_block(self, offset: int) -> int | None:
        """Return where the next byte of a block is, from *offset* on."""
        for start in self._starts[bisect_left(self._starts, offset - PAGE_SIZE_MAX) :]:
            if start + len(self._blocks[start][0]) > offset:
                return max(start, offset)
        return None

    def overlay(self, offset: int, data: bytes, size: int) -> bytes:
        """Return what *size* bytes from *offset* on are, where the real file has *data*."""
        out = bytearray(data[: max(self.size - offset, 0)])
        out.extend(bytes(max(min(self.size - offset, size) - len(out), 0)))
        end = offset + len(out)
        starts = self._starts
        for index in range(bisect_left(starts, offset - PAGE_SIZE_MAX), bisect_left(starts, end)):
            start = starts[index]
            block, beneath = self._blocks[start]
            low, high = max(start, offset), min(start + len(block), end)
            whole = start >= offset and start + len(block) <= offset + len(data)
            changed = whole and hash(data[start - offset :][: len(block)]) != beneath
            if low < high and not changed:
                out[low - offset : high - offset] = block[low - start : high - start]
        return bytes(out)


class _ShadowFile(ReadByCopy):
    def __init__(
        self, disk: ShadowDisk, path: str, real: File | None, changes: _Changes | None
    ) -> None:
        self._disk = disk
        self._path = path
        self._real = real
        self._changed = changes

    def read_at(self, offset: int, size: int) -> bytes:
        changes = self._changed
        data = b"" if self._real is None else self._real.read_at(offset, size)
        return data if changes is None else changes.overlay(offset, data, size)

    def next_data(self, offset: int) -> int | None:
        found = None if self._real is None else self._real.next_data(offset)
        own = None if self._changed is None else self._changed.next_block(offset)
        return min((place for place in (found, own) if place is not None), default=None)

    def is_removed(self) -> bool:
        return self._real is not None and self._real.is_removed()

    def forget_cached(self, offset: int, size: int) -> None:
        if self._real is not None:
            self._real.forget_cached(offset, size)

    def write_at(self, offset: int, data: Buffer | Sequence[Buffer]) -> None:
        new = bytes(data) if isinstance(data, (bytes, bytearray, memoryview)) else b"".join(data)
        beneath = b"" if self._real is None else self._real.read_at(offset, len(new))
        if self._disk.takes(self._path, offset, new, beneath):
            self._change().put(offset, new, beneath)

    def size(self) -> int:
        if self._changed is not None:
            return self._changed.size
        return 0 if self._real is None else self._real.size()

    def truncate(self, size: int) -> None:
        if size != self.size():
            self._change().size = size

    def allocate(self, size: int) -> None:
        if size > self.size():
            self._change().size = size

    def sync(self) -> None:
        pass

    def close(self) -> None:
        if self._real is not None:
            self._real.close()

    def _change(self) -> _Changes:
        if self._changed is None:
            self._changed = self._disk.changes(self._path, self._real)
        return self._changed
