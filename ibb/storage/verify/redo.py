"""
The redo log against the files: what the next opening of the store would do.

The log is applied to a shadow of the directory. Pages that are not in the files yet, because the
store is in use or was not closed, are then read from the shadow, so the check sees every group
that is certain: of a store in use what it has synced, else all that the next opening brings back.
"""

from collections.abc import Callable
from typing import NamedTuple

from ibb.protocol.errors import FormatError
from ibb.storage.chunk import chunks_end
from ibb.storage.disk import Disk
from ibb.storage.errors import DiskError, RecoveryError
from ibb.storage.file_name import parse_binlog_name
from ibb.storage.page import check_page, page_is_zero
from ibb.storage.position import Position
from ibb.storage.recovery import replay
from ibb.storage.redo_segment import SEGMENT_NAMES, read_segment_header
from ibb.storage.synced_note import NOTHING_SYNCED, certain_lsn

from .finding import Finding, Kind
from .shadow_disk import ShadowDisk

_HEAD_BYTES = 4096  # of a segment, before its groups


class RedoCheck(NamedTuple):
    """
    What the redo log says.

    Attributes:
        disk: to read the files from: as they are, or as they will be.
        end: of the binlog by the word of the log; None: it tells nothing.
        findings: about the log and the pages in it.
        begun_at: the files hold everything up to there, by the word of the log.
        found: there is a redo log that can be applied.
        begun_anew: tells whether the files are by now no longer those that the log tells of, if
            that is watched.
        is_opened_now: a store was just being opened, which has not said yet what is certain.
    """

    disk: Disk
    end: Position | None
    findings: list[Finding]
    begun_at: Position | None = None
    found: bool = False
    begun_anew: Callable[[], bool] = lambda: False
    is_opened_now: bool = False


def check_redo(
    disk: Disk, directory: str, begun_anew: Callable[[], bool] = lambda: False
) -> RedoCheck:
    """
    Apply the redo log of a directory, if it has one, to a shadow.

    Args:
        disk: where the directory is.
        directory: its path.
        begun_anew: tells whether the files are no longer those that the log tells of.

    Raises:
        DiskError: files cannot be read.
    """
    findings = _check_segments(disk, directory)
    pages = _PageComparison(directory)
    shadow = ShadowDisk(disk, pages.keep, begun_anew)
    certain = certain_lsn(disk, directory)
    failed = RedoCheck(disk, None, findings, is_opened_now=certain == NOTHING_SYNCED)
    try:
        replayed = replay(shadow, directory, set_aside=False, certain_only=True)
    except FormatError as error:
        name = error.file.rpartition("/")[2] if error.file else None
        findings.append(
            Finding(kind=Kind.REDO_DAMAGED, text=error.what, file=name, offset=error.offset)
        )
        return failed
    except RecoveryError as error:
        findings.append(Finding(kind=Kind.REDO_DAMAGED, text=str(error)))
        return failed
    except DiskError as error:
        file_no = parse_binlog_name(error.path.rpartition("/")[2])
        if file_no is None:
            findings.append(Finding(kind=Kind.REDO_DAMAGED, text=str(error)))
        else:
            findings.append(Finding.in_file(Kind.UNREADABLE, file_no, str(error)))
        return failed
    if replayed is None:
        return failed
    findings += pages.findings
    if pages.unwritten:
        text = f"{pages.unwritten} pages are only in the redo log: the store is in use, or was"
        text += " not closed; opening it writes them"
        findings.append(Finding(kind=Kind.NOT_CLOSED, text=text))
    end = replayed.end
    if end is None and certain is None and replayed.begun_at > (0, 0):
        end = replayed.begun_at
    return RedoCheck(
        shadow,
        end,
        findings,
        replayed.begun_at,
        found=True,
        begun_anew=begun_anew,
        is_opened_now=NOTHING_SYNCED in (certain, replayed.certain),
    )


def _check_segments(disk: Disk, directory: str) -> list[Finding]:
    findings = []
    for slot, name in enumerate(SEGMENT_NAMES):
        path = f"{directory}/{name}"
        if not disk.exists(path):
            continue
        try:
            valid = read_segment_header(disk, path, slot) is not None
        except FormatError:
            continue  # of an unknown version: applying it says so
        if not valid and not _begins_with_zeros(disk, path):
            text = "no valid segment header: it was torn when it was begun, or is damaged"
            findings.append(Finding(kind=Kind.REDO_SEGMENT, text=text, file=name, offset=0))
    return findings


def _begins_with_zeros(disk: Disk, path: str) -> bool:
    file = disk.open(path, read_only=True)
    try:
        return page_is_zero(file.read_at(0, _HEAD_BYTES))
    finally:
        file.close()


class _PageComparison:
    """Compares each page in the redo log with the one in its file."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self.unwritten = 0
        self.findings: list[Finding] = []

    def keep(self, path: str, offset: int, data: bytes, beneath: bytes) -> bool:
        """Tell whether a page of the log is to be taken for the one that the file has."""
        if data == beneath:
            return False
        if page_is_zero(beneath) or len(beneath) < len(data):  # or behind the file's end
            self.unwritten += 1
            return True
        file_no = parse_binlog_name(path.rpartition("/")[2])
        assert file_no is not None
        page_no = offset // len(data)
        try:
            check_page(beneath, file_no, page_no)
        except FormatError as error:
            text = f"{error.what}; the redo log has this page whole"
            self.findings.append(Finding.in_page(Kind.PAGE_CHECKSUM, file_no, page_no, text))
            return True
        common = min(chunks_end(data), chunks_end(beneath)) if page_no else 0  # headers do not grow
        if common and data[:common] == beneath[:common]:
            if common == chunks_end(data):
                return False  # the file has more of it already
            self.unwritten += 1
            return True
        text = "the page is not what the redo log says"
        self.findings.append(Finding.in_page(Kind.REDO_DIFFERS, file_no, page_no, text))
        return True
