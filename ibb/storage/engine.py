"""
The engine: records in, durable bytes out.

It puts the writing parts together. The writer fills pages in the page FIFO and logs every change,
the redo log makes them certain, the durable offset says how far readers may look, the housekeeper
brings full pages to the files. Calls may come from any thread; whoever writes holds `writing`.
Source: ibb-format 9, 10.
"""

import threading
from collections.abc import Callable

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid

from .binlog_files import BinlogFiles
from .clock import Clock
from .disk import Disk
from .durable import DurableOffset
from .errors import DiskError, StoreFailed, StoreFull
from .file_shape import FileShape
from .healed_reads import HealedReads
from .housekeeper import Housekeeper
from .live_pages import LivePages
from .log_syncer import LogSyncer
from .new_record import Appended, NewRecord, gtid_of
from .opening import Opened, open_writer
from .options import StoreOptions
from .page_fifo import PageFifo
from .page_flusher import PageFlusher
from .position import Position
from .purge import WriterNeeds
from .record import RecordType
from .record_bound import RecordBound, bound_of, check_first_state, place_of, switch_bound
from .record_run import RecordRun
from .redo import RedoLog
from .reset_marker import ResetMarker
from .room import Room
from .synced_note import SyncedNote
from .writer import Writer

FLUSH_PAGES_MIN = 16  # pages in the FIFO for which the housekeeper is woken at once


class Engine:
    """
    The writing half of a store.

    Args:
        disk: where the directory is.
        directory: its path; the caller holds its lock.
        options: settings.
        clock: tells when the log is due to be synced in modes 0 and 2.
        on_file_made: called after a file was made in advance, by the thread that made it.
        on_begun_anew: called when the history before is gone, again if it was not heard to its end.
        synced_note: where others read how far the log is synced.

    Attributes:
        writing: held by whoever writes.
        durable: how far readers may look.
        room: for what is to be written.
        pages: what they see.
        opened: how the directory was found.
    """

    def __init__(
        self,
        disk: Disk,
        directory: str,
        options: StoreOptions,
        clock: Clock,
        on_file_made: Callable[[], None],
        on_begun_anew: Callable[[], None],
        synced_note: SyncedNote,
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._options = options
        # Of all files to come: those that an opening finds behind the active one are cleared away.
        self._next_shape = options.file_shape
        self._clock = clock
        self._closed = False
        self._marker = ResetMarker(disk, directory)
        self._on_file_made = on_file_made
        self._on_begun_anew = on_begun_anew
        self._synced_note = synced_note
        self._healed = HealedReads()
        self.writing = threading.RLock()
        self.durable = DurableOffset(
            Position(0, 0), BinlogState(), tells_of_pending=options.flush_log_at_commit != 1
        )
        self._build()

    def _build(self) -> None:
        """Open the directory as it is now."""
        options = self._options
        self._fifo = PageFifo(options.fifo_pages_max)
        self.files = BinlogFiles(self._disk, self._directory)
        redo = RedoLog(self._disk, self._directory, options.redo_segment_size, self._on_synced)
        self._flusher = PageFlusher(self._fifo, self.files, redo)
        try:
            self.opened: Opened = open_writer(
                self._disk, self._directory, options, self._fifo, redo, self.files, self,
                self._marker.finish_deleting(),
            )  # fmt: skip
        except BaseException:
            redo.close()
            raise
        self.writer: Writer = self.opened.writer
        self.durable.restart(self.writer.end, self.opened.state)
        self.pages = LivePages(self._fifo, self.durable, self._disk, self._directory, self._healed)
        housekeeper = self._housekeeper = Housekeeper(
            self._fifo, self.files, redo, self._flusher,
            file_size=options.file_pages * options.page_size, active=self.writer.file_no,
            prepared=self.opened.prepared, on_file_made=self._on_file_made,
        )  # fmt: skip
        self._log_syncer = LogSyncer(redo, seconds=options.log_sync_seconds, clock=self._clock)
        self.room = Room(self.writer, self._fifo, redo, self._flusher, self.files, housekeeper)
        # Only now may others ask this log. To those who wait across a reset either log says that
        # what they wait for is durable: the old one was synced, this one's LSNs lie behind.
        self._redo = redo

    def start(self) -> None:
        """Make what opening did durable, and begin to work in the background."""
        with self.writing:
            self.checkpoint()
            if self.opened.begun_anew:
                self._on_begun_anew()
            self._marker.remove()
        if self.opened.taken_over:
            self.switch_file()
        if self._options.background:
            self._log_syncer.start()
            self._housekeeper.start()

    def close(self) -> None:
        """Write everything out and close the files; a second call does nothing."""
        with self.writing:
            if self._closed:
                return
            self._closed = True
            self._stop_background()
            try:
                if self._redo.failure is None:
                    self.checkpoint()
                    # Nobody has to read what is in the log now: damage there does no harm.
                    self._redo.begin_next_segment(self.writer.end)
            finally:
                self._close_files()

    def abandon(self) -> None:
        """Give up an opening that failed: nothing more is written, the files are closed."""
        self._closed = True
        self._stop_background()
        self._close_files()

    def disown(self) -> None:
        """Write nothing any more, see `Disownable`."""
        self.writing, self._closed = threading.RLock(), True
        self._redo.failure = RuntimeError("this process was forked from the one that opened it")

    def check(self) -> None:
        """
        Raise unless the engine can write.

        Raises:
            StoreFailed: it failed, or is closed.
        """
        if self._redo.failure is not None:
            raise StoreFailed(self._redo.failure) from self._redo.failure
        if self._closed:
            raise StoreFailed(RuntimeError("it is closed"))

    # Writing

    def append(self, *records: NewRecord) -> Appended:
        """
        Write records as one unit; the caller holds `writing`.

        Raises:
            GroupError: they are too large for the log.
            StoreFull: there is no room for the next file; nothing was written.
            StoreFailed: the store has stopped writing.
        """
        self.check()
        self._make_room(bound_of(self.writer, records, self._next_shape, self._redo.group_size_max))
        with self._redo.whole_or_failed():
            _, lsn = self.writer.append(*records)
            return self._appended(lsn, gtid_of(records))

    def place_of(self, record: NewRecord) -> Position:
        """Return where a record would begin; the caller holds `writing`. Raises GroupError."""
        return place_of(self.writer, record, self._next_shape, self._redo.group_size_max)

    def append_run(
        self, run: RecordRun, bound: RecordBound, newest: Callable[[], BinlogState | None]
    ) -> Appended | None:
        """
        Write records of a run, as `append` would one by one; None: the next one is for `append`.

        Args:
            run: it tells then how far it came.
            bound: what it takes at most.
            newest: called once it is written, returns the GTIDs of it; None: it has none.

        Raises:
            GroupError, StoreFull, StoreFailed: as `append`; nothing was written.
        """
        self.check()
        self._make_room(bound)
        with self._redo.whole_or_failed():
            lsn = self.writer.append_run(run)
            if lsn is None:
                return None
            gtids = newest()
            for gtid in gtids.entries() if gtids is not None else ():
                self.writer.note(gtid)
            return self._appended(lsn, gtids)

    def append_commit(self, data: bytes, gtid: Gtid) -> Appended:
        """Write a commit record; as `append`, but most of them take a short way."""
        self.check()
        try:
            lsn = self.writer.append_small(RecordType.COMMIT, data, gtid)
            if lsn is not None:
                return self._appended(lsn, gtid)
        except BaseException as error:
            self._redo.fail(error)
            raise
        return self.append(NewRecord(RecordType.COMMIT, data, gtid))

    def _appended(self, lsn: int, gtids: BinlogState | Gtid | None) -> Appended:
        end = self.writer.end
        self.durable.add(lsn, end, gtids)
        if not self._options.background:
            self._work()
        return Appended(end, lsn)

    def sync_to(self, lsn: int) -> None:
        """
        Return when everything before *lsn* is durable; one sync serves all who wait.

        Raises:
            StoreFailed: the sync failed, now or before.
        """
        self._redo.sync_to(lsn)

    def sync(self) -> None:
        """Return when everything written so far is durable."""
        self.sync_to(self._redo.next_lsn)

    def wait_for(self, lsn: int) -> None:
        """Return when what lies before *lsn* is as safe as `flush_log_at_commit` promises."""
        if self._options.flush_log_at_commit == 1:
            self.sync_to(lsn)
        elif self._options.flush_log_at_commit == 2:
            self._redo.write_to(lsn)

    def switch_file(self, delete_domains: frozenset[int] = frozenset()) -> None:
        """
        End the active file where it is and go on in the next one (FLUSH BINARY LOGS).

        Args:
            delete_domains: domains that the next file's full state shall not have any more.

        Raises:
            GroupError, StoreFull, StoreFailed: as `append`.
            StateTooLarge: domains are to go, and the next file cannot hold what is left.

        Source: ibb-format 12.1, 12.2.
        """
        with self.writing:
            self.check()
            room, shape = self._redo.group_size_max, self._next_shape
            self._make_room(switch_bound(self.writer, delete_domains, shape, room))
            self._housekeeper.make_file(self.writer.file_no + 1)
            ended, page_size = self.writer.file_no, self.writer.page_size
            with self._redo.whole_or_failed():
                pages = self.writer.finish_file()
                self.sync()
                self._flusher.flush()
                self.files.truncate(ended, pages * page_size)
                self.writer.delete_domains(delete_domains)
                lsn = self.writer.begin_next_file()
            self.durable.add(lsn, self.writer.end, None)
            self.sync_to(lsn)
            self.durable.delete_domains(delete_domains)

    def reset(self, state: BinlogState) -> None:
        """
        Delete all files and begin anew at file 0 with *state* (RESET MASTER).

        Once this has begun it is finished, after a crash when the store is opened again. All
        groups are durable before they go: a commit that still waits for that is done.

        Raises:
            StateTooLarge: the state does not fit into a file, or into the log; nothing was done.
            StoreFull: there is no room to note that it is decided; nothing was done.
            StoreFailed: the store has stopped writing.

        Source: ibb-format 11.6, 12.3.
        """
        with self.writing:
            self.check()
            check_first_state(state, self._options, self._redo.group_size_max)
            self.sync()
            self._marker.write(state, self._redo.fail)
            self._stop_background()
            try:
                self._close_files()
                self._build()
                self.start()
            except BaseException as error:  # only an opening can tell then what is there
                self._redo.fail(error)  # which may be the new log
                raise

    def settle(self) -> None:
        """
        Bring what is written to the files and close those that are full.

        Raises:
            StoreFailed: the store has stopped writing.
        """
        self.check()
        self.sync()
        self._work()

    def needs(self) -> WriterNeeds:
        """
        Return which files the writer needs, without waiting for it.

        A moment later it may need less, but no older file: new pins are on the active one.
        """
        pins, oldest_open = self.writer.pins, self._housekeeper.oldest_open
        return WriterNeeds(oldest_open, pins.lowest_open(), pins.prepared())

    def remove_file(self, file_no: int) -> None:
        """Remove a file that nobody needs, durably, so that no later one can go before it."""
        self._disk.unlink(self.files.path(file_no))
        self.pages.forget(file_no)  # it is gone, whether or not that is certain
        self._disk.sync_dir(self._directory)

    def next_file(self, file_no: int) -> FileShape:
        """Return what a file is like, made if it is missing."""
        self._housekeeper.make_file_of_record(file_no)
        return self._next_shape

    def file_entered(self, file_no: int) -> None:
        """Learn that the writer has gone over to a file."""
        self._housekeeper.enter(file_no)

    def checkpoint(self) -> None:
        """Bring everything written to the files, durably; the caller holds `writing`."""
        self.room.checkpoint()

    def _make_room(self, bound: RecordBound) -> None:
        """Make sure that no record waits in the middle of its writing; raises as `append`."""
        try:
            self.room.make(bound)
        except DiskError as error:
            self._redo.fail(error)
            self.check()

    def _work(self) -> None:
        """Do the background's work in between."""
        try:
            self._log_syncer.sync_if_due()
            self._housekeeper.work()
        except StoreFull:
            return  # the next file will be asked for again when it is needed
        except DiskError as error:
            self._redo.fail(error)
            raise

    def _on_synced(self, lsn: int) -> None:
        self.durable.synced(lsn)
        self._synced_note.write(lsn)
        if len(self._fifo) >= FLUSH_PAGES_MIN:
            self._housekeeper.wake()

    def _stop_background(self) -> None:
        self._log_syncer.stop()
        self._housekeeper.stop()

    def _close_files(self) -> None:
        self._redo.close()
        self.files.close_all()
        self.pages.close()
