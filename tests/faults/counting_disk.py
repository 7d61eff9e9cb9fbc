"""The real disk, counting what is synced."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePath

from ibb.storage.disk import File
from ibb.storage.os_disk import OsDisk


class CountingDisk(OsDisk):
    """
    Counts.

    Attributes:
        syncs: how often each file was synced, by name.
    """

    def __init__(self) -> None:
        self.syncs: Counter[str] = Counter()

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> File:
        return _CountingFile(super().open(path, create=create, read_only=read_only), path, self)

    def of(self, word: str) -> int:
        """Return how often files with *word* in their names were synced."""
        return sum(count for name, count in self.syncs.items() if word in name)


class _CountingFile:
    def __init__(self, file: File, path: str, disk: CountingDisk) -> None:
        self._file = file
        self._name = PurePath(path).name
        self._disk = disk
        self.read_at, self.write_at, self.close = file.read_at, file.write_at, file.close
        self.size, self.truncate, self.allocate = file.size, file.truncate, file.allocate

    def sync(self) -> None:
        self._disk.syncs[self._name] += 1
        self._file.sync()
