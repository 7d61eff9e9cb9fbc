"""
A disk in memory for files that are large and mostly empty, or full of equal pages.

Blocks are kept once each, all-zero ones not at all, and a copy of the disk shares them. It loses
nothing and never fails.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

from ibb.storage.disk import ReadByCopy
from ibb.storage.errors import DiskError, StoreLocked

Buffer = bytes | bytearray | memoryview


class SparseImage:
    """The bytes of a file; cut at a block's bounds it gives the block itself."""

    def __init__(self, block_size: int) -> None:
        self.size = 0
        self._blocks: dict[int, bytes] = {}
        self._block_size = block_size
        self._zero = bytes(block_size)

    def copy(self) -> SparseImage:
        copy = SparseImage(self._block_size)
        copy.size, copy._blocks = self.size, dict(self._blocks)
        return copy

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, part: slice) -> bytes:
        start, stop, _ = part.indices(self.size)
        first = start // self._block_size
        last = -(-stop // self._block_size)
        blocks = [self._blocks.get(number, self._zero) for number in range(first, last)]
        if len(blocks) == 1 and stop - start == self._block_size:
            return blocks[0]
        skipped = first * self._block_size
        return b"".join(blocks)[start - skipped : stop - skipped]

    def next_data(self, offset: int) -> int | None:
        """Return the first byte from *offset* on of a block that is not all zero."""
        first = offset // self._block_size
        number = min((number for number in self._blocks if number >= first), default=None)
        return None if number is None else max(offset, number * self._block_size)

    def write(self, offset: int, data: bytes) -> None:
        self.size = max(self.size, offset + len(data))
        at = 0
        while at < len(data):
            number, inside = divmod(offset + at, self._block_size)
            part = data[at : at + self._block_size - inside]
            before = self._blocks.get(number, self._zero)
            self._keep(number, before[:inside] + part + before[inside + len(part) :])
            at += len(part)

    def truncate(self, size: int) -> None:
        keep = -(-size // self._block_size)
        for number in [number for number in self._blocks if number >= keep]:
            del self._blocks[number]
        if size % self._block_size and keep - 1 in self._blocks:
            left = self._blocks[keep - 1][: size % self._block_size]
            self._keep(keep - 1, left + bytes(self._block_size - len(left)))
        self.size = size

    def _keep(self, number: int, block: bytes) -> None:
        if block == self._zero:
            self._blocks.pop(number, None)
        else:
            self._blocks[number] = block


class SparseDisk:
    """Implements `Disk`."""

    def __init__(self, block_size: int) -> None:
        self.images: dict[str, SparseImage] = {}
        self._block_size = block_size
        self._locks: dict[str, bytes] = {}  # and their notes

    def copy(self) -> SparseDisk:
        """Return the disk as a program finds it after this one was killed."""
        copy = SparseDisk(self._block_size)
        copy.images = {path: image.copy() for path, image in self.images.items()}
        return copy

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> SparseFile:
        if path not in self.images:
            if not create:
                raise DiskError(errno.ENOENT, "no such file", operation="open", path=path)
            self.images[path] = SparseImage(self._block_size)
        return SparseFile(self.images, path)

    def exists(self, path: str) -> bool:
        return path in self.images

    def list(self, path: str) -> list[str]:
        names = [name.removeprefix(f"{path}/") for name in self.images]
        return sorted(name for name in names if "/" not in name)

    def size(self, path: str) -> int:
        return self.images[path].size

    def modified_at(self, path: str) -> float:
        return 0.0

    def make_dir(self, path: str) -> None:
        """Directories are there once something is in them."""

    def rename(self, source: str, target: str) -> None:
        self.images[target] = self.images.pop(source)

    def unlink(self, path: str) -> None:
        del self.images[path]

    def sync_dir(self, path: str) -> None:
        """Nothing gets lost."""

    def lock(self, path: str) -> SparseLock:
        if path in self._locks:
            raise StoreLocked(path)
        return SparseLock(self._locks, path)

    def lock_note(self, path: str) -> bytes | None:
        return self._locks.get(path)


class SparseLock:
    def __init__(self, locks: dict[str, bytes], path: str) -> None:
        locks[path] = b""
        self._locks, self._path = locks, path

    def write_note(self, data: bytes) -> None:
        if self._path in self._locks:  # else the process has ended
            self._locks[self._path] = data

    def release(self) -> None:
        self._locks.pop(self._path, None)


class SparseFile(ReadByCopy):
    """Implements `File`."""

    def __init__(self, images: dict[str, SparseImage], path: str) -> None:
        self._images, self._image = images, images[path]

    def read_at(self, offset: int, size: int) -> bytes:
        return self._image[offset : offset + size]

    def next_data(self, offset: int) -> int | None:
        return self._image.next_data(offset)

    def is_removed(self) -> bool:
        return all(image is not self._image for image in self._images.values())

    def forget_cached(self, offset: int, size: int) -> None:
        """There is no cache."""

    def write_at(self, offset: int, data: Buffer | Sequence[Buffer]) -> None:
        parts = [data] if isinstance(data, bytes | bytearray | memoryview) else data
        self._image.write(offset, b"".join(bytes(part) for part in parts))

    def size(self) -> int:
        return self._image.size

    def truncate(self, size: int) -> None:
        self._image.truncate(size)

    def allocate(self, size: int) -> None:
        self._image.size = max(self._image.size, size)

    def sync(self) -> None:
        """Nothing gets lost."""

    def close(self) -> None:
        """Nothing to give up."""
