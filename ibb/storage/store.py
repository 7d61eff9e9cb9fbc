"""
The store: a binlog that programs and the relay publish into, and that readers follow.

`Store` is what the storage layer offers to programs; the engine below it writes. Calls may come
from any thread.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Self

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.dump_filter import DumpFilter, Verdict, check_position
from ibb.protocol.format_description import FormatDescription
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.protocol.gtid_event import GtidEvent, GtidFlag, read_gtid

from .binlog_files import list_files
from .clock import Clock, SystemClock
from .commit_position import CommitPosition
from .disk import Disk, Lock, OsDisk
from .domain_deletion import deletable_domains
from .engine import Appended, Engine
from .errors import GroupError, StoreBusy, StoreNotEmpty
from .file_name import binlog_name
from .format_catalogue import SIDECAR_NAME, FormatCatalogue
from .group_reader import GroupReader, StoredGroup
from .group_writer import GroupWriter
from .gtid_search import find_start
from .history import BinlogFileInfo
from .live_pages import LivePages
from .oob import OobForest
from .options import StoreOptions
from .position import Position
from .record import (
    OobReference,
    RecordType,
    XaComplete,
    XaPrepare,
    Xid,
    encode_commit_prefix,
    encode_oob_header,
    encode_xa_complete,
    encode_xa_prepare,
)
from .writer import NewRecord
from .xa import PreparedXa

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
        self._engine = Engine(disk, directory, options, clock)
        self._adopt()

    def _adopt(self) -> None:
        """Take over what the engine found when it opened the directory."""
        self._formats = FormatCatalogue(
            self.pages, (self._disk, f"{self._directory}/{SIDECAR_NAME}")
        )
        self._prepared: dict[Xid, PreparedXa] = dict(self._engine.opened.prepared_xa)

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
            store._engine.start()
            store._describe_format()
        except BaseException:
            lock.release()
            raise
        return store

    def close(self) -> None:
        """Make everything durable, write the last page, and give the directory up."""
        try:
            self._engine.close()
        finally:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Publishing

    def begin(self) -> GroupWriter:
        """Begin an event group; several may be open at a time."""
        self._engine.check()
        return GroupWriter(self, self._options.piece_size, self._engine.check)

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
        data = encode_commit_prefix([]) + event
        record = NewRecord(
            RecordType.COMMIT, data, on_start=lambda place: self.formats.add(place, event)
        )
        return _position(None, self._engine.append(record))

    def prepared(self) -> list[PreparedXa]:
        """Return the XA transactions that wait for their end, after a restart those before it."""
        with self._engine.writing:
            return list(self._prepared.values())

    def commit_prepared(
        self, xid: Xid, gtid: Gtid, *, gtid_event: bytes | None = None
    ) -> CommitPosition:
        """
        Publish a prepared XA transaction as *gtid*.

        Args:
            xid: its name.
            gtid: its id.
            gtid_event: its GTID event, without checksum; one is made if it is None.

        Raises:
            GroupError: no such transaction is prepared, or the event is of another GTID.
            StoreFull: there is no room.
            StoreFailed: the store has stopped writing.
        """
        if gtid_event is None:
            flags2 = GtidFlag.TRANSACTIONAL | GtidFlag.ALLOW_PARALLEL
            gtid_event = GtidEvent(gtid, int(self._clock.now()), flags2).encode()
        elif read_gtid(gtid_event)[0] != gtid:
            raise GroupError(f"the GTID event is not that of {gtid}")
        with self._engine.writing:
            payload = encode_commit_prefix([self._find_prepared(xid).oob]) + gtid_event
            appended = self._engine.append(
                NewRecord(
                    RecordType.XA_COMPLETE, encode_xa_complete(XaComplete(xid, rolled_back=False))
                ),
                NewRecord(RecordType.COMMIT, payload, gtid),
            )
            self._forget_prepared(xid)
        self._engine.wait_for(appended.lsn)
        return _position(gtid, appended)

    def rollback_prepared(self, xid: Xid) -> None:
        """
        Give a prepared XA transaction up.

        Raises:
            GroupError: no such transaction is prepared.
            StoreFull: there is no room.
            StoreFailed: the store has stopped writing.
        """
        with self._engine.writing:
            self._find_prepared(xid)
            complete = encode_xa_complete(XaComplete(xid, rolled_back=True))
            appended = self._engine.append(NewRecord(RecordType.XA_COMPLETE, complete))
            self._forget_prepared(xid)
        self._engine.wait_for(appended.lsn)

    def sync(self) -> None:
        """Return when everything written so far is durable."""
        self._engine.sync()

    # Administration

    def switch_file(self, delete_domains: Iterable[int] = ()) -> list[int]:
        """
        End the active file and go on in the next one (FLUSH BINARY LOGS [DELETE_DOMAIN_ID]).

        Args:
            delete_domains: domains to forget; no file may hold groups of them any more.

        Returns:
            Those of the domains that were not known.

        Raises:
            DomainInUse: a file may hold groups of a domain; nothing was done.
            StoreFull: there is no room.
            StoreFailed: the store has stopped writing.
        """
        with self._engine.writing:
            self._engine.sync()
            known, unknown = deletable_domains(self.pages, self.state(), delete_domains)
            self._engine.switch_file(known)
        return unknown

    def reset(self, state: BinlogState | None = None) -> None:
        """
        Delete all groups and begin anew (RESET MASTER); nobody may be reading.

        Args:
            state: GTID state to begin with.

        Raises:
            StoreBusy: transactions are open or prepared.
            StoreFailed: the store has stopped writing.
        """
        with self._engine.writing:
            if len(self._engine.writer.pins):
                raise StoreBusy("the binlog is in use by a transaction")
            self._engine.reset(state or BinlogState())
            self._adopt()
            self._describe_format()

    def set_binlog_state(self, state: BinlogState) -> None:
        """
        Set the GTID state of a store that holds no groups (SET GLOBAL gtid_binlog_state).

        Raises:
            StoreNotEmpty: it holds groups, or has a state.
        """
        with self._engine.writing:
            self._engine.sync()
            if len(self.state()):
                raise StoreNotEmpty
            self.reset(state)

    # Reading

    @property
    def pages(self) -> LivePages:
        """The pages, up to the durable end."""
        return self._engine.pages

    @property
    def formats(self) -> FormatCatalogue:
        """Which format description is in force where."""
        return self._formats

    @property
    def copies_set_aside(self) -> list[str]:
        """Files that opening had to clear something in were copied to these first."""
        return self._engine.opened.copies_set_aside

    def state(self) -> BinlogState:
        """Return the GTID state of everything durable."""
        return self._engine.durable.state()

    def end(self) -> Position:
        """Return the durable end."""
        return self._engine.durable.end

    def files(self) -> list[BinlogFileInfo]:
        """Return the files, oldest first, the one made in advance last."""
        return [
            BinlogFileInfo(binlog_name(file_no), file_no, self._engine.files.size(file_no))
            for file_no in list_files(self._disk, self._directory)
        ]

    def refresh(self) -> None:
        """Make what was written durable, since a reader waits for it."""
        self._engine.sync()

    def subscribe(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Have *wake* called from any thread when the durable end moves; return the way out."""
        return self._engine.durable.subscribe(wake)

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
        self._engine.sync()
        wanted: DumpFilter | None = None
        if start is None:
            place = Position(self.pages.first_file(), 0)
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

    # For group writers

    def write_oob(self, group: object, forest: OobForest, piece: bytes | memoryview) -> None:
        """Write one out-of-band piece of an open group."""
        with self._engine.writing:
            writer = self._engine.writer
            writer.pins.pin(group, writer.file_no)
            data = encode_oob_header(forest.next_node()) + piece
            self._engine.append(NewRecord(RecordType.OOB, data, on_start=forest.add))

    def commit_group(
        self, group: object, gtid: Gtid, lists: list[OobReference], payload: bytes
    ) -> CommitPosition:
        """Write the commit record of an open group."""
        record = NewRecord(RecordType.COMMIT, encode_commit_prefix(lists) + payload, gtid)
        with self._engine.writing:
            appended = self._engine.append(record)
            self._engine.writer.pins.unpin(group)
        return _position(gtid, appended)

    def prepare_group(
        self, group: object, xid: Xid, engines: int, oob: OobReference | None
    ) -> CommitPosition:
        """Write the prepare record of an open group; its pieces are all written."""
        if oob is None:
            raise GroupError("an empty group cannot be prepared")
        with self._engine.writing:
            if xid in self._prepared:
                raise GroupError(f"a transaction named {xid} is prepared already")
            pins = self._engine.writer.pins
            pins.prepare(group, xid)
            data = encode_xa_prepare(XaPrepare(engines, xid, oob))
            appended = self._engine.append(NewRecord(RecordType.XA_PREPARE, data))
            self._prepared[xid] = PreparedXa(xid, engines, oob, oob.first.file_no)
        return _position(None, appended)

    def forget_group(self, group: object) -> None:
        """Let go of the files that an open group referred to."""
        with self._engine.writing:
            self._engine.writer.pins.unpin(group)

    def wait_for(self, lsn: int) -> None:
        """Return when what lies before *lsn* is as safe as `flush_log_at_commit` promises."""
        self._engine.wait_for(lsn)

    def _find_prepared(self, xid: Xid) -> PreparedXa:
        prepared = self._prepared.get(xid)
        if prepared is None:
            raise GroupError(f"no transaction named {xid} is prepared")
        return prepared

    def _forget_prepared(self, xid: Xid) -> None:
        del self._prepared[xid]
        self._engine.writer.pins.unpin(xid)

    def _describe_format(self) -> None:
        """Note the opening, if this is a program's store."""
        if self._options.format_description == "own":
            own = FormatDescription.default(
                self._options.server_version, self._options.server_id, int(self._clock.now())
            )
            self._engine.sync_to(self.write_format_description(own.to_store()).lsn)


def _position(gtid: Gtid | None, appended: Appended) -> CommitPosition:
    return CommitPosition(gtid, appended.end.file_no, appended.end.offset, appended.lsn)
