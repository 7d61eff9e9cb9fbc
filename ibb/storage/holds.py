"""
Holds: which files somebody is reading just now, so that none is purged under a reader.

A reader publishes the file that it is in, and only ever a later one. It may still go back to
earlier files for out-of-band pieces: as far as the header of its file says, which whoever purges
takes into account. Source: ibb-format 8.7, 12.4.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Self

from .errors import StoreBusy


class HoldKind(Enum):
    """Who holds."""

    REPLICA = "a binlog dump thread (connected slave)"
    READER = "a reader of this program"
    BACKUP = "a backup"


class Hold:
    """
    One reader's hold; made by `Holds.take`.

    Attributes:
        kind: who holds.
        name: which one, for people.
        file_no: the file that it is in; nothing below it is needed but by its references.
    """

    def __init__(
        self, kind: HoldKind, name: str, file_no: int, forget: Callable[["Hold", bool], bool]
    ) -> None:
        self.kind = kind
        self.name = name
        self.file_no = file_no
        self._forget = forget

    def move(self, file_no: int) -> None:
        """Publish the file that the reader is in; going back is not published."""
        self.file_no = max(self.file_no, file_no)

    def release(self) -> None:
        """Hold nothing any more; a second call does nothing. It may wait for a purge."""
        self._forget(self, True)

    def release_at_once(self) -> bool:
        """Release if that needs no waiting; return whether it did."""
        return self._forget(self, False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class Holds:
    """The holds of a store. Safe to use from several threads."""

    def __init__(self) -> None:
        self._mutex = threading.RLock()
        self._holds: list[Hold] = []

    def take(self, kind: HoldKind, name: str, first_file: Callable[[], int]) -> Hold:
        """
        Begin to hold everything from the oldest file on.

        Args:
            kind: who holds.
            name: which one, for people.
            first_file: returns the oldest file; asked while nothing can be purged.
        """
        with self._mutex:
            hold = Hold(kind, name, first_file(), self._forget)
            self._holds.append(hold)
            return hold

    def all(self) -> list[Hold]:
        """Return the holds."""
        with self._mutex:
            return list(self._holds)

    def check_free(self) -> None:
        """
        Raise if anybody holds.

        Raises:
            StoreBusy: names one who does.
        """
        for hold in self.all():
            raise StoreBusy(f"the binlog is in use by {hold.kind.value}: {hold.name}")

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let nobody begin to hold meanwhile."""
        with self._mutex:
            yield

    def _forget(self, hold: Hold, waits: bool) -> bool:
        if not self._mutex.acquire(blocking=waits):
            return False
        try:
            if hold in self._holds:
                self._holds.remove(hold)
        finally:
            self._mutex.release()
        return True
