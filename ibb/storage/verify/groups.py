"""Whether the events of a group fit together, out-of-band pieces included."""

import struct

from ibb.protocol.errors import FormatError
from ibb.protocol.event import HEADER_SIZE, LENGTH_OFFSET, TYPE_OFFSET, EventType
from ibb.storage.directory import BinlogDirectory
from ibb.storage.errors import DiskError
from ibb.storage.group_reader import GroupReader, StoredGroup

from .finding import Finding, Kind, Place

Bytes = bytes | memoryview

LOOKS_MAX = 2  # at a group in a directory that changes meanwhile
_RIGHT = frozenset({Kind.OOB_FIRST, Kind.OOB_PURGED})  # of what was there

_LENGTH = struct.Struct("<I")


class EventWalk:
    """
    Walks over the events of a group by their lengths, in pieces cut anywhere.

    Attributes:
        events: number of events that have begun.
    """

    __slots__ = ("_head", "_left", "events")

    def __init__(self) -> None:
        self.events = 0
        self._left = 0  # bytes of an event that are still to come
        self._head = b""  # the beginning of an event header

    def feed(self, data: Bytes) -> None:
        """
        Take the next bytes of the group.

        Raises:
            FormatError: a length that no event can have, or a second GTID event.
        """
        at, end = self._left, len(data)
        if self._head:
            at = self._join(data)
        length_at = _LENGTH.unpack_from
        while end - at >= HEADER_SIZE:
            (length,) = length_at(data, at + LENGTH_OFFSET)
            if length < HEADER_SIZE or data[at + TYPE_OFFSET] == EventType.GTID:
                self._check(length, data[at + TYPE_OFFSET])
            self.events += 1
            at += length
        if at < end:
            self._head, self._left = bytes(data[at:]), 0
        else:
            self._left = at - end

    def finish(self) -> None:
        """
        The group has no more bytes.

        Raises:
            FormatError: it ends inside an event.
        """
        if self._left:
            raise FormatError(f"the last event goes {self._left} bytes past the end of the group")
        if self._head:
            raise FormatError(f"the group ends with {len(self._head)} bytes of an event header")

    def _join(self, data: Bytes) -> int:
        """Put a header together that was cut; return where the event behind it begins."""
        known = len(self._head)
        head = self._head + bytes(data[: HEADER_SIZE - known])
        if len(head) < HEADER_SIZE:
            self._head = head
            return len(data)
        self._head = b""
        (length,) = _LENGTH.unpack_from(head, LENGTH_OFFSET)
        self._check(length, head[TYPE_OFFSET])
        self.events += 1
        return int(length) - known

    def _check(self, length: int, event_type: int) -> None:
        if length < HEADER_SIZE:
            raise FormatError(f"event {self.events + 1} of the group says it has {length} bytes")
        if event_type == EventType.GTID and self.events:
            raise FormatError(f"event {self.events + 1} of the group is another GTID event")


class TreeCheck:
    """
    Reads groups with out-of-band pieces as readers do.

    Args:
        pages: the files.
    """

    def __init__(self, pages: BinlogDirectory) -> None:
        self._pages = pages

    def check(self, place: Place) -> list[Finding]:
        """Read the group of the commit record at *place*; return what is wrong with it."""
        findings: list[Finding] = []
        for _ in range(LOOKS_MAX):
            findings = self._read(place)
            if all(finding.kind in _RIGHT for finding in findings):
                break
            self._pages.refresh()  # the pieces may have been written, or purged, meanwhile
            if place.file_no < self._pages.first_file():
                return []
        return findings

    def _read(self, place: Place) -> list[Finding]:
        reader = GroupReader(self._pages, place.position)
        walk = EventWalk()
        findings = []
        kind = Kind.OOB_UNREADABLE
        group = None
        try:
            group = reader.next()
            if group is None or group.position != place.position:
                raise FormatError("the commit record cannot be found again")
            for piece in group.pieces():
                kind = Kind.EVENT_LENGTH
                walk.feed(piece)
                kind = Kind.OOB_UNREADABLE
            kind = Kind.EVENT_LENGTH
            walk.finish()
        except FormatError as error:
            if kind is Kind.OOB_UNREADABLE and error.__cause__ is not None:
                kind = Kind.OOB_TREE  # the reader says so in its own words, at the commit record
                if group is not None and self._was_purged(group):
                    kind = Kind.OOB_PURGED
            text = error.what if error.file is None or error.__cause__ is not None else str(error)
            findings.append(Finding.at(kind, place, text))
        except DiskError as error:
            findings.append(Finding.at(Kind.OOB_UNREADABLE, place, str(error)))
        findings += [Finding.at(Kind.OOB_FIRST, place, text) for text in reader.reports]
        return findings

    def _was_purged(self, group: StoredGroup) -> bool:
        """Tell whether the group has pieces in files older than the oldest."""
        first = self._pages.first_file()
        return any(reference.first.file_no < first for reference in group.lists)
