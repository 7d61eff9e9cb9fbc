"""The shape of a group: whether events, as they come, make up one whole group."""

from copy import copy
from struct import Struct

from ibb.protocol.event import HEADER_SIZE, QUERY_SIZES, EventType, type_name
from ibb.protocol.event_group import GroupStep, GroupTracker
from ibb.protocol.event_splitter import EventPart
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidFlag

from .errors import GroupError

_ANY_GTID = Gtid(0, 0, 1)  # it only stands in messages that nobody sees
_STANDALONE = int(GtidFlag.STANDALONE)
_TRANSACTIONAL = int(GtidFlag.TRANSACTIONAL)
_PARALLEL = int(GtidFlag.ALLOW_PARALLEL)

TRANSACTION_FLAGS2 = _PARALLEL | _TRANSACTIONAL  # of a group that ends with XID

_HEADER = Struct("<4xB4xII2x")  # type, length, log_pos
_ENDINGS = (b"COMMIT", b"ROLLBACK")
_XID = int(EventType.XID)
_QUERY = int(EventType.QUERY)
_ROWS = frozenset(
    map(
        int,
        (
            EventType.TABLE_MAP,
            EventType.ANNOTATE_ROWS,
            EventType.WRITE_ROWS_V1,
            EventType.UPDATE_ROWS_V1,
            EventType.DELETE_ROWS_V1,
        ),
    )
)


def is_whole_transaction(events: bytes | bytearray) -> bool:
    """
    Tell quickly whether *events* are a transaction as most are, whole, with no log positions.

    They are what `GroupShape` would find to be a group with `TRANSACTION_FLAGS2`: rows or
    statements, then XID. False says only that it takes a closer look.
    """
    start, size = 0, len(events)
    while size - start >= HEADER_SIZE:
        code, length, log_pos = _HEADER.unpack_from(events, start)
        end = start + length
        if log_pos or length < HEADER_SIZE or end > size:
            return False
        if code == _XID:
            return bool(end == size)
        if code not in _ROWS and not (code == _QUERY and _goes_on(events[start:end])):
            return False
        start = end
    return False


def _goes_on(query: bytes | bytearray) -> bool:
    """Tell whether a QUERY event is whole and surely does not end its transaction."""
    if len(query) < HEADER_SIZE + QUERY_SIZES.size:
        return False
    db_size, status_size = QUERY_SIZES.unpack_from(query, HEADER_SIZE)
    text = HEADER_SIZE + QUERY_SIZES.size + status_size + db_size + 1
    return text <= len(query) and not query[-8:].upper().endswith(_ENDINGS)


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

    @property
    def is_in_transaction(self) -> bool:
        """A group of any other kind would have ended."""
        return bool(self._trackers) and all(tracker.in_transaction for _, tracker in self._trackers)

    def pass_plain(self) -> None:
        """Take events that leave a transaction as it is, see `count_plain`."""
        assert self.is_in_transaction
        self._ended = None

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
