"""
Purge: old files go, unless somebody needs them; the answer says who.

Files go oldest first, and the first that must stay ends the run. A file must stay while it, or a
later one that points into it, is needed by the writer, by an open or prepared transaction, by a
reader, or by a lease; and what was not to go is left whole, with the earlier files that its groups
have pieces in. Of these earlier files only such pieces count: groups that end there may have lost
their beginning. What stays begins with a GTID state; a file may have none where it was too small.
Source: ibb-format 5.2, 12.4.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import GtidPosition

from .clock import Clock
from .errors import DiskError, StoreFailed, UnknownFile
from .file_name import binlog_name, parse_binlog_name
from .gtid_search import TooOld, find_start
from .history import BinlogFileInfo
from .holds import HoldKind, Holds
from .leases import Lease, Leases
from .options import StoreOptions
from .page_source import PageSource
from .record import Xid
from .state_scan import read_state

IN_ACTIVE_USE = "the binlog file is in active use"
TOO_FEW_REPLICAS = "less than 'slave_connections_needed_for_purge' slaves have processed it"

_log = logging.getLogger(__name__)


class Need(NamedTuple):
    """Somebody needs all files from *file_no* on; *passes*: not for long once more is written."""

    file_no: int
    reason: str
    passes: bool = False


class PurgeResult(NamedTuple):
    """
    What a purge did.

    Attributes:
        removed: names of the files that are gone.
        kept: name of the file that was asked for and had to stay, or None.
        reasons: why it had to.
        lasting: those of the reasons that do not go away by writing on.
        lapsed: leases that were too old and hold nothing any more.
        freed: bytes of the files that are gone.
        failure: what ended it, or None.
    """

    removed: list[str]
    kept: str | None
    reasons: list[str]
    lasting: list[str]
    lapsed: list[Lease]
    freed: int
    failure: str | None = None


class PurgeSettings(NamedTuple):
    """When files go by themselves; the fields are those of `StoreOptions`."""

    binlog_expire_logs_seconds: int
    max_binlog_total_size: int
    slave_connections_needed_for_purge: int

    @classmethod
    def of(cls, options: StoreOptions) -> "PurgeSettings":
        """Return those of a store that is opened."""
        return cls(
            options.binlog_expire_logs_seconds,
            options.max_binlog_total_size,
            options.slave_connections_needed_for_purge,
        )


class WriterNeeds(NamedTuple):
    """
    What the writer knows.

    Attributes:
        oldest_open: files from here on are not closed yet.
        opened: lowest file that an open transaction refers to, or None.
        prepared: the files from which on prepared XA transactions have pieces, by their names.
    """

    oldest_open: int
    opened: int | None
    prepared: Sequence[tuple[Xid, int]]


class PurgeHost(NamedTuple):
    """
    What a purger needs of its store.

    Attributes:
        pages: returns the files' contents.
        files: lists them.
        modified_at: tells when one changed last, in seconds since 1970.
        writer_needs: what the writer needs now.
        remove: removes one, durably.
    """

    pages: Callable[[], PageSource]
    files: Callable[[], list[BinlogFileInfo]]
    modified_at: Callable[[int], float]
    writer_needs: Callable[[], WriterNeeds]
    remove: Callable[[int], None]


class Purger:
    """
    Removes files.

    Args:
        host: the store.
        holds: its readers.
        leases: its leases.
        settings: when files go by themselves.
        clock: tells how old they are.

    Attributes:
        settings: as above; may be replaced at any time, the next automatic purge goes by them.
        last_automatic: what the last automatic purge did, or None.
        tell: called with what each automatic purge did, from its thread; must not block.
    """

    def __init__(
        self,
        host: PurgeHost,
        holds: Holds,
        leases: Leases,
        settings: PurgeSettings,
        clock: Clock,
    ) -> None:
        self._host = host
        self._holds = holds
        self._leases = leases
        self._clock = clock
        self._turn = threading.Lock()
        self._is_closed = False
        self.settings = settings
        self.last_automatic: PurgeResult | None = None
        self.tell: Callable[[PurgeResult], None] = _tell_of_lapsed

    @contextmanager
    def kept_out(self) -> Iterator[None]:
        """Let nobody purge meanwhile; a purge that runs is waited for."""
        with self._turn:
            yield

    def close(self) -> None:
        """
        Remove nothing any more, nor change a lease: the directory will be somebody else's.

        A purge at work ends before that, as far as it came.
        """
        self._is_closed = True
        with self._turn:
            self._leases.close()

    def disown(self) -> None:
        """Remove nothing any more, see `Disownable`."""
        self._turn, self._is_closed = threading.Lock(), True
        self._leases.disown()

    def purge_to(self, name: str) -> PurgeResult:
        """
        Remove all files before the one named (PURGE BINARY LOGS TO).

        Raises:
            UnknownFile: there is no such file.
            DiskError: a file could not be removed.
            StoreFailed: the store is closed.
        """
        file_no = parse_binlog_name(name)
        files = self._host.files()
        if file_no is None or not files or file_no > files[-1].file_no:
            raise UnknownFile(name)
        return self._purge(lambda file, _: file.file_no < file_no)

    def purge_before(self, moment: float) -> PurgeResult:
        """
        Remove files last changed before a moment, in seconds since 1970 (PURGE ... BEFORE).

        Raises:
            DiskError: a file could not be removed.
            StoreFailed: the store is closed.
        """
        return self._purge(lambda file, _: self._host.modified_at(file.file_no) < moment)

    def purge_automatically(self, *, wait: bool = False) -> None:
        """
        Remove what the settings say, except what too few connected replicas have got past.

        Trouble is no reason to stop writing: `last_automatic` has it, and whoever is told.

        Args:
            wait: for another purge that is at work, or until all files are deleted; if not,
                nothing is done then. RESET MASTER waits for the thread that makes files.
        """
        expire, size_max, replicas_needed = self.settings
        if not expire and not size_max:
            return
        now = self._clock.now()

        def wanted(file: BinlogFileInfo, size: int) -> bool:
            if size_max and size > size_max:
                return True
            return bool(expire) and self._host.modified_at(file.file_no) < now - expire

        if not self._turn.acquire(blocking=wait):
            return
        removed: list[BinlogFileInfo] = []
        lapsed: list[Lease] = []
        try:
            result = self._purge_in_turn(wanted, replicas_needed, removed, lapsed)
        except (DiskError, FormatError, StoreFailed) as error:
            result = _result(removed, lapsed)._replace(failure=str(error))
        finally:
            self._turn.release()
        self.last_automatic = result
        try:
            self.tell(result)
        except Exception:  # noqa: BLE001 - all writing may depend on the thread that purges
            _log.exception("what an automatic purge did could not be told")

    def needs(self) -> list[Need]:
        """Return who needs files, and from which on; leases that lapsed need none."""
        writer, pages = self._host.writer_needs(), self._host.pages()
        needs = [Need(writer.oldest_open, IN_ACTIVE_USE, passes=True)]
        active = pages.header(pages.last_file())
        if active is not None:
            needs.append(
                Need(active.lowest_oob_file, "the active file may refer to it", passes=True)
            )
        needs.extend(self._last_state_needs(pages))
        if writer.opened is not None:
            needs.append(Need(writer.opened, "an open transaction refers to it"))
        needs.extend(
            Need(file_no, f"the prepared XA transaction {xid} refers to it")
            for xid, file_no in writer.prepared
        )
        needs.extend(
            Need(self._lowered(hold.file_no), f"it is in use by {hold.kind.value}: {hold.name}")
            for hold in self._holds.all()
        )
        needs.extend(
            Need(self._needed_by(lease), f"lease '{lease.name}' needs it")
            for lease in self._leases.all()
            if not lease.lapsed
        )
        return needs

    def _purge(self, wanted: Callable[[BinlogFileInfo, int], bool]) -> PurgeResult:
        with self._turn:
            return self._purge_in_turn(wanted, 0, [], [])

    def _purge_in_turn(
        self,
        wanted: Callable[[BinlogFileInfo, int], bool],
        replicas_needed: int,
        removed: list[BinlogFileInfo],
        lapsed: list[Lease],
    ) -> PurgeResult:
        """Purge; *removed* and *lapsed* are filled, for who wants to know after an error, too."""
        lapsed += self._leases.lapse()
        going = self._wanted_files(wanted)
        if not going:
            return _result(removed, lapsed)
        with self._holds.frozen():  # a reader that begins now will find what is left
            border = self._border(going)
            needs = [*self.needs(), *self._left_whole(going, border, replicas_needed)]
            stays = min(need.file_no for need in needs)
            needs += self._state_before(min(stays, border))
            for file in going:
                found = [need for need in needs if file.file_no >= need.file_no]
                if found:
                    return _result(removed, lapsed)._replace(
                        kept=file.name,
                        reasons=list(dict.fromkeys(need.reason for need in found)),
                        lasting=list(dict.fromkeys(n.reason for n in found if not n.passes)),
                    )
                if self._is_closed:
                    raise StoreFailed(RuntimeError("it is closed"))
                self._host.remove(file.file_no)
                removed.append(file)
        return _result(removed, lapsed)

    def _wanted_files(self, wanted: Callable[[BinlogFileInfo, int], bool]) -> list[BinlogFileInfo]:
        """Return the files that shall go if nobody needs them, oldest first."""
        files = self._host.files()
        total = sum(file.size for file in files)
        going = []
        for file in files:
            if not wanted(file, total):
                break
            going.append(file)
            total -= file.size
        return going

    def _border(self, going: list[BinlogFileInfo]) -> int:
        """Return the first file behind those that go; there may be none of the next number."""
        last = going[-1].file_no
        behind = (file.file_no for file in self._host.files() if file.file_no > last)
        return min(behind, default=last + 1)

    def _left_whole(
        self, going: list[BinlogFileInfo], border: int, replicas_needed: int
    ) -> Iterator[Need]:
        """Yield what the files that do not go need, those that wait for replicas among them."""
        stays = border
        for file in going:
            if replicas_needed and self._replicas_past(file.file_no) < replicas_needed:
                stays = file.file_no
                yield Need(stays, TOO_FEW_REPLICAS)
                break
        lowered = self._lowered(stays)
        if lowered < stays < self._host.pages().last_file():  # the writer needs what is active
            yield Need(
                lowered, f"groups in {binlog_name(stays)} may have pieces in it", passes=True
            )

    def _state_before(self, file_no: int) -> Iterator[Need]:
        """Yield what tells the GTID state at the beginning of the oldest file that stays."""
        pages = self._host.pages()
        told = _file_with_state(pages, file_no)
        if told < file_no:
            text = f"{binlog_name(file_no)} begins without a GTID state: it was too large"
            yield Need(told, text, passes=file_no == pages.last_file())  # it may come yet

    def _last_state_needs(self, pages: PageSource) -> Iterator[Need]:
        """
        Yield what the last GTID state may refer to, if it is not in the active file.

        It names the prepared XA transactions of then, even those that were ended since.
        """
        last = pages.last_file()
        told = _file_with_state(pages, last)
        header = pages.header(told) if told < last else None
        lowest = told if header is None else min(header.lowest_oob_file, header.xa_reference)
        if lowest < told:
            text = f"{binlog_name(told)}, which has the last GTID state, may refer to it"
            yield Need(lowest, text, passes=True)

    def _replicas_past(self, file_no: int) -> int:
        return sum(
            hold.kind is HoldKind.REPLICA and hold.file_no > file_no for hold in self._holds.all()
        )

    def _lowered(self, file_no: int) -> int:
        """Return the lowest file that a reader of *file_no* may go back to."""
        try:
            header = self._host.pages().header(file_no)
        except (FormatError, DiskError):
            return self._host.pages().first_file()  # nobody knows: nothing may go
        return file_no if header is None else min(file_no, header.lowest_oob_file)

    def _needed_by(self, lease: Lease) -> int:
        """Return the file from which on the holder of a lease would read."""
        try:
            place = find_start(self._host.pages(), GtidPosition.parse(lease.position))
        except (TooOld, FormatError, DiskError):
            return self._host.pages().first_file()  # nothing more may go
        return self._lowered(place.position.file_no)


def _file_with_state(pages: PageSource, file_no: int) -> int:
    """Return the last file up to one that begins with a state, else the oldest."""
    while file_no > pages.first_file() and not _begins_with_state(pages, file_no):
        file_no -= 1
    return file_no


def _begins_with_state(pages: PageSource, file_no: int) -> bool:
    try:
        return read_state(pages, file_no, 1) is not None
    except (FormatError, DiskError):
        return False  # a restart would find out the same


def _result(removed: list[BinlogFileInfo], lapsed: list[Lease]) -> PurgeResult:
    names, freed = [file.name for file in removed], sum(file.size for file in removed)
    return PurgeResult(names, None, [], [], lapsed, freed)


def _tell_of_lapsed(result: PurgeResult) -> None:
    for lease in result.lapsed:
        text = "lease '%s' has lapsed, not renewed in %g seconds: it holds no file any more"
        _log.warning(text, lease.name, lease.age_limit)
