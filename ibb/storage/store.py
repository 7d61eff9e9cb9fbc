"""
The store: a binlog that programs and the relay publish into, and that readers follow.

What the storage layer offers to programs; the engine below writes. Calls come from any thread.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.group_run import GroupRun
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.protocol.gtid_event import encode_gtid_event

from .backup import Backup, copy_store
from .clock import Clock, SystemClock, event_time
from .commit_position import CommitPosition
from .disk import Disk
from .domain_deletion import deletable_domains
from .engine import Engine
from .errors import StoreBusy, StoreFailed, StoreNotEmpty
from .file_name import binlog_name
from .forks import disown_in_children
from .format_catalogue import SIDECAR_NAME, FormatCatalogue
from .format_writer import FormatWriter
from .group_committer import GroupCommitter
from .group_head import check_gtid, transaction_head
from .group_reader import StoredGroup
from .group_shape import TRANSACTION_FLAGS2
from .group_writer import GroupWriter
from .groups_from import groups_from
from .history import BinlogFileInfo
from .holds import Hold, HoldKind, Holds
from .leases import Leases
from .live_pages import LivePages
from .options import StoreOptions
from .position import Position
from .purge import PurgeHost, Purger, PurgeResult, PurgeSettings
from .record import Xid
from .redo_segment import damaged_headers
from .rising_note import RisingNote
from .synced_note import SyncedNote
from .taken_directory import TakenDirectory
from .xa import PreparedXa


class Store:
    """
    An open store; made by `Store.open`. A context manager that closes it.

    It belongs to the process that opened it, a forked child can only close it, and to the
    directory as it was then: neither `chdir` nor a directory moved away leads it to another one.

    Attributes:
        commits: writes them; its `gate` stands behind each.
        leases: named positions for which files are kept.
        purger: lets old files go by themselves.
        piece_size: bytes of events from which on a group is stored in pieces.
        generation: how often it was begun anew; pages that are kept of it belong to one.
        damaged_headers: files of the redo log that opening passed over.
        rising_note: of files that searches need not look at.
    """

    def __init__(self, taken: TakenDirectory, options: StoreOptions, clock: Clock) -> None:
        self.generation = 0
        self._taken = taken
        self._is_disowned = False
        self._disk, self._directory = disk, directory = taken.disk, taken.path
        self._options = options
        self.piece_size = options.piece_size
        self._clock = clock
        self.damaged_headers = damaged_headers(disk, directory)
        self._engine = Engine(
            disk, directory, options, clock,
            lambda: self.purger.purge_automatically(),  # noqa: PLW0108 - not there yet
            lambda: self.leases.forget_history(),  # noqa: PLW0108 - nor is this
            SyncedNote(taken.lock),
        )  # fmt: skip
        self.commits = GroupCommitter(self._engine)
        self._holds = Holds()
        self.leases = Leases(disk, directory, clock, self._holds.frozen, lambda: self.pages)
        host = PurgeHost(
            lambda: self.pages,
            self.files,
            lambda file_no: self._disk.modified_at(self._engine.files.path(file_no)),
            self._engine.needs,
            self._engine.remove_file,
        )
        self.purger = Purger(host, self._holds, self.leases, PurgeSettings.of(options), clock)
        self._adopt()

    def _adopt(self) -> None:
        """Take over what the engine found when it opened the directory."""
        self._formats = FormatCatalogue(self.pages, (self._disk, self.sidecar))
        self.rising_note = RisingNote(self._disk, self._directory, self.pages)
        self._format_writer = FormatWriter(self._engine, self._formats, self._options, self._clock)

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
            disk: where the directory is; None: the operating system's file system.
            clock: the time; None: the system's.

        Raises:
            StoreLocked: somebody else writes the directory.
            FormatError: a file or the redo log is damaged where it must not be.
            RecoveryError: the redo log and the files contradict each other.
            StoreFull, DiskError: there is no room for the first files; it cannot be used.
        """
        taken = TakenDirectory(str(path), disk)
        store: Store | None = None
        try:
            store = cls(taken, options or StoreOptions(), clock or SystemClock())
            store._engine.start()
            store._format_writer.write_own()
        except BaseException:
            if store is not None:
                store._engine.abandon()
            taken.give_up()
            raise
        disown_in_children(store)
        return store

    def close(self) -> None:
        """Make everything durable, write the last page, and give the directory up."""
        if self._is_disowned:
            return
        self.rising_note.close()
        try:
            self._engine.close()
        finally:
            self.purger.close()
            self._taken.give_up()

    def disown(self) -> None:
        """Write nothing any more, see `Disownable`."""
        self._is_disowned = True
        self._engine.disown()
        self.purger.disown()
        self.rising_note.disown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Publishing

    def begin(self) -> GroupWriter:
        """Begin an event group; several may be open at a time."""
        self._engine.check()
        self._format_writer.write_own()
        return GroupWriter(self.commits, self.piece_size, self._engine.check)

    def commit_run(self, groups: GroupRun) -> CommitPosition:
        """
        Publish whole groups in order, many at a time; as `GroupWriter.commit` with *wait* False.

        Args:
            groups: at least one, each smaller than `piece_size`; where there is no room for all
                (StoreFull), those before are stored.
        """
        self._engine.check()
        self._format_writer.write_own()
        return self.commits.commit_run(groups)

    def write_format_description(self, event: bytes) -> CommitPosition:
        """
        Write a record that holds only a format description, as a server does when it starts.

        Args:
            event: in the stored form, see `FormatDescription.to_store`.

        Raises:
            GroupError, StoreFull: it is too long; there is no room.
            DiskError, StoreFailed: it could not be noted; the store has stopped writing.
        """
        return self._format_writer.write(event)

    def prepared(self) -> list[PreparedXa]:
        """Return the XA transactions that wait for their end, after a restart those before it."""
        return self.commits.prepared()

    def commit_prepared(
        self, xid: Xid, gtid: Gtid, *, gtid_event: bytes | None = None
    ) -> CommitPosition:
        """
        Publish a prepared XA transaction as *gtid*.

        Args:
            xid: its name.
            gtid: its id.
            gtid_event: its GTID event, without checksum; one is made if it is None. A position in
                its header is stored as 0.

        Raises:
            GroupError: no such transaction is prepared; the GTID is out of range; the event is of
                another GTID or no transaction, or damaged, or too long.
            StoreFull, StoreFailed: there is no room; the store has stopped writing.
        """
        check_gtid(gtid)
        if gtid_event is None:
            gtid_event = encode_gtid_event(gtid, event_time(self._clock), TRANSACTION_FLAGS2)
        else:
            gtid_event = transaction_head(gtid, gtid_event)
        return self.commits.commit_prepared(xid, gtid, gtid_event)

    def rollback_prepared(self, xid: Xid) -> None:
        """Give a prepared XA transaction up; raises as `commit_prepared`."""
        self.commits.rollback_prepared(xid)

    def wait_for(self, position: CommitPosition) -> None:
        """
        Return when a commit that did not wait is as safe as `flush_log_at_commit` promises.

        If the groups were deleted by `reset` meanwhile it returns as well: they were durable first.

        Raises:
            StoreFailed: the sync failed; what became of the commit is unknown.
        """
        self.commits.wait_for(position)

    def sync(self) -> None:
        """Return when everything written so far is durable."""
        self._engine.sync()

    # Administration

    def switch_file(self, delete_domains: Iterable[int] = ()) -> list[int]:
        """
        End the active file and go on in the next one (FLUSH BINARY LOGS [DELETE_DOMAIN_ID]).

        Args:
            delete_domains: domains to forget; no file may hold groups of them any more. Those
                that were not known are returned.

        Raises:
            DomainInUse: a file may hold groups of a domain; nothing was done.
            GroupError, StateTooLarge, StoreFull: what is left of the state is too large for the
                log, or for the next file; there is no room. Nothing was done.
            StoreFailed: the store has stopped writing.
        """
        with self._engine.writing:
            self._engine.sync()
            known, unknown = deletable_domains(self.pages, self.state(), delete_domains)
            self._engine.switch_file(known)
        return unknown

    def reset(self, state: BinlogState | None = None) -> None:
        """
        Delete all groups and begin anew (RESET MASTER), with *state* as GTID state.

        Raises:
            StoreBusy: transactions are open or prepared, or somebody reads.
            GroupError, StateTooLarge: the state has a GTID out of range, or does not fit into a
                file; nothing was done.
            StoreFailed: the store has stopped writing.
        """
        for gtid in state.entries() if state is not None else ():
            check_gtid(gtid, seq_min=0)
        with self._engine.writing, self.purger.kept_out(), self._holds.frozen():
            if len(self._engine.writer.pins):
                raise StoreBusy("the binlog is in use by a transaction")
            self._holds.check_free()
            with self.rising_note.closing():
                self._engine.reset(state or BinlogState())
            self.generation += 1  # not before the old files are gone: they count as those before
            self._adopt()
            self._format_writer.write_own()

    def set_binlog_state(self, state: BinlogState) -> None:
        """
        Set the GTID state of a store that holds no groups (SET GLOBAL gtid_binlog_state).

        Raises StoreNotEmpty if it holds groups, or has a state; otherwise as `reset`.
        """
        with self._engine.writing:
            self._engine.sync()
            if len(self.state()):
                raise StoreNotEmpty
            self.reset(state)

    def purge_to(self, name: str) -> PurgeResult:
        """
        Remove all files before the one named, as far as nobody needs them.

        Raises:
            UnknownFile: there is no such file.
            DiskError: a file could not be removed.
        """
        self._engine.settle()
        return self.purger.purge_to(name)

    def purge_before(self, moment: float) -> PurgeResult:
        """Remove files last changed before *moment*, in seconds since 1970; as `purge_to`."""
        self._engine.settle()
        return self.purger.purge_before(moment)

    def backup(self, target: str | Path) -> Backup:
        """
        Copy the store as it is now, while commits go on; return state and end of the copy.

        Args:
            target: a directory that is new or empty; it will be a store by itself.

        Raises:
            BackupError: *target* is not empty, or a file of the store is missing.
            FormatError: a page that was copied is damaged; the copy is not whole.
            DiskError: the copy could not be written.
        """
        self.refresh()
        with self.hold(HoldKind.BACKUP, str(target)) as hold:
            with self._engine.writing:
                self.refresh()
                end, state = self.end(), self.state()
            return copy_store(self, self._disk, str(target), Backup(end, state), hold)

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
    def sidecar(self) -> str:
        """Path of the sidecar of format descriptions."""
        return f"{self._directory}/{SIDECAR_NAME}"

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
        """Return the files, oldest first, the one made in advance last; not those purged now."""
        return [BinlogFileInfo(binlog_name(n), n, size) for n, size in self._engine.files.sizes()]

    def is_still(self, generation: int) -> bool:
        """Tell whether it was not begun anew since then, which it is while nobody reads."""
        return self.generation == generation

    def refresh(self) -> None:
        """Make what was written durable for a reader; after a failure there is no more for it."""
        with suppress(StoreFailed):
            self._engine.sync()

    def subscribe(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Have *wake* called when there may be more to read, see `History.subscribe`."""
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
        self.refresh()
        with self.hold(HoldKind.READER, "Store.reader") as hold:
            yield from groups_from(self, start, hold)

    def hold(self, kind: HoldKind, name: str) -> Hold:
        """Keep all files from purge, for *name*, until the hold is moved on or released."""
        return self._holds.take(kind, name, self.pages.first_file)
