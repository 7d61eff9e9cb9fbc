"""
What makes a group whole: from its GTID event to the event that ends it.

    GTID event says      the group ends with the first
    STANDALONE           event that is not INTVAR, RAND, USER_VAR, TABLE_MAP, ANNOTATE_ROWS, a piece
                         of LOAD DATA, or a rows event before the end of its statement
    otherwise            XID, XA_PREPARE, or QUERY that is just COMMIT or ROLLBACK

Some events belong to the stream and not to groups. They pass between groups, and those that a
primary makes up (timestamp 0) also inside one. START ALTER and COMMIT ALTER, XA PREPARE and XA
COMMIT are groups of their own.
Source: dump-protocol 5.2 and 8.
"""

from __future__ import annotations

from enum import Enum
from struct import Struct
from typing import TYPE_CHECKING, Final

from .errors import FormatError
from .event import HEADER_SIZE, QUERY_SIZES, EventHeader, EventType, type_name
from .event_splitter import WHOLE_EVENT_BYTES_MAX
from .fields import U16, U32
from .format_description import CREATED_OFFSET
from .gtid import Gtid
from .gtid_event import FIXED_SIZE, GtidFlag

if TYPE_CHECKING:
    from .fields import Buffer

# Body bytes that are ever looked at. A QUERY whose text would lie behind them is too long for
# COMMIT, unless its status variables are damaged.
TRACKER_PREFIX_BYTES_MAX: Final = WHOLE_EVENT_BYTES_MAX - HEADER_SIZE

_GTID_BODY: Final = Struct("<QIB")  # seq, domain, flags2
_ROWS_FLAGS_OFFSET: Final = 6
_STANDALONE: Final = int(GtidFlag.STANDALONE)  # plain: operations of IntFlag are slow
_STMT_END: Final = 1

_ENDING_QUERIES: Final = (b"COMMIT", b"ROLLBACK")
_ENDING_QUERY_SIZES: Final = frozenset(map(len, _ENDING_QUERIES))

_OF_THE_STREAM: Final = frozenset(
    (
        EventType.UNKNOWN,
        EventType.START_V3,
        EventType.STOP,
        EventType.ROTATE,
        EventType.SLAVE,
        EventType.FORMAT_DESCRIPTION,
        EventType.HEARTBEAT,
        EventType.BINLOG_CHECKPOINT,
        EventType.GTID_LIST,
        EventType.START_ENCRYPTION,
    )
)
_BEFORE_STANDALONE: Final = frozenset(
    (
        EventType.INTVAR,
        EventType.RAND,
        EventType.USER_VAR,
        EventType.TABLE_MAP,
        EventType.ANNOTATE_ROWS,
        EventType.BEGIN_LOAD_QUERY,
        EventType.APPEND_BLOCK,
        EventType.PARTIAL_ROW_DATA,
    )
)
ROWS: Final = frozenset(
    (
        EventType.WRITE_ROWS_V1,
        EventType.UPDATE_ROWS_V1,
        EventType.DELETE_ROWS_V1,
        EventType.WRITE_ROWS,
        EventType.UPDATE_ROWS,
        EventType.DELETE_ROWS,
        EventType.WRITE_ROWS_COMPRESSED_V1,
        EventType.UPDATE_ROWS_COMPRESSED_V1,
        EventType.DELETE_ROWS_COMPRESSED_V1,
        EventType.WRITE_ROWS_COMPRESSED,
        EventType.UPDATE_ROWS_COMPRESSED,
        EventType.DELETE_ROWS_COMPRESSED,
    )
)


class GroupStep(Enum):
    """What an event is to the groups of its stream."""

    OUTSIDE = "belongs to no group"
    BEGIN = "begins a group"
    INSIDE = "is in a group that goes on"
    END = "is the last of its group"
    CUT_OFF = "belongs to no group, and the one before it will never end"


class GroupTracker:
    """
    Follows a stream of events and tells where groups begin and end.

    `gtid` is the id of the group that is open, or None between groups.
    """

    __slots__ = ("_standalone", "gtid")

    def __init__(self) -> None:
        self.gtid: Gtid | None = None
        self._standalone = False

    @property
    def in_transaction(self) -> bool:
        """Whether a group is open that ends with XID, XA_PREPARE, COMMIT or ROLLBACK."""
        return self.gtid is not None and not self._standalone

    @classmethod
    def inside(cls, gtid: Gtid, *, standalone: bool) -> GroupTracker:
        """Return a tracker that has seen the GTID event of a group and nothing else."""
        tracker = cls()
        tracker.gtid = gtid
        tracker._standalone = standalone
        return tracker

    def add(self, header: EventHeader, body_prefix: Buffer, *, checksum_size: int = 0) -> GroupStep:
        """
        Take the next event of the stream and say what it is.

        Args:
            header: of the event.
            body_prefix: the body's beginning: all of an event that comes whole, and of a larger
                one at least `FIRST_PART_BYTES_MIN` less the header. Never more than
                `TRACKER_PREFIX_BYTES_MAX` bytes are looked at.
            checksum_size: bytes at the end of the event that are not body: 4 off the wire when
                the stream has checksums, else 0.

        Raises:
            FormatError: a GTID event inside a group, a group event without a group, or a body too
                short for its type.
        """
        code = header.type
        if code == EventType.GTID:
            return self._begin(header, body_prefix)
        if code in _OF_THE_STREAM or (code == EventType.INCIDENT and self.gtid is None):
            if self.gtid is not None and _is_restart(header, body_prefix):
                self.gtid = None
                return GroupStep.CUT_OFF
            return GroupStep.OUTSIDE
        if self.gtid is None:
            raise FormatError(f"{type_name(code)} event belongs to a group, but none has begun")
        if self._standalone:
            ends = self._ends_standalone(code, body_prefix)
        else:
            body_size = header.length - HEADER_SIZE - checksum_size
            ends = self._ends_transaction(code, body_prefix, body_size)
        if not ends:
            return GroupStep.INSIDE
        self.gtid = None
        return GroupStep.END

    def _begin(self, header: EventHeader, body: Buffer) -> GroupStep:
        if len(body) < FIXED_SIZE:
            raise FormatError(f"Gtid event with a body of only {len(body)} bytes")
        seq, domain, flags2 = _GTID_BODY.unpack_from(body)
        gtid = Gtid(domain, header.server_id, seq)
        if self.gtid is not None:
            raise FormatError(f"group {gtid} begins before group {self.gtid} has ended")
        if seq == 0:
            raise FormatError(f"group {gtid} has sequence number 0")
        self.gtid = gtid
        self._standalone = bool(flags2 & _STANDALONE)
        return GroupStep.BEGIN

    @staticmethod
    def _ends_standalone(code: int, body: Buffer) -> bool:
        if code in _BEFORE_STANDALONE:
            return False
        if code not in ROWS:
            return True
        if len(body) < _ROWS_FLAGS_OFFSET + U16.size:
            raise FormatError(f"{type_name(code)} event with a body of only {len(body)} bytes")
        flags: int = U16.unpack_from(body, _ROWS_FLAGS_OFFSET)[0]
        return bool(flags & _STMT_END)

    @staticmethod
    def _ends_transaction(code: int, body: Buffer, body_size: int) -> bool:
        if code in (EventType.XID, EventType.XA_PREPARE):
            return True
        if code != EventType.QUERY:
            return False
        if len(body) < QUERY_SIZES.size:
            raise FormatError(f"Query event with a body of only {len(body)} bytes")
        db_size, status_size = QUERY_SIZES.unpack_from(body)
        start = QUERY_SIZES.size + status_size + db_size + 1  # NUL behind the db name
        if start > body_size:
            raise FormatError(
                f"Query event with a body of {body_size} bytes has its text at {start}"
            )
        if body_size - start not in _ENDING_QUERY_SIZES:
            return False
        if body_size > len(body):
            raise FormatError(
                f"Query event of {body_size - start} characters begins them at {start}"
            )
        return bytes(body[start:body_size]).upper() in _ENDING_QUERIES


def _is_restart(header: EventHeader, body: Buffer) -> bool:
    """Tell whether an event says that the writer began anew: what it left open is lost."""
    if header.type != EventType.FORMAT_DESCRIPTION:
        return False
    if len(body) < CREATED_OFFSET + U32.size:
        raise FormatError(f"Format_desc event with a body of only {len(body)} bytes")
    return bool(U32.unpack_from(body, CREATED_OFFSET)[0])
