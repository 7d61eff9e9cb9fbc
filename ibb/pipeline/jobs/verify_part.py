"""
The check of some files of a directory, by whoever reads them.

The checks are those of `ibb.storage.verify`, which follow a directory from its beginning to its
end. A part begins with a file whose first page tells the GTID state, and on which no record that
an earlier file begins has any bearing but its own end. It ends some pages into the file where the
next part begins, so that the record which lies across the border is checked, and so that both tell
the same about these pages if nothing of the part is left open. Where that is not so, nothing that
they found counts: `verify_plan.py` has both checked again as one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ibb.protocol.errors import IbbError
from ibb.storage.directory import BinlogDirectory
from ibb.storage.errors import DiskError
from ibb.storage.file_name import binlog_name, parse_binlog_name
from ibb.storage.format_catalogue import SIDECAR_NAME
from ibb.storage.read_only_disk import ReadOnlyDisk
from ibb.storage.verify.chunks import ChunkChecks
from ibb.storage.verify.directory_check import (
    REPEATS_MAX,
    Totals,
    _BegunAnewError,
    _DirectoryCheck,
)
from ibb.storage.verify.files_now import FilesNow
from ibb.storage.verify.finding import Finding, Kind, Place, Severity
from ibb.storage.verify.groups import TreeCheck
from ibb.storage.verify.pages import PageChecks
from ibb.storage.verify.records import RecordChecks
from ibb.storage.verify.states import HistoryCheck

if TYPE_CHECKING:
    from collections.abc import Callable

    from ibb.protocol.gtid import Gtid
    from ibb.storage.disk import Disk, Names
    from ibb.storage.record import GtidState
    from ibb.storage.verify.headers import FileState
    from ibb.storage.verify.losses import Losses

AHEAD_BYTES: Final = 1 << 20  # of the file behind a part
AHEAD_PAGES_MIN: Final = 16
FINDINGS_MAX: Final = 200_000  # of one part, in memory


class TooManyFindings(IbbError):  # noqa: N818 - a state of the world
    """A part has more findings than are kept."""


@dataclass(frozen=True, slots=True)
class Origin:
    """
    How the whole directory begins, as far as later files are judged by it.

    Attributes:
        entries: of the GTID state on page 1 of the first file.
        is_empty: that is file 0, and there are none.
    """

    entries: tuple[Gtid, ...]
    is_empty: bool


@dataclass(frozen=True, slots=True)
class Part:
    """
    Some files, one behind the other.

    Attributes:
        path: of the directory.
        first: the first file.
        end: the first file of the next part.
        newest: of all files, the highest number that holds something.
        newest_valid: the highest number with a valid header.
        origin: of the directory; None: this is its first part.
    """

    path: str
    first: int
    end: int
    newest: int
    newest_valid: int
    origin: Origin | None


@dataclass(slots=True)
class PartResult:
    """
    What was found in a part.

    Attributes:
        findings: in its own files, in order; of notes and warnings behind its first pages the
            first `REPEATS_MAX` of a kind.
        untold: how many more of those there were.
        head_pages: the last page of its first file that an earlier part looks at, too.
        ahead: findings in the pages behind it, where the next part begins.
        pages_ahead: the last of these pages; 0: none.
        is_settled: nothing that it found depends on what follows, and nothing is open.
        is_begun_anew: RESET MASTER has deleted the files meanwhile, and the rest was not checked.
        asked: a GTID state was compared with how the directory begins.
        unmatched: about entries of the list of format descriptions for which it has no record.
        totals: of its own files.
    """

    findings: list[Finding] = field(default_factory=list)
    untold: Counter[Kind] = field(default_factory=Counter)
    head_pages: int = 0
    ahead: list[Finding] = field(default_factory=list)
    pages_ahead: int = 0
    is_settled: bool = True
    is_begun_anew: bool = False
    asked: bool = False
    unmatched: list[Finding] = field(default_factory=list)
    totals: Totals = field(default_factory=Totals)
    _repeats: Counter[Kind] = field(default_factory=Counter)

    def add(self, finding: Finding, *, at_border: bool) -> None:
        """
        Keep a finding in an own file, or count it.

        Args:
            finding: the next one.
            at_border: it is compared with what an earlier part finds, and kept in any case.

        Raises:
            TooManyFindings: the part is not fit for this.
        """
        if finding.severity is not Severity.DAMAGE and not at_border:
            self._repeats[finding.kind] += 1
            if self._repeats[finding.kind] > REPEATS_MAX:
                self.untold[finding.kind] += 1
                return
        if len(self.findings) >= FINDINGS_MAX:
            raise TooManyFindings(
                f"there are more than {FINDINGS_MAX} findings up to {finding.file}: check the"
                " directory without --master, which keeps none of them"
            )
        self.findings.append(finding)


class SpanDisk(ReadOnlyDisk):
    """
    A directory with some of its files, and the list of its format descriptions.

    Args:
        disk: where all of it is.
        first: number of the first file that is to be seen.
        last: of the last one.
    """

    def __init__(self, disk: Disk, first: int, last: int) -> None:
        super().__init__(disk, "a part of a directory is only read")
        self._first = first
        self._last = last

    def exists(self, path: str) -> bool:
        """Tell whether a file is there, and to be seen."""
        directory, _, name = path.rpartition("/")
        return (not directory or self._shows(name)) and super().exists(path)

    def list(self, path: str) -> Names:
        """Return the names that are to be seen."""
        return [name for name in super().list(path) if self._shows(name)]

    def lock_note(self, path: str) -> bytes | None:
        """Return None: who writes a store does so behind these files."""
        del path
        return None

    def _shows(self, name: str) -> bool:
        file_no = parse_binlog_name(name)
        return name == SIDECAR_NAME if file_no is None else self._first <= file_no <= self._last


class PartHistory(HistoryCheck):
    """
    The running state of a part.

    Args:
        losses: takes findings.
        first: the first file.
        origin: of the directory, or None for its first part.
        oldest: tells the oldest file by now.

    Attributes:
        asked: the state was compared with how the directory begins.
        groups_by_file: groups in it, by the number of the file where they begin.
    """

    def __init__(
        self, losses: Losses, first: int, origin: Origin | None, oldest: Callable[[], int]
    ) -> None:
        super().__init__(losses, from_beginning=first == 0, oldest=oldest)
        self._origin = origin
        self._was_empty = False
        self.groups_by_file: Counter[int] = Counter()

    @property
    def asked(self) -> bool:
        """Whether a GTID state was compared with how the directory begins."""
        return self._was_empty and not self._began_empty

    def group(self, gtid: Gtid, place: Place) -> None:
        """Take note of a group."""
        super().group(gtid, place)
        self.groups_by_file[place.file_no] += 1

    def stretch(self, first: Gtid, last: int, count: int, place: Place) -> None:
        """Take note of groups one behind the other."""
        super().stretch(first, last, count, place)  # which counts the first
        self.groups_by_file[place.file_no] += count - 1

    def full(self, record: GtidState, place: Place) -> None:
        """Take the state on page 1; the first one begins the part, not the directory."""
        is_first = self.first is None
        super().full(record, place)
        if not is_first:
            return
        if self._origin is not None:
            self._first_pairs = frozenset(self._origin.entries)
            self._began_empty = self._origin.is_empty
        self._was_empty = self._began_empty


class FilesCheck(_DirectoryCheck):
    """
    The check of a directory, to be run over some of its files.

    Args:
        disk: where the directory is, or as much of it as is to be seen.
        path: of the directory.
    """

    def __init__(self, disk: Disk, path: str) -> None:
        super().__init__(disk, path, lambda _done, _total: None, Totals())
        self._part_history = PartHistory(self._losses, 0, None, self._files_now.oldest)

    def begin_at(self, part: Part, trees: BinlogDirectory) -> None:
        """Make the checks that follow a history, for files from the first of a part on."""
        self._newest, self._newest_valid = part.newest, part.newest_valid
        # Those before it may have been purged since the directory was cut into parts.
        there = (state.file_no for state in self._files if state.file_no >= part.first)
        first = next(there, part.first)
        self._part_history = PartHistory(self._losses, first, part.origin, self._files_now.oldest)
        self._history = self._part_history
        self._records = RecordChecks(
            self._history, self._losses, TreeCheck(trees), self._formats.seen
        )
        self._chunks = ChunkChecks(self._records, skipping=first > 0)
        self._pages = PageChecks(self._chunks, self._records, self._losses)

    def result(self, part: Part) -> PartResult:
        """
        Check the files of a part; to be called once.

        Raises:
            DiskError: the directory cannot be listed.
            TooManyFindings: there are very many.
        """
        found = PartResult()
        try:
            self._walk_own(part, found)
            self.close_part(part, found)
            self._sum_up(part, found)
        except _BegunAnewError:
            found.is_begun_anew = True
        finally:
            self._directory.close()
        return found

    def close_part(self, part: Part, found: PartResult) -> None:
        """Check what is open at the end of a part: here, where the directory ends."""
        self._finish()
        self.keep(part, found)

    def _walk_own(self, part: Part, found: PartResult) -> None:
        own = [state for state in self._files if part.first <= state.file_no < part.end]
        if own and own[0].file_no == part.first:
            found.head_pages = pages_at_border(own[0])
        before = None
        for state in own:
            self._enter(state, before)
            for _ in self._walk(state):
                self.keep(part, found)
            before = state.file_no
        found.totals = Totals(
            files=len(own),
            size=sum(state.size for state in own),
            pages=self._pages.used_pages,
            records=self._records.records,
        )

    def keep(self, part: Part, found: PartResult) -> None:
        """Take what can be told by now; in the end findings behind the part must come last."""
        behind = binlog_name(part.end)
        for finding in self._take_findings():
            if finding.file == behind:
                found.ahead.append(finding)
            elif finding.file != SIDECAR_NAME or part.origin is None:  # the first part tells that
                found.is_settled &= not found.ahead
                at_border = is_at_border(finding, part.first, found.head_pages)
                found.add(finding, at_border=at_border)

    def _sum_up(self, part: Part, found: PartResult) -> None:
        history = self._part_history
        counts = history.groups_by_file.items()
        found.totals.groups = sum(count for file_no, count in counts if file_no < part.end)
        found.totals.first, found.totals.last = history.first, history.state
        found.asked = history.asked
        found.unmatched = list(self._formats.unmatched(0))


class PartCheck(FilesCheck):
    """
    The check of a part that others follow.

    Args:
        disk: where the directory is.
        part: which files, and what is known of the others.
    """

    def __init__(self, disk: Disk, part: Part) -> None:
        super().__init__(SpanDisk(disk, part.first, part.end), part.path)
        self._whole = BinlogDirectory(disk, part.path)
        self._files_now = FilesNow(disk, part.path)
        self.begin_at(part, self._whole)

    def result(self, part: Part) -> PartResult:
        """Check the files, as above."""
        try:
            return super().result(part)
        finally:
            self._whole.close()

    def close_part(self, part: Part, found: PartResult) -> None:
        """Read on in the file behind, until what has begun in this part has come to its end."""
        border = next((state for state in self._files if state.file_no == part.end), None)
        if border is None or border.header is None:
            found.is_settled = False
        else:
            found.pages_ahead = pages_at_border(border)
            own = [state.file_no for state in self._files if state.file_no < part.end]
            self._enter(border, own[-1] if own else None)
            self._walk_ahead(part, border, found)
        torn = self._chunks.open_at
        if self._losses.open or (torn is not None and torn.file_no < part.end):
            found.is_settled = False
        self._losses.finish()
        self.keep(part, found)

    def _walk_ahead(self, part: Part, border: FileState, found: PartResult) -> None:
        assert border.header is not None
        name = f"{part.path}/{binlog_name(border.file_no)}"
        try:
            file = self._disk.open(name, read_only=True)
        except DiskError:
            found.is_settled = False
            return
        try:
            pages = found.pages_ahead + 1
            for _ in self._pages.walk(file, border.header, pages, growing=False):
                self.keep(part, found)
        finally:
            file.close()


def check_part(disk: Disk, part: Part) -> PartResult:
    """
    Check a part.

    Raises:
        DiskError: the directory cannot be listed.
        TooManyFindings: it has very many.
    """
    return PartCheck(disk, part).result(part)


def pages_at_border(state: FileState) -> int:
    """Return the last page of a file that the part before it looks at, too; 0: none."""
    if state.header is None:
        return 0
    size = state.header.page_size
    return max(min(state.size // size - 1, max(AHEAD_BYTES // size, AHEAD_PAGES_MIN)), 0)


def is_at_border(finding: Finding, file_no: int, pages: int) -> bool:
    """Tell whether a finding is in the first pages of a file."""
    in_file = finding.file == binlog_name(file_no)
    return in_file and finding.page is not None and finding.page <= pages
