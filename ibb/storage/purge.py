"""
Purge: old files go, unless somebody needs them; the answer says who.

Files go oldest first, and the first that must stay ends the run. A file must stay while it, or a
later one that points into it, is needed by the writer, by an open or prepared transaction, by a
reader, or by a lease. Source: ibb-format 12.4.
"""

from collections.abc import Callable
from typing import NamedTuple

from ibb.protocol.gtid import GtidPosition

from .errors import UnknownFile
from .file_name import parse_binlog_name
from .gtid_search import TooOld, find_start
from .history import BinlogFileInfo
from .holds import HoldKind, Holds
from .leases import Lease, Leases
from .page_source import PageSource

IN_ACTIVE_USE = "the binlog file is in active use"
TOO_FEW_REPLICAS = "less than 'slave_connections_needed_for_purge' slaves have processed it"


class Need(NamedTuple):
    """Somebody needs all files from *file_no* on."""

    file_no: int
    reason: str


class PurgeResult(NamedTuple):
    """
    What a purge did.

    Attributes:
        removed: names of the files that are gone.
        kept: name of the file that was asked for and had to stay, or None.
        reasons: why it had to.
        lapsed: leases that were too old and hold nothing any more.
    """

    removed: list[str]
    kept: str | None
    reasons: list[str]
    lapsed: list[Lease]


class WriterNeeds(NamedTuple):
    """
    What the writer knows.

    Attributes:
        oldest_open: files from here on are not closed yet.
        pinned: lowest file that an open transaction refers to, or None.
        prepared: the same of prepared XA transactions.
    """

    oldest_open: int
    pinned: int | None
    prepared: int | None


class PurgeHost(NamedTuple):
    """
    What a purger needs of its store.

    Attributes:
        pages: the files' contents.
        files: lists them.
        modified_at: tells when one changed last, in seconds since 1970.
        writer_needs: what the writer needs now.
        remove: removes one, durably.
    """

    pages: PageSource
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
    """

    def __init__(self, host: PurgeHost, holds: Holds, leases: Leases) -> None:
        self._host = host
        self._holds = holds
        self._leases = leases

    def purge_to(self, name: str) -> PurgeResult:
        """
        Remove all files before the one named (PURGE BINARY LOGS TO).

        Raises:
            UnknownFile: there is no such file.
            DiskError: a file could not be removed.
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
        """
        return self._purge(lambda file, _: self._host.modified_at(file.file_no) < moment)

    def purge_automatically(
        self, *, before: float | None, total_size: int | None, replicas_needed: int
    ) -> PurgeResult:
        """
        Remove what the settings say, except what too few connected replicas have got past.

        Args:
            before: files last changed before this moment; None: age does not matter.
            total_size: bytes that all files may take; None: size does not matter.
            replicas_needed: connected replicas that must be past a file.

        Raises:
            DiskError: a file could not be removed.
        """

        def wanted(file: BinlogFileInfo, size: int) -> bool:
            if total_size is not None and size > total_size:
                return True
            return before is not None and self._host.modified_at(file.file_no) < before

        return self._purge(wanted, replicas_needed)

    def needs(self) -> list[Need]:
        """Return who needs files, and from which on; leases that lapsed need none."""
        writer, pages = self._host.writer_needs(), self._host.pages
        needs = [Need(writer.oldest_open, IN_ACTIVE_USE)]
        active = pages.header(pages.last_file())
        if active is not None:
            needs.append(Need(active.lowest_oob_file, "the active file may refer to it"))
        if writer.pinned is not None:
            needs.append(Need(writer.pinned, "an open transaction refers to it"))
        if writer.prepared is not None:
            needs.append(Need(writer.prepared, "a prepared XA transaction refers to it"))
        for hold in self._holds.all():
            reason = f"it is in use by {hold.kind.value}"
            if hold.kind is not HoldKind.REPLICA:
                reason = f"{reason}: {hold.name}"
            needs.append(Need(self._lowered(hold.file_no), reason))
        needs.extend(
            Need(self._needed_by(lease), f"lease '{lease.name}' needs it")
            for lease in self._leases.all()
            if not lease.lapsed
        )
        return needs

    def _purge(
        self, wanted: Callable[[BinlogFileInfo, int], bool], replicas_needed: int = 0
    ) -> PurgeResult:
        lapsed = self._leases.lapse()
        removed: list[str] = []
        with self._holds.frozen():  # a reader that begins now will find what is left
            needs, files = self.needs(), self._host.files()
            total = sum(file.size for file in files)
            for file in files:
                if not wanted(file, total):
                    break
                reasons = [need.reason for need in needs if file.file_no >= need.file_no]
                if replicas_needed and self._replicas_past(file.file_no) < replicas_needed:
                    reasons.append(TOO_FEW_REPLICAS)
                if reasons:
                    return PurgeResult(removed, file.name, list(dict.fromkeys(reasons)), lapsed)
                self._host.remove(file.file_no)
                removed.append(file.name)
                total -= file.size
        return PurgeResult(removed, None, [], lapsed)

    def _replicas_past(self, file_no: int) -> int:
        return sum(
            hold.kind is HoldKind.REPLICA and hold.file_no > file_no for hold in self._holds.all()
        )

    def _lowered(self, file_no: int) -> int:
        """Return the lowest file that a reader of *file_no* may go back to."""
        header = self._host.pages.header(file_no)
        return file_no if header is None else min(file_no, header.lowest_oob_file)

    def _needed_by(self, lease: Lease) -> int:
        """Return the file from which on the holder of a lease would read."""
        try:
            place = find_start(self._host.pages, GtidPosition.parse(lease.position))
        except TooOld:
            return self._host.pages.first_file()  # nothing more may go
        return self._lowered(place.position.file_no)
