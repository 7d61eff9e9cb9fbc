"""
The check of a whole directory in parts: where it is cut, and what the parts have found as one.

The findings are those of `verify_directory`, in its order. Damage that reaches across a border, or
whatever makes two parts tell different things about the pages between them, has both checked once
more as one; so a directory that is damaged everywhere is checked by one reader in the end.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from ibb.protocol.errors import FormatError
from ibb.storage.errors import DiskError, RecoveryError
from ibb.storage.file_name import parse_binlog_name
from ibb.storage.recovery import replay
from ibb.storage.state_scan import read_state
from ibb.storage.verify.directory_check import REPEATS_MAX, Totals
from ibb.storage.verify.files_now import FilesNow
from ibb.storage.verify.finding import Finding, Kind, Severity
from ibb.storage.verify.headers import check_names, check_sequence
from ibb.storage.verify.shadow_disk import ShadowDisk

from .verify_part import FilesCheck, Origin, Part, PartResult, is_at_border

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ibb.storage.disk import Disk, File
    from ibb.storage.record import GtidState
    from ibb.storage.verify.headers import FileState

PART_BYTES_MIN: Final = 64 << 20  # of files, from which on a part is cut
PART_BYTES_MAX: Final = 4 << 30
PARTS_EACH: Final = 4  # for each reader, so that none waits long for the slowest
PARTS_MAX: Final = 100_000
_ALL_FILES: Final = 1 << 62


class _TouchedFiles(ShadowDisk):
    """A shadow that forgets what the redo log writes, but notes in which files it differs."""

    def __init__(self, disk: Disk) -> None:
        super().__init__(disk, self._note)
        self.lowest: int | None = None

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> File:
        if create and not self.exists(path):
            self._touch(path)
        return super().open(path, create=create, read_only=read_only)

    def _note(self, path: str, _offset: int, data: bytes, beneath: bytes) -> bool:
        if data != beneath:
            self._touch(path)
        return False

    def _touch(self, path: str) -> None:
        file_no = parse_binlog_name(path.rpartition("/")[2])
        if file_no is not None:
            self.lowest = file_no if self.lowest is None else min(self.lowest, file_no)


class DirectoryEnd(FilesCheck):
    """
    The check of the newest files, and of what is about the directory rather than a file.

    Args:
        disk: where the directory is.
        path: of the directory.

    Raises:
        DiskError: the directory cannot be listed.
    """

    def __init__(self, disk: Disk, path: str) -> None:
        super().__init__(disk, path)
        self.files = self._files

    def prelude(self) -> Iterator[Finding]:
        """Yield what is about no binlog file in particular, and comes first."""
        yield from check_names(list(self._snapshot.names))
        yield from self._redo.findings
        yield from self._check_backup()
        yield from self._check_reset()

    def parts(self, readers: int) -> list[Part]:
        """
        Cut the directory into parts, the newest files being the last.

        Args:
            readers: that share the work.
        """
        if not self._files:
            return []
        size = sum(state.size for state in self._files)
        part_bytes = max(PART_BYTES_MIN, min(PART_BYTES_MAX, size // (readers * PARTS_EACH)))
        first = self._files[0].file_no
        state = self._state_of(first)
        cuts = [] if state is None else self._cuts(part_bytes)
        origin = None
        if state is not None:
            entries = tuple(state.entries)
            origin = Origin(entries, is_empty=first == 0 and not entries)
        return [
            Part(
                self._path,
                begin,
                end,
                self._newest,
                self._newest_valid,
                None if begin == first else origin,
            )
            for begin, end in pairwise([first, *cuts, _ALL_FILES])
        ]

    def result(self, part: Part) -> PartResult:
        """Check the files from the first of *part* on, as above."""
        self.begin_at(part, self._directory)
        return super().result(part)

    def postlude(self, results: Sequence[PartResult]) -> Iterator[Finding]:
        """Yield what only all files together tell."""
        yield from check_sequence(self._files, own_redo=self._redo.found)
        if self._files and self._is_at_rest():
            told = [set(result.unmatched) for result in results]
            for finding in results[-1].unmatched:
                if all(finding in others for others in told):
                    yield finding

    def _cuts(self, part_bytes: int) -> list[int]:
        """Return the first files of all parts but the first."""
        last = self._newest
        touched = self._lowest_touched()
        if touched is not None:
            last = min(last, touched)
        inner = [state for state in self._files[1:] if state.file_no <= last]
        end = next((no for no in self._numbers_back(inner) if self._is_border(no)), None)
        cuts: list[int] = []
        size = self._files[0].size
        for state in inner:
            if end is None or state.file_no >= end or len(cuts) >= PARTS_MAX:
                break
            if size >= part_bytes and self._is_border(state.file_no):
                cuts.append(state.file_no)
                size = 0
            size += state.size
        return cuts if end is None else [*cuts, end]

    @staticmethod
    def _numbers_back(files: Sequence[FileState]) -> Iterator[int]:
        return (state.file_no for state in reversed(files) if state.header is not None)

    def _is_border(self, file_no: int) -> bool:
        """Tell whether nothing but a record that goes on reaches into a file from before it."""
        state = self._state_of(file_no)
        return state is not None and state.xa_file is None

    def _state_of(self, file_no: int) -> GtidState | None:
        try:
            return read_state(self._directory, file_no, 1)
        except (FormatError, DiskError):
            return None

    def _lowest_touched(self) -> int | None:
        """Return the oldest file in which the redo log has something else than the file."""
        if not self._redo.found:
            return None
        touched = _TouchedFiles(self._real)
        with suppress(FormatError, RecoveryError, DiskError):
            replay(touched, self._path, set_aside=False, certain_only=True)
        return touched.lowest


def verify_in_parts(
    disk: Disk,
    path: str,
    check: Callable[[list[Part]], list[PartResult]],
    *,
    readers: int = 1,
    totals: Totals | None = None,
) -> Iterator[Finding]:
    """
    Yield what `verify_directory` yields.

    Args:
        disk: where the directory is; nothing is written.
        path: of the directory.
        check: checks parts, wherever, and returns their results in that order.
        readers: how many parts are checked at a time.
        totals: filled in when all is checked.

    Raises:
        DiskError: the directory cannot be listed.
        TooManyFindings: a part has more than can be kept.
    """
    files = FilesNow(disk, path)
    end = DirectoryEnd(disk, path)
    results = _agreed(disk, end, end.parts(readers), check)
    if totals is not None:
        _fill(totals, results)
    repeats: Counter[Kind] = Counter()

    def told(findings: Iterable[Finding]) -> Iterator[Finding]:
        for finding in findings:
            if finding.severity is not Severity.DAMAGE:
                repeats[finding.kind] += 1
                if repeats[finding.kind] > REPEATS_MAX:
                    continue
            yield finding

    yield from told(end.prelude())
    # A part that was checked later than that is of other files, and may tell nothing of it.
    is_begun_anew = files.are_begun_anew() or any(result.is_begun_anew for result in results)
    for result in () if is_begun_anew else results:
        yield from told(result.findings)
        repeats.update(result.untold)
    if is_begun_anew:
        text = "the files were deleted and begun anew meanwhile (RESET MASTER): check again"
        yield from told([Finding(kind=Kind.BEGUN_ANEW, text=text)])
    else:
        yield from told(end.postlude(results))
    for kind, count in repeats.items():
        if count > REPEATS_MAX:
            text = f"{count - REPEATS_MAX} more findings of kind {kind}"
            yield Finding(kind=Kind.MORE, text=text)


def _agreed(
    disk: Disk,
    end: DirectoryEnd,
    parts: list[Part],
    check: Callable[[list[Part]], list[PartResult]],
) -> list[PartResult]:
    """Check parts until those side by side tell the same of the pages between them."""
    done: dict[Part, PartResult] = {}
    unused: DirectoryEnd | None = end
    while parts:
        inner = [part for part in parts[:-1] if part not in done]
        if inner:
            done.update(zip(inner, check(inner), strict=True))
        if parts[-1] not in done:
            last = unused or DirectoryEnd(disk, parts[-1].path)
            unused = None
            done[parts[-1]] = last.result(parts[-1])
        results = [done[part] for part in parts]
        merged = _merged(parts, results)
        if len(merged) == len(parts) or any(result.is_begun_anew for result in results):
            break
        parts = merged
    return [done[part] for part in parts]


def _merged(parts: list[Part], results: list[PartResult]) -> list[Part]:
    """Return parts of which none leaves anything open; each border that holds is kept."""
    asked = [number for number, result in enumerate(results) if result.asked]
    merged = [parts[0]]
    for number, part in enumerate(parts[1:], 1):
        both_asked = bool(asked) and asked[0] < number <= asked[-1]
        if both_asked or not _fit(results[number - 1], part, results[number]):
            merged[-1] = replace(merged[-1], end=part.end)
        else:
            merged.append(part)
    return merged


def _fit(before: PartResult, part: Part, result: PartResult) -> bool:
    """Tell whether a part begins as the one before it has seen it."""
    if not before.is_settled or result.head_pages != before.pages_ahead:
        return False
    head = [
        found for found in result.findings if is_at_border(found, part.first, before.pages_ahead)
    ]
    return head == before.ahead


def _fill(totals: Totals, results: list[PartResult]) -> None:
    for result in results:
        found = result.totals
        totals.files += found.files
        totals.size += found.size
        totals.pages += found.pages
        totals.records += found.records
        totals.groups += found.groups
    if results:
        totals.first, totals.last = results[0].totals.first, results[-1].totals.last
