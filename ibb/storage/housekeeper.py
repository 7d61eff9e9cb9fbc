"""
The housekeeper: full pages to the disk, the file before the last closed, the next one made.

Normally a thread of its own; a store without background work calls `work` itself. The order is
that of ibb-format 9.4: file N-1 is written, synced and closed before file N+1 is made.
"""

import threading
from collections.abc import Callable

from .binlog_files import BinlogFiles
from .errors import DiskError, NoSecondFile, StoreFailed, StoreFull
from .page_fifo import PageFifo
from .page_flusher import PageFlusher
from .redo import RedoLog

IDLE_SECONDS = 1.0  # between two looks for full pages when nobody calls
UNSYNCED_BYTES_MAX = 8 << 20  # of pages in the files, before they are synced ahead of a checkpoint
RETRY_SECONDS = 1.0  # between attempts to make the next file on a full disk


class Housekeeper:
    """
    Keeps the page FIFO short and a file in reserve. Safe to use from several threads.

    Args:
        fifo, files, redo, flusher: the parts of the store.
        file_size: bytes of a new file.
        active: the file being written.
        prepared: the newest file that exists.
        on_file_made: called by `work` after a file was made.
    """

    def __init__(
        self,
        fifo: PageFifo,
        files: BinlogFiles,
        redo: RedoLog,
        flusher: PageFlusher,
        *,
        file_size: int,
        active: int,
        prepared: int,
        on_file_made: Callable[[], None],
    ) -> None:
        self._fifo = fifo
        self._files = files
        self._redo = redo
        self._flusher = flusher
        self._file_size = file_size
        self._oldest_open = active
        self._active = active
        self._prepared = prepared
        self._on_file_made = on_file_made
        self._making = threading.Lock()
        self._closing = threading.Lock()
        self._working = threading.Lock()
        self._wanted = threading.Event()
        self._made = False  # a file, and `on_file_made` was not called yet
        self._stopping = False
        self._thread: threading.Thread | None = None

    @property
    def oldest_open(self) -> int:
        """The oldest file that is not synced and closed yet."""
        return self._oldest_open

    def start(self) -> None:
        """Work in a thread of its own from now on."""
        self._wanted.set()
        self._thread = threading.Thread(target=self._run, name="ibb-housekeeper", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, and work in any other; what is left is the caller's to do."""
        self._stopping = True
        self._wanted.set()
        if self._thread is not None:
            self._thread.join()
        with self._working:
            pass  # whoever works comes to an end: the files may be another history's soon

    def wake(self) -> None:
        """There may be something to do."""
        self._wanted.set()

    def enter(self, file_no: int) -> None:
        """Learn that the writer has gone over to a file."""
        self._active = file_no
        self._wanted.set()

    def work(self) -> None:
        """
        Do what there is to do; nothing any more behind `stop`.

        Raises:
            StoreFull: there is no room for the next file; try again later.
            DiskError: pages could not be written or synced: they are lost to the store.
        """
        with self._working:
            if self._stopping:
                return
            self._flusher.flush()
            self._sync_ahead()
            self._close_before(self._active)
            if self._oldest_open >= self._active and self._active + 1 > self._prepared:
                self.make_file(self._active + 1)
            made, self._made = self._made, False
        if made:
            self._on_file_made()

    def _sync_ahead(self) -> None:
        """Sync what is much: a checkpoint, during which nobody writes, finds little left to do."""
        if self._flusher.unsynced >= UNSYNCED_BYTES_MAX:
            self._flusher.unsynced = 0
            self._files.sync_before(self._active + 1)

    def make_file(self, file_no: int) -> None:
        """
        Make a file unless it exists; first all files but the one before it are synced.

        Raises:
            StoreFull: there is no room for it.
            StoreFailed, DiskError: a file that had to be closed was not written or synced: the
                store takes nothing more.
        """
        with self._making:
            if file_no > self._prepared:
                self._finish_before(file_no - 1)
                self._files.create(file_no, self._file_size)
                self._prepared = file_no
                self._made = True
                self._wanted.set()

    def make_file_of_record(self, file_no: int) -> None:
        """
        As `make_file`, in the middle of a record: room was made for the first file it enters.

        Raises:
            NoSecondFile: there is no room for it.
            StoreFailed, DiskError: as `make_file`.
        """
        try:
            self.make_file(file_no)
        except StoreFull as error:
            raise NoSecondFile(
                f"{error}; a record is cut short there, since GTID states fill the file before: "
                "make room, open the store again, and give it larger files"
            ) from error

    def _finish_before(self, file_no: int) -> None:
        """Have the files before *file_no* on the disk: who sees the next one relies on it."""
        try:
            if self._fifo.holds_file(file_no - 1):
                self._redo.sync_to(self._redo.next_lsn)
                self._flusher.flush()
            self._close_before(file_no)
            # Where states fill whole files one record can lie in three, and none of its pages
            # leaves before all of it is logged; what there was before it is on the disk then.
            self._files.sync_before(file_no)
        except DiskError as error:
            self._redo.fail(error)
            raise

    def _close_before(self, file_no: int) -> None:
        """Sync and close the files before *file_no*, as far as all their pages are written."""
        with self._closing:
            while self._oldest_open < file_no and not self._fifo.holds_file(self._oldest_open):
                self._files.close(self._oldest_open)
                self._oldest_open += 1

    def _run(self) -> None:
        timeout = IDLE_SECONDS
        while True:
            self._wanted.wait(timeout)
            self._wanted.clear()
            if self._stopping:
                return
            timeout = IDLE_SECONDS
            try:
                self.work()
            except StoreFull:
                timeout = RETRY_SECONDS
            except (DiskError, StoreFailed) as error:
                self._redo.fail(error)
                return
            except BaseException as error:  # nobody would do its work: that must be seen
                self._redo.fail(error)
                raise
