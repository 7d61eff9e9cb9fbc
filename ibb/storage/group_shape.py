"""The shape of a group: whether events, as they come, make up one whole group."""

from copy import copy

from ibb.protocol.event import HEADER_SIZE, EventHeader, EventType, type_name
from ibb.protocol.event_group import GroupStep, GroupTracker
from ibb.protocol.event_splitter import EventPart
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent, GtidFlag

from .errors import GroupError

_ANY_GTID = Gtid(0, 0, 1)  # only the flags beside it are looked at


class GroupShape:
    """
    Follows events under each GTID event that their group may turn out to have.

    Args:
        candidates: the GTID event that was given, or those that could be made.
    """

    def __init__(self, candidates: list[GtidEvent]) -> None:
        self._trackers: list[tuple[GtidEvent, GroupTracker]] = []
        for candidate in candidates:
            tracker = GroupTracker()
            event = candidate.encode()
            tracker.add(EventHeader.unpack(event), event[HEADER_SIZE:])
            self._trackers.append((candidate, tracker))
        self._may_be_made = len(candidates) > 1
        self._ended: list[GtidEvent] = []

    @classmethod
    def unknown(cls, timestamp: int) -> "GroupShape":
        """Return the shape of a group without a GTID event: a transaction, or one statement."""
        parallel = GtidFlag.ALLOW_PARALLEL
        flags = (parallel | GtidFlag.TRANSACTIONAL, parallel | GtidFlag.STANDALONE)
        return cls([GtidEvent(_ANY_GTID, timestamp, flags2) for flags2 in flags])

    def copy(self) -> "GroupShape":
        """Return an independent shape that has seen the same events."""
        shape = GroupShape([])
        shape._trackers = [(candidate, copy(tracker)) for candidate, tracker in self._trackers]
        shape._may_be_made = self._may_be_made
        shape._ended = list(self._ended)
        return shape

    @property
    def is_open(self) -> bool:
        """The events so far can be followed by more of the group."""
        return bool(self._trackers)

    def add(self, part: EventPart) -> None:
        """
        Take the first part of the next event.

        Raises:
            GroupError: no group has such an event here.
            FormatError: the event is damaged.
        """
        code = part.header.type
        going_on = []
        self._ended = []
        for candidate, tracker in self._trackers:
            step = tracker.add(part.header, part.data[HEADER_SIZE:])
            if step is GroupStep.END:
                self._ended.append(self._made(candidate, code))
            elif step is GroupStep.INSIDE:
                going_on.append((candidate, tracker))
            else:
                raise GroupError(f"{type_name(code)} event is no part of a group")
        self._trackers = going_on
        if not going_on and not self._ended:
            raise GroupError(f"{type_name(code)} event behind the end of the group")

    def finished(self) -> GtidEvent:
        """
        Return the GTID event under which the last event ended the group.

        Raises:
            GroupError: it goes on.
        """
        if not self._ended:
            raise GroupError("the group does not end with XID, COMMIT, ROLLBACK or one statement")
        return self._ended[0]

    def _made(self, candidate: GtidEvent, code: int) -> GtidEvent:
        """Return the GTID event of a group that ends with an event of type *code*."""
        flags2 = candidate.flags2
        if self._may_be_made and code == EventType.XA_PREPARE:
            raise GroupError("a prepared XA transaction needs its GTID event")
        if code == EventType.QUERY:
            flags2 &= ~int(GtidFlag.TRANSACTIONAL)  # COMMIT of a non-transactional engine
        return GtidEvent(candidate.gtid, candidate.timestamp, flags2)
