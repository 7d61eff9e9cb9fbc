"""Binlog files that stay what they are while another process may purge them."""

from .disk import Disk, File
from .errors import DiskError
from .file_name import parse_binlog_name
from .read_only_disk import ReadOnlyDisk, ReadOnlyFile

TRIES_MAX = 5  # to open all files, while a purge removes some
_WHY = "the files are only read"


class HeldFiles(ReadOnlyDisk):
    """
    A disk on which the binlog files of a directory stay what they are once they are held.

    A purge by another process takes away their names, but not what is in them.

    Args:
        disk: the real one.
        directory: path of the files.
    """

    def __init__(self, disk: Disk, directory: str) -> None:
        super().__init__(disk, _WHY)
        self._directory = directory
        self._held: dict[str, File] = {}
        self._names: list[str] | None = None

    def hold(self) -> None:
        """
        Open all files.

        Raises:
            DiskError: one cannot be opened, or they go faster than they can be.
        """
        for attempt in range(1, TRIES_MAX + 1):
            names = self._disk.list(self._directory)
            try:
                for name in names:
                    if parse_binlog_name(name) is not None:
                        path = f"{self._directory}/{name}"
                        self._held[path] = self._disk.open(path, read_only=True)
            except DiskError as error:
                self.close()
                if not error.missing or attempt == TRIES_MAX:
                    raise
            else:
                self._names = names
                return

    def close(self) -> None:
        """Let the files go."""
        for file in self._held.values():
            file.close()
        self._held.clear()

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> File:
        """Open a file; one that is held once more, though it has no name any more."""
        held = self._held.get(path)
        if held is None:
            return super().open(path, create=create, read_only=read_only)
        return _HeldFile(held, path, _WHY)

    def exists(self, path: str) -> bool:
        """Tell whether a file is there, or held."""
        return path in self._held or super().exists(path)

    def list(self, path: str) -> list[str]:
        """Return the names in a directory, those of the moment in which the files were held."""
        names = self._names if path == self._directory else None
        return list(super().list(path) if names is None else names)

    def size(self, path: str) -> int:
        """Return a file's length in bytes."""
        held = self._held.get(path)
        return held.size() if held else super().size(path)

    def modified_at(self, path: str) -> float:
        """Return when a file's contents changed; 0 for one that has lost its name."""
        if path in self._held and not self._disk.exists(path):
            return 0.0
        return super().modified_at(path)


class _HeldFile(ReadOnlyFile):
    """One opening of a held file."""

    def __init__(self, file: File, path: str, why: str) -> None:
        super().__init__(file, path, why)
        self.is_removed = lambda: False  # what its name stands for here

    def close(self) -> None:
        """Leave the file held: this was one of its openings."""
