"""How full the parts of a served store are that stand between a commit and its binlog file."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ibb.storage.errors import DiskError
from ibb.storage.position import Position
from ibb.storage.redo_segment import SEGMENT_DATA_OFFSET, SEGMENT_NAMES, read_segment_header
from ibb.storage.synced_note import NOTHING_SYNCED, certain_lsn

from .dump.readers import bytes_between
from .latencies import MICROSECONDS

if TYPE_CHECKING:
    from ibb.storage.commit_position import CommitPosition
    from ibb.storage.options import StoreOptions
    from ibb.storage.store import Store

    from .measured_disk import MeasuredDisk


class Filling(NamedTuple):
    """
    How full they are, in bytes.

    Attributes:
        redo_used: of the redo log since its checkpoint: what a restart would read.
        redo_limit: for so many there is room; then comes the next checkpoint.
        page_fifo: of the newest history that is not in its file yet, give or take a page.
        page_fifo_limit: of pages; then commits wait for the disk.
        unsynced: of history that is written and not durable yet.
    """

    redo_used: int
    redo_limit: int
    page_fifo: int
    page_fifo_limit: int
    unsynced: int


class StorageLine(NamedTuple):
    """
    The line of SHOW BINLOG STORAGE.

    Attributes:
        redo_used, redo_limit, page_fifo, page_fifo_limit, unsynced: as of `Filling`; None: could
            not be told.
        syncs: of the redo log, since the start.
        sync_time: microseconds that they took.
    """

    redo_used: int | None
    redo_limit: int | None
    page_fifo: int | None
    page_fifo_limit: int | None
    unsynced: int | None
    syncs: int
    sync_time: int


class StorageFigures:
    """
    What is known of a store that this process writes.

    Args:
        store: it was opened on *disk*.
        directory: of the store, as it was given when it was opened.
        disk: measures what the store does.
        options: of the store.

    Attributes:
        disk: as above.
    """

    def __init__(
        self, store: Store, directory: str, disk: MeasuredDisk, options: StoreOptions
    ) -> None:
        self.disk = disk
        self._store = store
        self._directory = directory
        self._page_fifo_limit = options.fifo_pages_max * options.page_size
        # An opening brings everything to the files, though it need not write for that.
        disk.in_files = max(disk.in_files, store.end())

    def filling(self, written: CommitPosition | None) -> Filling | None:
        """
        Return how full the store is; looks at the disk. None: that could not be told just now.

        Args:
            written: the end of what was written last, if that is known.
        """
        path = self.disk.segment
        slot = SEGMENT_NAMES.index(path.rpartition("/")[2])
        try:
            segment = read_segment_header(self.disk, path, slot)
            synced = certain_lsn(self.disk, self._directory)  # behind it, or it may be too old
            sizes = {file.file_no: file.size for file in self._store.files()}
        except DiskError:  # the store tells of that
            return None
        if segment is None or synced is None:
            return None
        if synced == NOTHING_SYNCED:
            synced = segment.first_lsn  # the opening has brought all from before to the files
        in_files, end = self.disk.in_files, self._store.end()
        newest = end
        if written is not None and written.lsn > synced:
            newest = max(end, Position(written.file_no, written.offset))
        return Filling(
            max(0, synced - segment.first_lsn),
            segment.size - SEGMENT_DATA_OFFSET,
            bytes_between(in_files, newest, sizes),
            self._page_fifo_limit,
            bytes_between(end, newest, sizes),
        )

    def line(self, written: CommitPosition | None) -> StorageLine:
        """Return all that is known; *written* as for `filling`."""
        filling, counted = self.filling(written), self.disk.redo_syncs.counted()
        syncs, microseconds = counted.up_to[-1], round(counted.seconds * MICROSECONDS)
        if filling is None:
            return StorageLine(None, None, None, None, None, syncs, microseconds)
        return StorageLine(*filling, syncs, microseconds)
