"""The shape of a group: whether events, as they come, make up one whole group."""

from copy import copy

from ibb.protocol.event import HEADER_SIZE, EventType, type_name
from ibb.protocol.event_group import GroupStep, GroupTracker
from ibb.protocol.event_splitter import EventPart
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidFlag

from .errors import GroupError

_ANY_GTID = Gtid(0, 0, 1)  # it only stands in messages that nobody sees
_STANDALONE = int(GtidFlag.STANDALONE)
_TRANSACTIONAL = int(GtidFlag.TRANSACTIONAL)
_PARALLEL = int(GtidFlag.ALLOW_PARALLEL)


class GroupShape:
    """
    Follows events under the flags of each GTID event that their group may turn out to have.

    Args:
        flags2: of the GTID event that was given; None: a transaction or one statement, and the
            events will tell.
    """

    __slots__ = ("_ended", "_given", "_trackers")

    def __init__(self, flags2: int | None) -> None:
        self._given = flags2
        candidates = (_PARALLEL | _TRANSACTIONAL, _PARALLEL | _STANDALONE)
        self._trackers = [
            (candidate, GroupTracker.inside(_ANY_GTID, standalone=bool(candidate & _STANDALONE)))
            for candidate in (candidates if flags2 is None else (flags2,))
        ]
        self._ended: int | None = None

    def copy(self) -> "GroupShape":
        """Return an independent shape that has seen the same events."""
        shape = GroupShape(self._given)
        shape._trackers = [(flags2, copy(tracker)) for flags2, tracker in self._trackers]
        shape._ended = self._ended
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
        header = part.header
        body = part.data[HEADER_SIZE:]
        going_on = []
        self._ended = None
        for flags2, tracker in self._trackers:
            step = tracker.add(header, body)
            if step is GroupStep.INSIDE:
                going_on.append((flags2, tracker))
            elif step is not GroupStep.END:
                raise GroupError(f"{type_name(header.type)} event is no part of a group")
            elif self._ended is None:
                self._ended = self._flags_of(flags2, header.type)
        self._trackers = going_on
        if not going_on and self._ended is None:
            raise GroupError(f"{type_name(header.type)} event behind the end of the group")

    def finished(self) -> int:
        """
        Return flags2 of the GTID event under which the last event ended the group.

        Raises:
            GroupError: it goes on.
        """
        if self._ended is None:
            raise GroupError("the group does not end with XID, COMMIT, ROLLBACK or one statement")
        return self._ended

    def _flags_of(self, flags2: int, code: int) -> int:
        """Return the flags of a group that ends with an event of type *code*."""
        if self._given is not None:
            return flags2
        if code == EventType.XA_PREPARE:
            raise GroupError("a prepared XA transaction needs its GTID event")
        if code == EventType.QUERY:
            return flags2 & ~_TRANSACTIONAL  # COMMIT of a non-transactional engine
        return flags2
