"""
The check of a whole directory: every file, page, record, group, state, and what lies beside them.

The directory is only read, each byte of the binlog files once, out-of-band pieces once more unless
they lie in order in one file. It may be in use: what has not been written yet is no finding, and
what the redo log of a store holds counts as written. Memory does not grow with the directory.
Source: ibb-format 14.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.errors import FormatError
from ibb.storage.backup import UNFINISHED_NAME, check_finished
from ibb.storage.directory import BinlogDirectory
from ibb.storage.disk import Disk
from ibb.storage.errors import DiskError
from ibb.storage.file_header import FileHeader
from ibb.storage.file_name import binlog_name
from ibb.storage.listing import list_files
from ibb.storage.position import Position
from ibb.storage.redo_segment import SEGMENT_NAMES
from ibb.storage.reset_marker import MARKER_NAME, ResetMarker

from .chunks import ChunkChecks
from .files_now import FilesNow
from .finding import Finding, Kind, Place, Severity
from .formats import FormatsCheck
from .groups import TreeCheck
from .headers import FileState, check_file, check_names, check_sequence, newest_used
from .losses import Losses
from .pages import PageChecks
from .records import RecordChecks
from .redo import RedoCheck, check_redo
from .states import HistoryCheck

REPEATS_MAX = 20  # findings of a kind, other than damage, that are reported one by one
LOOKS_MAX = 3  # at a redo log that changes while it is read

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class Totals:
    """
    What was checked.

    Attributes:
        files: binlog files, the empty one too.
        size: bytes of them.
        pages: used pages, without headers.
        records: of all types.
        groups: event groups.
        first: GTID state where the files begin; None: no state was found.
        last: GTID state where they end.
    """

    files: int = 0
    size: int = 0
    pages: int = 0
    records: int = 0
    groups: int = 0
    first: BinlogState | None = None
    last: BinlogState | None = None


def verify_directory(
    disk: Disk, path: str, *, progress: Progress | None = None, totals: Totals | None = None
) -> Iterator[Finding]:
    """
    Yield everything that is wrong or odd in a directory, in the order of the files.

    Args:
        disk: where the directory is; nothing is written.
        path: of the directory.
        progress: called with the bytes done and the bytes there are.
        totals: filled in as the check goes on.

    Raises:
        DiskError: the directory cannot be listed.
    """
    check = _DirectoryCheck(disk, path, progress or _ignore, Totals() if totals is None else totals)
    repeats: Counter[Kind] = Counter()
    for finding in check.run():
        if finding.severity is not Severity.DAMAGE:
            repeats[finding.kind] += 1
            if repeats[finding.kind] > REPEATS_MAX:
                continue
        yield finding
    for kind, count in repeats.items():
        if count > REPEATS_MAX:
            text = f"{count - REPEATS_MAX} more findings of kind {kind}"
            yield Finding(kind=Kind.MORE, text=text)


def _ignore(done: int, total: int) -> None:
    del done, total


class _Snapshot(NamedTuple):
    """What changes in a directory when somebody writes there."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    changed: tuple[float, ...]


def _take_snapshot(disk: Disk, path: str) -> _Snapshot:
    names = disk.list(path)
    newest = [binlog_name(file_no) for file_no in list_files(disk, path)[-3:]]
    watched = [f"{path}/{name}" for name in (*newest, *SEGMENT_NAMES) if name in names]
    sizes, changed = [], []
    for name in watched:
        with suppress(DiskError):  # it is gone, or the check meets it
            sizes.append(disk.size(name))
            changed.append(disk.modified_at(name))
    return _Snapshot(tuple(names), tuple(sizes), tuple(changed))


class _BegunAnewError(Exception):
    """The files of which findings tell are gone."""


class _DirectoryCheck:
    """One run."""

    def __init__(self, disk: Disk, path: str, progress: Progress, totals: Totals) -> None:
        self._real = disk
        self._path = path
        self._progress = progress
        self._totals = totals
        self._losses = Losses()
        self._snapshot = _take_snapshot(disk, path)
        self._files_now = FilesNow(disk, path)
        self._redo = self._check_redo()
        self._disk = self._redo.disk
        self._formats = FormatsCheck(disk, path, self._losses)
        self._directory = BinlogDirectory(self._disk, path)
        self._files = self._check_files()
        first = self._files[0].file_no if self._files else 0
        self._history = HistoryCheck(
            self._losses, from_beginning=first == 0, oldest=self._files_now.oldest
        )
        self._records = RecordChecks(
            self._history, self._losses, TreeCheck(self._directory), self._formats.seen
        )
        self._chunks = ChunkChecks(self._records, skipping=first > 0)
        self._pages = PageChecks(self._chunks, self._records, self._losses)
        self._newest = newest_used(self._files)
        self._newest_valid = max(
            (state.file_no for state in self._files if state.header is not None), default=-1
        )

    def run(self) -> Iterator[Finding]:
        try:
            yield from self._check()
        except _BegunAnewError:
            text = "the files were deleted and begun anew meanwhile (RESET MASTER): check again"
            yield Finding(kind=Kind.BEGUN_ANEW, text=text)
        finally:
            self._directory.close()

    def _check(self) -> Iterator[Finding]:
        yield from check_names(list(self._snapshot.names))
        yield from self._redo.findings
        yield from self._check_backup()
        yield from self._check_reset()
        done, before = 0, None
        for state in self._files:
            self._enter(state, before)
            for bytes_done in self._walk(state):
                self._progress(done + bytes_done, self._totals.size)
                self._count()
                yield from self._take_findings()
            done += state.size
            self._progress(done, self._totals.size)
            before = state.file_no
        self._finish()
        yield from self._take_findings()
        yield from check_sequence(self._files, own_redo=self._redo.found)
        if self._files and self._is_at_rest():
            yield from self._formats.unmatched(self._files[0].file_no)

    def _take_findings(self) -> Iterator[Finding]:
        """Yield what can be told by now, unless it is about files of which nothing is left."""
        found = list(self._losses.take())
        wrong = any(finding.severity is not Severity.NOTE for finding in found)
        if wrong and self._files_now.are_begun_anew():
            raise _BegunAnewError
        yield from found

    def _check_redo(self) -> RedoCheck:
        """Apply the redo log to a shadow; a store in use may need another look."""
        if MARKER_NAME in self._snapshot.names:
            return RedoCheck(self._real, None, [], found=True)  # of files that will be deleted
        for _ in range(LOOKS_MAX):
            check = check_redo(self._real, self._path)
            if not check.findings or self._is_at_rest():
                return check
            self._snapshot = _take_snapshot(self._real, self._path)
            self._files_now = FilesNow(self._real, self._path)
        return check._replace(findings=[])  # written faster than read: no judgement

    def _check_backup(self) -> Iterator[Finding]:
        try:
            check_finished(self._real, self._path)
        except FormatError as error:
            yield Finding(kind=Kind.BACKUP_UNFINISHED, text=error.what, file=UNFINISHED_NAME)

    def _check_reset(self) -> Iterator[Finding]:
        try:
            after = ResetMarker(self._real, self._path).read()
        except FormatError as error:
            yield Finding(kind=Kind.RESET_MARKER, text=error.what, file=MARKER_NAME)
        else:
            if after is not None:
                text = f"the next opening deletes all files and begins with state '{after}'"
                yield Finding(kind=Kind.RESET_UNFINISHED, text=text, file=MARKER_NAME)

    def _check_files(self) -> list[FileState]:
        found = []
        for file_no in list_files(self._disk, self._path):
            try:
                found.append(check_file(self._disk, self._path, file_no))
            except DiskError as error:
                if not error.missing:
                    raise
                if self._files_now.is_purged(file_no):
                    found.clear()  # as those before it
        self._totals.files = len(found)
        self._totals.size = sum(state.size for state in found)
        return found

    def _enter(self, state: FileState, before: int | None) -> None:
        """Report what is between the file before and this one, and what is wrong with all of it."""
        file_no = state.file_no
        if before is not None and file_no != before + 1 and file_no <= self._newest:
            many = file_no - before - 1
            text = "the file is missing" if many == 1 else f"{many} files from here on are missing"
            self._chunks.skip(Finding.in_file(Kind.MISSING_FILE, before + 1, text))
        if state.empty and file_no < self._newest:
            text = "the file is empty although later ones are not"
            self._chunks.skip(Finding.in_file(Kind.EMPTY_FILE, file_no, text))
        for finding in state.findings:
            if state.header is None and not state.empty:
                self._chunks.skip(finding)
            else:
                self._losses.report(finding)

    def _walk(self, state: FileState) -> Iterator[int]:
        header, file_no = state.header, state.file_no
        if header is None:
            return
        rest = state.size % header.page_size
        if rest and file_no != self._newest:
            text = f"{rest} bytes behind the last whole page"
            self._losses.report(Finding.in_file(Kind.ODD_LENGTH, file_no, text))
        try:
            file = self._disk.open(f"{self._path}/{binlog_name(file_no)}", read_only=True)
        except DiskError as error:
            if error.missing and self._files_now.is_purged(file_no):
                self._chunks.pass_over()
            else:
                self._chunks.skip(Finding.in_file(Kind.UNREADABLE, file_no, str(error)))
            return
        growing = file_no + 1 >= self._newest
        try:
            pages = state.size // header.page_size
            yield from self._pages.walk(file, header, pages, growing=growing)
        finally:
            file.close()
        final = self._files_now.was_final(file_no) or self._is_at_rest()
        if file_no < self._newest_valid and final:
            self._check_end(header, self._pages.pages)

    def _check_end(self, header: FileHeader, pages: int) -> None:
        """Report if an older file ends before it should."""
        unused = self._pages.unused
        if unused is not None:
            self._end_early(unused, pages)
        elif pages < header.page_count and self._chunks.is_open:  # FLUSH cuts behind whole records
            self._truncate(Place(header.file_no, pages, 0, header.page_size))

    def _end_early(self, unused: Place, pages: int) -> None:
        """Report a file that is not full although a later one is used."""
        place = self._pages.end_early(unused)
        if place is None:
            if unused.page_no == pages - 1:
                return
            place = unused._replace(page_no=unused.page_no + 1, offset=0)
        text = "data ends here although a later file is used"
        if self._chunks.is_open:
            self._truncate(place)
            self._losses.report(Finding.at(Kind.DATA_ENDS_EARLY, place, text))
        else:
            self._chunks.skip(Finding.at(Kind.DATA_ENDS_EARLY, place, text))

    def _truncate(self, place: Place) -> None:
        text = "binlog tablespace truncated in the middle of record"
        self._chunks.skip(Finding.at(Kind.TRUNCATED_RECORD, place, text))

    def _finish(self) -> None:
        """Data ends: in a store at rest it ends where its redo log says, behind a whole record."""
        end, redo_end = self._pages.end, self._redo.end
        if redo_end is not None and end >= redo_end and self._is_at_rest():
            if self._chunks.is_open and self._pages.unused is not None:
                self._truncate(self._pages.unused)
            if end > redo_end:
                self._losses.report(_behind(redo_end, end))
        torn = self._chunks.open_at
        if torn is not None and redo_end is None and self._is_at_rest():
            text = f"a record begins here, and data ends inside it at {end}: its writer has more of"
            text += " it, or it is lost; a store that opens the directory goes on here"
            self._losses.report(Finding.at(Kind.TORN_END, torn, text))
        begun_at = self._redo.begun_at
        if begun_at is not None and end < begun_at and self._is_at_rest():
            text = f"the files end at {end}, but by the word of the redo log they were durable up"
            self._chunks.skip(
                Finding(
                    kind=Kind.FILES_CUT,
                    text=f"{text} to {begun_at}",
                    file=binlog_name(begun_at.file_no),
                    offset=begun_at.offset,
                )
            )
        self._losses.finish()
        self._count()

    def _is_at_rest(self) -> bool:
        return _take_snapshot(self._real, self._path) == self._snapshot

    def _count(self) -> None:
        totals = self._totals
        totals.pages = self._pages.used_pages
        totals.records = self._records.records
        totals.groups = self._history.groups
        totals.first, totals.last = self._history.first, self._history.state


def _behind(redo_end: Position, end: Position) -> Finding:
    text = f"the redo log ends at {redo_end}, the files go on to {end}: opening the store would"
    text += " set a copy of them aside and clear what lies behind"
    name = binlog_name(redo_end.file_no)
    return Finding(kind=Kind.REDO_BEHIND, text=text, file=name, offset=redo_end.offset)
