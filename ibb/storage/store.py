"""
The store: a binlog that programs and the relay publish into, and that readers follow.

It puts the parts together: the writer fills pages in the page FIFO and logs every change, the
redo log makes them certain, the durable offset says how far readers may look, the housekeeper
brings full pages to the files. Calls may come from any thread; one record is written at a time.
"""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.dump_filter import DumpFilter, Verdict, check_position
from ibb.protocol.format_description import FormatDescription
from ibb.protocol.gtid import Gtid, GtidPosition

from .binlog_files import BinlogFiles, list_files
from .clock import Clock, SystemClock
from .commit_position import CommitPosition
from .disk import Disk, Lock, OsDisk
from .durable import DurableOffset, PendingLsn
from .errors import DiskError, GroupError, StoreFailed, StoreFull
from .file_name import binlog_name
from .format_catalogue import SIDECAR_NAME, FormatCatalogue
from .group_reader import GroupReader, StoredGroup
from .group_writer import GroupWriter
from .gtid_search import find_start
from .history import BinlogFileInfo
from .housekeeper import Housekeeper
from .live_pages import LivePages
from .mini_transaction import bound_of
from .oob import OobForest
from .opening import open_writer
from .options import STATE_BYTES_MAX, StoreOptions
from .page_fifo import PageFifo
from .page_flusher import PageFlusher
from .position import Position
from .record import RecordType, encode_commit_prefix, encode_oob_header
from .redo import RedoLog

LOCK_NAME = "ibb.lock"


class Store:
    """An open store; made by `Store.open`. A context manager that closes it."""

    def __init__(
        self, disk: Disk, directory: str, options: StoreOptions, clock: Clock, lock: Lock
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._options = options
        self._clock = clock
        self._lock = lock
        self._writing = threading.RLock()
        self._closed = False
        self._fifo = PageFifo(options.fifo_pages_max)
        self._files = BinlogFiles(disk, directory)
        self._redo = RedoLog(disk, directory, options.redo_segment_size, self._on_synced)
        opened = open_writer(disk, directory, options, self._fifo, self._redo, self._files, self)
        self._writer = opened.writer
        self._durable = DurableOffset(opened.writer.end, opened.state)
        self.pages = LivePages(self._fifo, self._durable, disk, directory)
        self.formats = FormatCatalogue(self.pages, (disk, f"{directory}/{SIDECAR_NAME}"))
        self.copies_set_aside = opened.copies_set_aside
        self._taken_over = opened.taken_over
        self._flusher = PageFlusher(self._fifo, self._files, self._redo)
        self._housekeeper = Housekeeper(
            self._fifo,
            self._files,
            self._redo,
            self._flusher,
            file_size=options.file_pages * options.page_size,
            active=self._writer.file_no,
            prepared=opened.prepared,
        )

    @classmethod
    def open(
        cls,
        path: str | Path,
        options: StoreOptions | None = None,
        *,
        disk: Disk | None = None,
        clock: Clock | None = None,
    ) -> "Store":
        """
        Open a store, made if the directory is new or empty, recovered if it was not closed.

        Args:
            path: the directory.
            options: settings; those of files that exist already stay as they are.
            disk: the file system, for tests.
            clock: the time, for tests.

        Raises:
            StoreLocked: somebody else writes the directory.
            FormatError: a file or the redo log is damaged where it must not be.
            RecoveryError: the redo log and the files contradict each other.
            StoreFull: there is no room for the first files.
            DiskError: the directory cannot be used.
        """
        disk = disk or OsDisk()
        directory = str(path)
        disk.make_dir(directory)
        lock = disk.lock(f"{directory}/{LOCK_NAME}")
        try:
            store = cls(disk, directory, options or StoreOptions(), clock or SystemClock(), lock)
            store._start()
        except BaseException:
            lock.release()
            raise
        return store

    def _start(self) -> None:
        with self._writing:
            self._checkpoint()
        if self._taken_over:
            self.switch_file()
        if self._options.background:
            self._housekeeper.start()
            self._housekeeper.wake()
        if self._options.format_description == "own":
            own = FormatDescription.default(
                self._options.server_version, self._options.server_id, int(self._clock.now())
            )
            self.sync_to(self.write_format_description(own.to_store()).lsn)

    # Publishing

    def begin(self) -> GroupWriter:
        """Begin an event group; several may be open at a time."""
        self._check()
        return GroupWriter(self, self._options.piece_size, self._check)

    def write_format_description(self, event: bytes) -> CommitPosition:
        """
        Write a record that holds only a format description, as a server does when it starts.

        Args:
            event: in the stored form, see `FormatDescription.to_store`.

        Raises:
            StoreFull: there is no room.
            StoreFailed: the store has stopped writing.
        """
        FormatDescription.parse(event, has_checksum=False)
        return self._append(
            RecordType.COMMIT,
            encode_commit_prefix([]) + event,
            on_start=lambda place: self.formats.add(place, event),
        )

    def write_oob(self, group: object, forest: OobForest, piece: bytes | memoryview) -> None:
        """Write one out-of-band piece of an open group; for `GroupWriter`."""
        with self._writing:
            self._writer.pin(group)
            data = encode_oob_header(forest.next_node()) + piece
            self._append(RecordType.OOB, data, on_start=forest.add)

    def commit_group(
        self, group: object, gtid: Gtid, forest: OobForest, payload: bytes
    ) -> CommitPosition:
        """Write the commit record of an open group; for `GroupWriter`."""
        lists = [forest.reference()] if forest.count else []
        data = encode_commit_prefix(lists) + payload
        with self._writing:
            position = self._append(RecordType.COMMIT, data, gtid=gtid)
            self._writer.unpin(group)
        return position

    def forget_group(self, group: object) -> None:
        """Let go of the files that an open group referred to; for `GroupWriter`."""
        with self._writing:
            self._writer.unpin(group)

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

    def switch_file(self) -> None:
        """
        End the active file where it is and go on in the next one (FLUSH BINARY LOGS).

        Source: ibb-format 12.1.
        """
        with self._writing:
            self._check()
            self._make_room(self._writer.page_size)
            self._housekeeper.make_file(self._writer.file_no + 1)
            ended, page_size = self._writer.file_no, self._writer.page_size
            try:
                pages = self._writer.finish_file()
                self.sync()
                self._flusher.flush()
                self._files.truncate(ended, pages * page_size)
                lsn = self._writer.begin_next_file()
            except BaseException as error:
                self._redo.fail(error)
                raise
            self._durable.add(PendingLsn(lsn, self._writer.end, None))
            self.sync_to(lsn)

    def close(self) -> None:
        """
        Make everything durable, write the last page, and give the directory up.

        Raises:
            StoreFailed: the store had failed; what is not durable is lost.
        """
        if self._closed:
            return
        self._closed = True
        try:
            with self._writing:
                self._housekeeper.stop()
                if self._redo.failure is None:
                    self._checkpoint()
        finally:
            self._redo.close()
            self._files.close_all()
            self.pages.close()
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Reading

    def state(self) -> BinlogState:
        """Return the GTID state of everything durable."""
        return self._durable.state()

    def end(self) -> Position:
        """Return the durable end."""
        return self._durable.end

    def files(self) -> list[BinlogFileInfo]:
        """Return the files, oldest first, the one made in advance last."""
        return [
            BinlogFileInfo(binlog_name(file_no), file_no, self._files.size(file_no))
            for file_no in list_files(self._disk, self._directory)
        ]

    def refresh(self) -> None:
        """Make what was written durable, since a reader waits for it."""
        self.sync()

    def subscribe(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Have *wake* called from any thread when the durable end moves; return the way out."""
        return self._durable.subscribe(wake)

    def reader(self, start: str | GtidPosition | None = None) -> Iterator[StoredGroup]:
        """
        Yield the groups behind a GTID position up to the end at the time of asking.

        Each group's pieces must be taken before the next group is asked for.

        Args:
            start: the last GTID had in each domain; None: from the oldest group there is.

        Raises:
            SqlError: 1236, the position is unknown here.
            TooOld: files that the position needs have been purged.
            FormatError: the binlog is damaged; names file and page.
        """
        self.sync()
        if start is None:
            first = self.pages.first_file()
            place, wanted = Position(first, self.page_size(first)), None
        else:
            position = GtidPosition.parse(start) if isinstance(start, str) else start.copy()
            unknown = check_position(self.state(), position)
            found = find_start(self.pages, position)
            place = found.position
            wanted = DumpFilter(position, found.state, empty_domains=unknown, state_now=self.state)
        reader, end = GroupReader(self.pages, place), self.end()
        while (group := reader.next()) is not None and group.position < end:
            if group.gtid is None or wanted is None or wanted.wants(group.gtid) is Verdict.SEND:
                yield group

    def page_size(self, file_no: int) -> int:
        """Return the bytes a page of a file that has a header."""
        header = self.pages.header(file_no)
        assert header is not None
        return header.page_size

    # For the writer: its files

    def next_file_pages(self, file_no: int) -> tuple[int, int, int]:
        """Return pages, page size and interval in pages of a file, made if it is missing."""
        self._housekeeper.make_file(file_no)
        page_size = self._options.page_size
        return self._files.size(file_no) // page_size, page_size, self._options.interval_pages

    def file_entered(self, file_no: int) -> None:
        """Learn that the writer has gone over to a file."""
        self._housekeeper.enter(file_no)

    # The write path

    def _append(
        self,
        record_type: RecordType,
        data: bytes,
        *,
        gtid: Gtid | None = None,
        on_start: Callable[[Position], None] | None = None,
    ) -> CommitPosition:
        with self._writing:
            self._check()
            self._make_room(len(data))
            try:
                _, lsn = self._writer.append(record_type, data, gtid=gtid, on_start=on_start)
            except BaseException as error:
                self._redo.fail(error)  # pages in memory may hold half a record
                raise
            end = self._writer.end
            self._durable.add(PendingLsn(lsn, end, gtid))
            if not self._options.background:
                self._housekeep()
        return CommitPosition(gtid, end.file_no, end.offset, lsn)

    def _make_room(self, record_bytes: int) -> None:
        """Make sure that a record can be written without waiting in the middle of it."""
        writer = self._writer
        state_bytes = writer.state_bytes_max
        bound = bound_of(record_bytes, state_bytes, writer.page_size, writer.interval)
        if state_bytes > STATE_BYTES_MAX or bound.redo_bytes > self._redo.group_size_max:
            raise GroupError(
                f"a record of {record_bytes} bytes with GTID states of up to {state_bytes} bytes "
                "is too large: too many (domain, server) pairs, or too short a state interval"
            )
        if writer.pages_left() <= bound.pages:
            self._housekeeper.make_file(writer.file_no + 1)
        if self._redo.wants_write:
            self._redo.write_to(self._redo.next_lsn)
        if not self._redo.fits(bound.redo_bytes):
            self._checkpoint()
            self._redo.begin_next_segment()
        if self._fifo.is_full:
            self.sync()
            self._flusher.flush()

    def _checkpoint(self) -> None:
        """Bring everything written to the files, durably; the caller holds the write lock."""
        self.sync()
        try:
            self._flusher.flush()
            tail = self._writer.tail
            if tail is not None and not tail.flushed_clean:
                self._flusher.flush_partial(tail)
            self._files.sync_all()
        except DiskError as error:
            self._redo.fail(error)
            raise

    def _housekeep(self) -> None:
        """Do the background's work in between."""
        try:
            self._housekeeper.work()
        except StoreFull:
            return  # the next file will be asked for again when it is needed
        except DiskError as error:
            self._redo.fail(error)
            raise

    def _on_synced(self, lsn: int) -> None:
        self._durable.synced(lsn)
        self._housekeeper.wake()

    def _check(self) -> None:
        if self._closed:
            raise StoreFailed(RuntimeError("it is closed"))
        if self._redo.failure is not None:
            raise StoreFailed(self._redo.failure) from self._redo.failure
