"""A store that can be steered to the byte, near the end of a file of any size."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.storage import Store, StoreOptions
from ibb.storage.directory import BinlogDirectory
from ibb.storage.group_reader import GroupReader, StoredGroup
from ibb.storage.position import Position

from ..faults.sparse_disk import SparseDisk, SparseImage
from ..oracle.binlog import Binlog
from ..oracle.files import crc32c
from ..oracle.references import check_references
from ..oracle.states import StateCheck
from .events import query

DIRECTORY = "/s"
FREE_PAGES = 4  # at the end of a file that was filled by construction
QUERY_BYTES_MIN = len(query(""))
COMMIT_BYTES = 1 + 38  # of a commit record: no out-of-band lists, the GTID event
CHUNK_BYTES = 3
EMPTY_STATE = bytes.fromhex("4202000000")
DOMAIN, SERVER, SEQ = 0, 1, 1 << 20  # numbers of one length in a state record


def options_for(
    page_size: int, pages: int, interval: int = 2, piece_size: int = 64 << 10
) -> StoreOptions:
    return StoreOptions(
        page_size=page_size,
        max_binlog_size=page_size * pages,
        state_interval=page_size * interval,
        redo_segment_size=max(1 << 20, 16 * page_size),
        oob_piece_size=min(piece_size, 4 * page_size),
        format_description="upstream",
        background=False,
    )


class EdgeStore:
    """
    A store and what was published into it.

    Args:
        options: settings.
        disk: to go on with; None: a new one, its first file used up to the last `FREE_PAGES`
            pages, by garbage of groups that were never committed.
        state: a new disk's GTID state.
        state_pages: that the record of it takes.
    """

    def __init__(
        self,
        options: StoreOptions,
        disk: SparseDisk | None = None,
        *,
        state: tuple[Gtid, ...] = (),
        state_pages: int = 0,
    ) -> None:
        self.options = options
        self.disk = disk or _used_disk(options, state, state_pages).copy()
        self.store = Store.open(DIRECTORY, options, disk=self.disk)
        assert self.store.copies_set_aside == []
        assert disk is not None or self.page >= options.file_pages - FREE_PAGES
        self.published: list[tuple[str, bytes]] = []

    @property
    def end(self) -> Position:
        """The end of everything written, at the beginning of a page rather than at an end."""
        return self.store._engine.writer.end

    @property
    def room(self) -> int:
        """Bytes left in the page that is begun; none in one that is not."""
        at = self.end.offset % self.options.page_size
        return self.options.page_size - 4 - at if at else 0

    @property
    def page(self) -> int:
        return self.end.offset // self.options.page_size

    def publish(self, size: int = QUERY_BYTES_MIN, gtid: Gtid | None = None) -> None:
        """Publish one event of *size* bytes."""
        event = query("q" * (size - QUERY_BYTES_MIN))
        gtid = gtid or Gtid(DOMAIN, SERVER, SEQ + len(self.published))
        with self.store.begin() as group:
            group.write(event)
            group.commit(gtid, wait=False)
        self.published.append((str(gtid), event))

    def waste_pages(self, until: int) -> None:
        """Write pieces that no group will have, up to a page at least."""
        while self.page < until:
            with self.store.begin() as group:
                group.write(query("w" * self.options.piece_size))

    def end_record_at(self, delta: int) -> None:
        """
        End a record *delta* bytes of data behind the end of this page, or before it.

        Of the next page, if too little of this one is left for a record.
        """
        if self.room + delta < CHUNK_BYTES + COMMIT_BYTES + QUERY_BYTES_MIN:
            self.publish()
        while True:
            size = self.room - CHUNK_BYTES + delta - COMMIT_BYTES
            if size < self.options.piece_size:
                break
            room_for_another = CHUNK_BYTES + COMMIT_BYTES + QUERY_BYTES_MIN - delta
            left = self.room - CHUNK_BYTES - COMMIT_BYTES - room_for_another
            self.publish(min(self.options.piece_size - 1, left))
        self.publish(size)

    def go_to_page(self, page: int) -> None:
        """Use everything before a page of this file."""
        assert self.page <= page
        while self.page < page:
            self.end_record_at(0)

    def reopen(self, *, killed: bool) -> EdgeStore:
        """Return the store opened again, closed before or killed."""
        if killed:
            self.store.sync()
            disk = self.disk.copy()
        else:
            self.store.close()
            disk = self.disk
        again = EdgeStore(self.options, disk)
        again.published = list(self.published)
        return again

    def check(self) -> Binlog:
        """Read everything back in each way there is, and close; return what the oracle read."""
        assert _read(self.store.reader()) == self.published
        for known in range(max(1, len(self.published) - 2), len(self.published) + 1):
            assert _read(self.store.reader(self._position(known))) == self.published[known:]
        self.store.close()
        reader = GroupReader(BinlogDirectory(self.disk, DIRECTORY), Position(0, 0))
        assert _read(iter(reader.next, None)) == self.published
        binlog = Binlog(images_of(self.disk))
        states = StateCheck(binlog)
        assert (binlog.problems, states.problems, check_references(binlog)) == ([], [], [])
        assert [
            (str(group.gtid), group.data[len(group.head) :]) for group in binlog.groups
        ] == self.published
        return binlog

    def _position(self, known: int) -> GtidPosition:
        """Return the position of a replica that has the first *known* groups."""
        position = self.store.state().position()
        for gtid, _ in self.published:
            position.remove(Gtid.parse(gtid).domain)
        for gtid, _ in self.published[:known]:
            position.set(Gtid.parse(gtid))
        return position


def _read(groups: Iterable[StoredGroup]) -> list[tuple[str, bytes]]:
    return [(str(group.gtid), b"".join(group.pieces())[len(group.head) :]) for group in groups]


def images_of(disk: SparseDisk) -> dict[int, SparseImage]:
    """Return the binlog files by number."""
    names = [name for name in disk.list(DIRECTORY) if name.endswith(".ibb")]
    return {int(name[7:-4]): disk.images[f"{DIRECTORY}/{name}"] for name in names}


@lru_cache(maxsize=4)
def _used_disk(
    options: StoreOptions, state: tuple[Gtid, ...] = (), state_pages: int = 0
) -> SparseDisk:
    """Return a disk with a store on it that has `FREE_PAGES` pages left in its first file."""
    disk = SparseDisk(options.page_size)
    store = Store.open(DIRECTORY, options, disk=disk)
    if state:
        store.reset(BinlogState(state))
    if options.file_pages > FREE_PAGES:
        # The redo log must know nothing of the pages that are about to change, but where they end.
        size, image = options.page_size, disk.images[f"{DIRECTORY}/binlog-000000.ibb"]
        store._engine.checkpoint()
        end = Position(0, (options.file_pages - FREE_PAGES) * size)
        store._engine._redo.begin_next_segment(end)  # and is killed: to close would begin another
        with_state, without = (_garbage_page(before, size) for before in (EMPTY_STATE, b""))
        for number in range(1 + state_pages, options.file_pages - FREE_PAGES):
            has_state = number == 1 or number % options.interval_pages == 0
            image.write(number * size, with_state if has_state else without)
    else:
        store.close()
    return disk


def _garbage_page(before: bytes, page_size: int) -> bytes:
    """Return a page with an out-of-band record, a first leaf, that fills what *before* leaves."""
    size = page_size - 4 - len(before) - CHUNK_BYTES
    record = b"\x43" + size.to_bytes(2, "little") + bytes(5) + b"g" * (size - 5)
    return before + record + crc32c(before + record).to_bytes(4, "little")
