"""A store that is begun anew at one of the calls by which others look at its directory."""

from collections.abc import Iterator
from dataclasses import replace

from ibb.protocol.gtid import Gtid
from ibb.storage import Store
from ibb.storage.errors import DiskError
from ibb.storage.group_reader import GroupReader
from ibb.storage.page_source import PageSource
from ibb.storage.position import Position

from ..faults.sim_disk import SimDisk, SimFile
from .events import transaction
from .given_up_file import OPTIONS, PAGE

SIZES = [(20, 20), (60, 90), (40, 10)]  # groups before and after
OLD, NEW = 1, 2  # their domains
DIRECTORY = "/s"
_ONE_FILE = replace(OPTIONS, max_binlog_size=128 * PAGE)


class WatchedDisk(SimDisk):
    """
    A disk with the store.

    Args:
        before: groups at first.
        after: groups once it is begun anew.
        at: number of the call at which that happens.

    Attributes:
        is_watched: it has not happened yet.
    """

    def __init__(self, before: int, after: int, at: int) -> None:
        super().__init__()
        self.is_watched = False
        self._store = Store.open(DIRECTORY, _ONE_FILE, disk=self)
        self._publish(OLD, before)
        self._after = after
        self._left = at
        self.is_watched = True

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> SimFile:
        self._called()
        return super().open(path, create=create, read_only=read_only)

    def exists(self, path: str) -> bool:
        self._called()
        return super().exists(path)

    def list(self, path: str) -> list[str]:
        self._called()
        return super().list(path)

    def size(self, path: str) -> int:
        self._called()
        return super().size(path)

    def _called(self) -> None:
        if self.is_watched:
            self._left -= 1
            if self._left < 0:
                self.is_watched = False
                self._store.reset()
                self._publish(NEW, self._after)

    def _publish(self, domain: int, groups: int) -> None:
        for seq in range(1, groups + 1):
            with self._store.begin() as group:
                group.write(transaction(f"of {domain} " + "x" * 150))
                group.commit(Gtid(domain, 1, seq))


def disks(before: int, after: int) -> Iterator[WatchedDisk]:
    """Yield a disk for each call at which the store can be begun anew, and one more."""
    at, disk = 0, WatchedDisk(before, after, 0)
    yield disk
    while not disk.is_watched:
        at += 1
        disk = WatchedDisk(before, after, at)
        yield disk
    assert at > 10


def groups_of(pages: PageSource) -> list[tuple[int, int]]:
    """Return domain and number of each group, up to where the files are seen to be begun anew."""
    reader, seen = GroupReader(pages, Position(0, 0)), []
    try:
        while (group := reader.next()) is not None:
            if group.gtid is not None:
                seen.append((group.gtid.domain, group.gtid.seq))
    except DiskError as error:
        if not error.begun_anew:
            raise
    return seen


def one_history(seen: list[tuple[int, int]]) -> bool:
    """Tell whether groups are those of one history, from the beginning."""
    return seen in ([(domain, seq) for seq in range(1, len(seen) + 1)] for domain in (OLD, NEW))
