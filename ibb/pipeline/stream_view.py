"""
The directory that a stream follows, looked at again for each micro-batch.

Of a store of ours each look applies what its redo log has synced. A directory that another
program writes is followed by one `ReadOnlyHistory`, which shows only what is surely synced once
it has seen the files change, and keeps showing what it has shown.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ibb.storage.read_only import ReadOnlyHistory

from .directories import DirectoryView, NamedDirectory, disk_of, named_directories, open_view
from .errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator


class StreamView:
    """
    The one directory of a stream.

    Args:
        paths: option path.

    Raises:
        OptionError: it names more than one directory, or files.
    """

    def __init__(self, paths: tuple[str, ...]) -> None:
        named = named_directories(paths)
        if len(named) > 1 or named[0].files is not None:
            raise OptionError("path", "a stream follows one directory, and all of its files")
        self.named: NamedDirectory = named[0]
        self._history: ReadOnlyHistory | None = None
        self._known = (0, 0)  # a page that was used in the last look

    @contextmanager
    def look(self) -> Iterator[DirectoryView]:
        """
        Look at the directory.

        Raises:
            OptionError: it is not there.
            FormatError, DiskError: it cannot be read.
        """
        if self._history is None:
            view = open_view(self.named.path, self._known)
            self._known = view.pages.known_page
            try:
                if view.in_files is not None:
                    yield view
                    return
            finally:
                view.pages.close()
            disk, path = disk_of(self.named.path)
            self._history = ReadOnlyHistory(disk, path)
        else:
            self._history.refresh()
        if self._history.damage is not None:
            raise self._history.damage
        yield DirectoryView(self._history.pages, self._history.state(), None)

    def close(self) -> None:
        """Close the files."""
        if self._history is not None:
            self._history.close()
            self._history = None
