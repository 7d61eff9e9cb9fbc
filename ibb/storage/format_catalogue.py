"""
Which format description is in force at a place.

A record that holds only a format description event says what the events behind it are written
in. A reader that starts in mid-history needs the last one before its start, which can lie any
number of files back, or in a file that was purged. So the writer keeps a copy of all of them, by
place, in a small file beside the binlog, the sidecar:

    {"version": 1, "complete_from": [file, offset], "entries": [[file, offset, base64], ...]}

Every such record from `complete_from` on has an entry; the last one before the oldest binlog file
stays when that file's predecessors are purged. The sidecar is written before the record, so after
a crash it may tell of a record that never was: an entry counts only if its record is found where
it says, or if its file is purged.

What the sidecar does not cover (all of a directory that another program wrote) is scanned, from
the place asked for backward, file by file; what was found in a file is remembered, so each file
is scanned once. So it is with a sidecar that is damaged: before the next one takes its place, it is
set aside. A program that goes on writing a directory without keeping the sidecar must
remove it.
"""

import base64
import binascii
import logging
import threading
from bisect import bisect_left, insort
from typing import NamedTuple

from ibb.protocol.errors import FormatError
from ibb.protocol.event import HEAD_BYTES_MAX, TYPE_OFFSET, EventType

from .aside import set_aside
from .checked_json import encode_checked, parse_checked
from .disk import Disk
from .errors import DiskError
from .group_head import read_head
from .page_source import PageSource
from .position import Position
from .record import RecordType
from .record_reader import Record, RecordReader
from .small_file import SMALL_FILE_BYTES_MAX, read_small_file, replace_small_file

_log = logging.getLogger(__name__)

SIDECAR_NAME = "formats.json"
SIDECAR_VERSION = 1
ENTRIES_MAX = 10_000  # the oldest are dropped above that, and scanned for if they matter

_TYPE_AT = 1 + TYPE_OFFSET  # in a commit record without out-of-band lists


class FormatEntry(NamedTuple):
    """A format description event, and the place of its record."""

    position: Position
    event: bytes


class _Scanned(NamedTuple):
    """The last format description found in a file before *until*."""

    until: Position
    event: bytes | None


class FormatCatalogue:
    """
    Knows the format descriptions of a history. Safe to use from several threads.

    Args:
        source: the pages.
        sidecar: disk and path of the sidecar; it need not exist. If it is damaged, that is logged
            and the records are scanned.

    Raises:
        DiskError: the sidecar cannot be read.
    """

    def __init__(self, source: PageSource, sidecar: tuple[Disk, str] | None = None) -> None:
        self._source = source
        self._sidecar = sidecar
        self._mutex = threading.Lock()
        self._entries: list[FormatEntry] = []  # by place
        self._complete_from: Position | None = None
        self._verified: set[Position] = set()
        self._whole_files: dict[int, bytes | None] = {}  # last one of files that are complete
        self._newest_scan: _Scanned | None = None
        self.warnings: dict[int, str] = {}  # by file: why a scan of it ended early
        self._is_damaged = False  # the sidecar, which the next note replaces
        if sidecar is not None:
            self._read(*sidecar)

    def _read(self, disk: Disk, path: str) -> None:
        try:
            stored = read_sidecar(disk, path)
        except FormatError as error:
            self._is_damaged = True
            _log.warning(
                "%s: the binlog files are scanned instead; what it said of purged ones is lost",
                error,
            )
            return
        if stored is not None:
            self._entries, self._complete_from = stored

    def in_force(self, position: Position) -> bytes | None:
        """
        Return the last format description event stored before *position*; None: there is none.

        One in a place that is damaged or cannot be read is passed over.
        """
        with self._mutex:
            index = bisect_left(self._entries, (position,))
            for entry in reversed(self._entries[:index]):
                if self._is_true(entry):
                    return entry.event
            before = position
            if self._complete_from is not None:
                before = min(before, self._complete_from)
            return self._scan_back(before)

    def add(self, position: Position, event: bytes) -> None:
        """
        Note that *event* is about to be written at *position*, the end of the binlog.

        When this returns the note is durable.

        Raises:
            DiskError: it could not be written; nothing has changed.
        """
        assert len(event) <= HEAD_BYTES_MAX
        with self._mutex:
            kept = [entry for entry in self._entries if entry.position < position]
            purged = [entry for entry in kept if entry.position.file_no < self._source.first_file()]
            kept = kept[max(len(purged) - 1, 0) :]
            insort(kept, FormatEntry(position, event))
            complete_from = self._complete_from
            if complete_from is None or complete_from > position:
                complete_from = position
            if len(kept) > ENTRIES_MAX:
                kept = kept[-ENTRIES_MAX:]
                complete_from = kept[0].position
            if self._sidecar is not None:
                if self._is_damaged:
                    set_aside(*self._sidecar)
                    self._is_damaged = False
                _store(*self._sidecar, kept, complete_from)
            self._entries, self._complete_from = kept, complete_from
            self._verified.discard(position)

    def _is_true(self, entry: FormatEntry) -> bool:
        """Tell whether the record of an entry is where it must be."""
        place = entry.position
        if place.file_no < self._source.first_file() or place in self._verified:
            return True
        try:
            record = RecordReader(self._source, place).next()
            found = (
                record is not None
                and record.position == place
                and record.type == RecordType.COMMIT
                and _format_description(record) == entry.event
            )
        except FormatError:
            return False
        except DiskError:
            return True  # it was there when it was noted
        if found:
            self._verified.add(place)
        return found

    def _scan_back(self, before: Position) -> bytes | None:
        first = self._source.first_file()
        event: bytes | None = None
        for file_no in range(before.file_no, first - 1, -1):
            try:
                if file_no == before.file_no:
                    event = self._scan_until(before)
                else:
                    event = self._scan_whole(file_no)
            except DiskError as error:
                self.warnings[file_no] = str(error)  # it may be readable next time
            if event is not None:
                break
        for purged in [file_no for file_no in self._whole_files if file_no < first]:
            del self._whole_files[purged]
        return event

    def _scan_whole(self, file_no: int) -> bytes | None:
        if file_no not in self._whole_files:
            end = Position(file_no + 1, 0)
            self._whole_files[file_no] = self._scan(Position(file_no, 0), end)
        return self._whole_files[file_no]

    def _scan_until(self, before: Position) -> bytes | None:
        """Scan the file of *before*, from where the last scan of it ended if that was earlier."""
        start, event = Position(before.file_no, 0), None
        known = self._newest_scan
        if known is not None and known.until.file_no == before.file_no and known.until <= before:
            start, event = known
        event = self._scan(start, before) or event
        self._newest_scan = _Scanned(before, event)
        return event

    def _scan(self, start: Position, before: Position) -> bytes | None:
        """Return the last format description in a file from *start* on and before *before*."""
        event: bytes | None = None
        records = RecordReader(self._source, start)
        try:
            while records.position < before:
                record = records.next()
                if record is None or record.position >= before:
                    break
                if record.type == RecordType.COMMIT:
                    event = _format_description(record) or event
        except FormatError as error:
            # What is behind the damage is not known; readers of the damaged place will be told.
            self.warnings[start.file_no] = str(error)
        return event


def read_sidecar(disk: Disk, path: str) -> tuple[list[FormatEntry], Position] | None:
    """
    Return the entries of a sidecar, and from where on it has all of them; None: there is none.

    Raises:
        FormatError: it is damaged.
        DiskError: it cannot be read.
    """

    def parse(text: bytes) -> tuple[list[FormatEntry], Position]:
        try:
            return _parse(text)
        except (ValueError, KeyError, TypeError, RecursionError, binascii.Error) as error:
            raise FormatError(f"not a list of format descriptions: {error}", file=path) from error

    return read_small_file(disk, path, parse)


def _format_description(record: Record) -> bytes | None:
    """Return the event of a commit record if it is a format description."""
    first = record.first
    if first[0] != 0 or (len(first) > _TYPE_AT and first[_TYPE_AT] != EventType.FORMAT_DESCRIPTION):
        return None  # nearly always: without parsing the head
    head = read_head(record)
    return head.event if head is not None and head.gtid is None else None


def _parse(text: bytes) -> tuple[list[FormatEntry], Position]:
    """
    Read a sidecar.

    Raises:
        ValueError, KeyError, TypeError, RecursionError, binascii.Error: it is not one.
    """
    if len(text) > SMALL_FILE_BYTES_MAX:
        raise ValueError(f"more than {SMALL_FILE_BYTES_MAX} bytes")
    content = parse_checked(text)
    if content["version"] != SIDECAR_VERSION:
        raise ValueError(f"version {content['version']}")
    entries = [
        FormatEntry(_position(file_no, offset), base64.b64decode(event, validate=True))
        for file_no, offset, event in content["entries"]
    ]
    if len(entries) > ENTRIES_MAX or entries != sorted(entries):
        raise ValueError("too many entries, or not in order")
    return entries, _position(*content["complete_from"])


def _position(file_no: object, offset: object) -> Position:
    if not (isinstance(file_no, int) and isinstance(offset, int) and min(file_no, offset) >= 0):
        raise TypeError(f"[{file_no}, {offset}] is not a position")
    return Position(file_no, offset)


def _store(disk: Disk, path: str, entries: list[FormatEntry], complete_from: Position) -> None:
    """Replace the sidecar in one step."""
    content = {
        "version": SIDECAR_VERSION,
        "complete_from": list(complete_from),
        "entries": [[*entry.position, base64.b64encode(entry.event).decode()] for entry in entries],
    }
    replace_small_file(disk, path, encode_checked(content, indent=0))
