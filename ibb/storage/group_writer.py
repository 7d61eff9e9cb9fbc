"""
The group writer: one event group on its way into the store, in bounded memory.

Events are checked for their framing and for being one group, freed of log positions, and kept
until they outgrow a piece; then they leave as out-of-band records while the group is still open.
The commit record makes the group visible; without it what was written is garbage that nothing
points to. Source: ibb-format 5.1, 6.1, 9.2.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

from ibb.protocol.errors import FormatError
from ibb.protocol.event import HEADER_SIZE, LOG_POS_OFFSET, EventType, type_name
from ibb.protocol.event_group import GroupStep, GroupTracker
from ibb.protocol.event_splitter import EventPart, EventSplitter
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent, GtidFlag, read_gtid

from .commit_position import CommitPosition
from .errors import GroupError
from .oob import OobForest

_LOG_POS = slice(LOG_POS_OFFSET, LOG_POS_OFFSET + 4)
_NO_LOG_POS = bytes(4)
_ANY_GTID = Gtid(0, 0, 1)  # only its flags are looked at


class GroupSink(Protocol):
    """What a group writer needs of its store."""

    def write_oob(self, group: object, forest: OobForest, piece: bytes | memoryview) -> None:
        """Write one out-of-band piece."""

    def commit_group(
        self, group: object, gtid: Gtid, forest: OobForest, payload: bytes
    ) -> CommitPosition:
        """Write the commit record."""

    def forget_group(self, group: object) -> None:
        """Let go of the files that the group referred to."""

    def sync_to(self, lsn: int) -> None:
        """Return when everything before *lsn* is durable."""


class GroupWriter:
    """
    An open event group; made by `Store.begin`, used by one thread at a time.

    As a context manager it rolls back unless the group was committed.
    """

    def __init__(self, store: GroupSink, piece_size: int, check: Callable[[], None]) -> None:
        self._store = store
        self._piece_size = piece_size
        self._check_store = check
        self._splitter = EventSplitter()
        self._shape: _Shape | None = None
        self._gtid_event: bytes | None = None
        self._buffer: list[bytes | memoryview] = []
        self._buffered = 0
        self._forest = OobForest()
        self._open = True

    def write(self, events: bytes | bytearray | memoryview) -> None:
        """
        Add events without checksums, in pieces cut anywhere.

        The first event may be the group's GTID event; otherwise `commit` makes one. Positions in
        event headers are stored as 0.

        Args:
            events: the bytes; the caller may reuse its buffer after the call.

        Raises:
            GroupError: the bytes are not events, or not those of one group.
            StoreFull: a piece had to be written and there is no room: roll the group back.
            StoreFailed: the store has stopped writing.
        """
        self._check_open()
        try:
            for part in self._splitter.feed(bytes(events)):
                if part.first:
                    self._begin_event(part)
                else:
                    self._keep(part.data)
                if self._buffered >= self._piece_size:
                    self._write_pieces(self._piece_size)
        except FormatError as error:
            raise GroupError(f"not the events of one group: {error}") from error

    def commit(self, gtid: Gtid, *, wait: bool = True) -> CommitPosition:
        """
        Publish the group as *gtid*.

        Args:
            gtid: its id; must be that of the GTID event if one was written.
            wait: return only when the group is durable. Without it the caller must not tell
                anybody of the commit before `Store.sync` has returned.

        Returns:
            Where the binlog ends behind the group, and the redo LSN that makes it durable.

        Raises:
            GroupError: the events are not a whole group, or belong to another GTID.
            StoreFull: there is no room; the group is still open.
            StoreFailed: the store has stopped writing.
        """
        self._check_open()
        head = self._head(gtid)
        if self._forest.count:
            self._write_pieces(1)
            payload = head
        else:
            payload = b"".join((head, *self._buffer))
        position = self._store.commit_group(self, gtid, self._forest, payload)
        self._open = False
        if wait:
            self._store.sync_to(position.lsn)
        return position

    def rollback(self) -> None:
        """Give the group up; a second call, or one after `commit`, does nothing."""
        if self._open:
            self._open = False
            self._buffer.clear()
            self._store.forget_group(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.rollback()

    def _begin_event(self, part: EventPart) -> None:
        event = bytearray(part.data)
        event[_LOG_POS] = _NO_LOG_POS
        if self._shape is None:
            if part.header.type == EventType.GTID:
                self._gtid_event = bytes(event)
                self._shape = _Shape([GtidEvent.parse(event)])
                return
            self._shape = _Shape.unknown(part.header.timestamp)
        self._shape.add(part)
        self._keep(event)

    def _keep(self, data: bytes | bytearray | memoryview) -> None:
        self._buffer.append(bytes(data))
        self._buffered += len(data)

    def _write_pieces(self, size_min: int) -> None:
        """Write out-of-band records while at least *size_min* bytes are kept."""
        kept = memoryview(b"".join(self._buffer))
        try:
            while len(kept) >= size_min:
                self._store.write_oob(self, self._forest, kept[: self._piece_size])
                kept = kept[self._piece_size :]
        finally:
            self._buffer = [bytes(kept)] if kept else []
            self._buffered = len(kept)

    def _head(self, gtid: Gtid) -> bytes:
        """Return the GTID event, made or as it was written."""
        if gtid.seq == 0:
            raise GroupError(f"sequence number 0 in GTID {gtid}")
        if self._shape is None or not self._splitter.at_boundary:
            raise GroupError(f"group {gtid} is empty or ends inside an event")
        made = self._shape.finished()
        if self._gtid_event is None:
            return GtidEvent(gtid, made.timestamp, made.flags2).encode()
        found, _ = read_gtid(self._gtid_event)
        if found != gtid:
            raise GroupError(f"the group's GTID event says {found}, commit says {gtid}")
        return self._gtid_event

    def _check_open(self) -> None:
        self._check_store()
        if not self._open:
            raise GroupError("the group was committed or rolled back before")


class _Shape:
    """Follows the events of a group under each GTID event that it may turn out to have."""

    def __init__(self, candidates: list[GtidEvent]) -> None:
        self._trackers = [(candidate, GroupTracker()) for candidate in candidates]
        for candidate, tracker in self._trackers:
            event = candidate.encode()
            part = next(EventSplitter().feed(event))
            tracker.add(part.header, event[HEADER_SIZE:])
        self._ended: list[GtidEvent] = []

    @classmethod
    def unknown(cls, timestamp: int) -> "_Shape":
        """Return the shape of a group without a GTID event: a transaction, or one statement."""
        parallel = GtidFlag.ALLOW_PARALLEL
        flags = (parallel | GtidFlag.TRANSACTIONAL, parallel | GtidFlag.STANDALONE)
        return cls([GtidEvent(_ANY_GTID, timestamp, flags2) for flags2 in flags])

    def add(self, part: EventPart) -> None:
        """
        Take the first part of the next event.

        Raises:
            GroupError: no group has such an event here.
        """
        going_on = []
        self._ended = []
        for candidate, tracker in self._trackers:
            step = tracker.add(part.header, part.data[HEADER_SIZE:])
            if step is GroupStep.END:
                if part.header.type == EventType.XA_PREPARE and len(self._trackers) > 1:
                    raise GroupError("a prepared XA transaction needs its GTID event")
                flags2 = candidate.flags2
                if part.header.type == EventType.QUERY:
                    flags2 &= ~GtidFlag.TRANSACTIONAL  # COMMIT of a non-transactional engine
                self._ended.append(GtidEvent(candidate.gtid, candidate.timestamp, flags2))
            elif step is GroupStep.INSIDE:
                going_on.append((candidate, tracker))
            else:
                raise GroupError(f"{type_name(part.header.type)} event is no part of a group")
        self._trackers = going_on
        if not going_on and not self._ended:
            raise GroupError(f"{type_name(part.header.type)} event behind the end of the group")

    def finished(self) -> GtidEvent:
        """
        Return the GTID event under which the last event ended the group.

        Raises:
            GroupError: it goes on.
        """
        if not self._ended:
            raise GroupError("the group does not end with XID, COMMIT, ROLLBACK or one statement")
        return self._ended[0]
