"""
Room for what is to be written: in the redo log, in the page FIFO, and in the next file.

It is made before a record is begun, so that nothing has to wait for the disk in the middle of one.
All calls belong to the holder of the store's write lock. Source: ibb-format 9.
"""

from .binlog_files import BinlogFiles
from .errors import DiskError
from .housekeeper import Housekeeper
from .page_fifo import PageFifo
from .page_flusher import PageFlusher
from .record_bound import RecordBound
from .redo import RedoLog
from .writer import Writer


class Room:
    """
    What a writer writes to, and how full that is.

    Args:
        writer: writes it.
        fifo, redo: take its pages and changes.
        flusher, files: bring the pages to the disk.
        housekeeper: makes the next file.
    """

    def __init__(
        self,
        writer: Writer,
        fifo: PageFifo,
        redo: RedoLog,
        flusher: PageFlusher,
        files: BinlogFiles,
        housekeeper: Housekeeper,
    ) -> None:
        self._writer = writer
        self._fifo = fifo
        self._redo = redo
        self._flusher = flusher
        self._files = files
        self._housekeeper = housekeeper

    @property
    def run_bytes_max(self) -> int:
        """The bytes of records that fit before a state or another file is due, and in memory."""
        writer, fifo = self._writer, self._fifo
        pages = min(writer.pages_before_state, max(fifo.pages_max - len(fifo), 0))
        tail = writer.tail
        return pages * writer.shape.page_payload + (tail.room if tail is not None else 0)

    def takes(self, bound: RecordBound) -> bool:
        """Tell whether the redo log can take as much at once."""
        return bound.redo_bytes <= self._redo.group_size_max

    def make(self, bound: RecordBound) -> None:
        """
        Make sure that records can be written without waiting in the middle of them.

        Args:
            bound: what they take at most.

        Raises:
            StoreFull: there is no room for the next file; nothing was done.
            StoreFailed, DiskError: the log or a file could not be written.
        """
        if self._writer.pages_left() <= bound.pages:
            self._housekeeper.make_file(self._writer.file_no + 1)
        if self._redo.wants_write:
            self._redo.write_now()
        if not self._redo.fits(bound.redo_bytes):
            self.checkpoint()
            self._redo.begin_next_segment(self._writer.end)
        if self._fifo.is_full:
            self._sync()
            self._flusher.flush()

    def checkpoint(self) -> None:
        """
        Bring everything written to the files, durably.

        Raises:
            StoreFailed, DiskError: something could not be written or synced.
        """
        self._sync()
        try:
            self._flusher.flush()
            tail = self._writer.tail
            if tail is not None and not tail.flushed_clean:
                self._flusher.flush_partial(tail)
            self._files.sync_all()
        except DiskError as error:
            self._redo.fail(error)
            raise

    def _sync(self) -> None:
        self._redo.sync_to(self._redo.next_lsn)
