"""
From the events of a group as stored to those that one kind of client gets.

Stored events have no checksum and log_pos 0. A client's have a CRC-32 if it asked for checksums,
and positions of its stream if it needs them, else 0; some are left out or replaced. Equal settings
give equal bytes, always, because replicas that reconnect inside a group skip events by number.
Source: dump-protocol 4.2, 4.7, 4.12, 5.2; ibb-format 5.1.
"""

from __future__ import annotations

from enum import Enum, auto
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from .checksum import CHECKSUM_SIZE, crc32
from .errors import FormatError
from .event import (
    EVENT_BYTES_MAX,
    FLAGS_OFFSET,
    HEADER_SIZE,
    LENGTH_OFFSET,
    EventFlag,
    EventHeader,
    EventType,
    type_name,
)
from .event_splitter import EventSplitter
from .fields import U16, U32
from .gtid_event import FIXED_SIZE, GtidFlag
from .partial_rows import FragmentJoiner
from .stand_in import replace_with_begin, replace_with_dummy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .event_splitter import EventPart
    from .fields import Buffer
    from .stream_position import StreamPosition

CAPABILITY_ANNOTATE: Final = 1
CAPABILITY_HOLES: Final = 2
CAPABILITY_GTID: Final = 4

_LENGTH_AND_LOG_POS: Final = Struct("<II")
_GTID_FLAGS2_OFFSET: Final = HEADER_SIZE + FIXED_SIZE - 1
_ACCEPT_OWN: Final = int(EventFlag.ACCEPT_OWN)


class WirePart(NamedTuple):
    """
    An event for a client, or a part of a large one.

    Args:
        data: bytes of the event in order.
        total_length: bytes of the whole event, checksum included.
        first: this part begins the event.
        last: this part ends the event.
    """

    data: bytes | memoryview
    total_length: int
    first: bool
    last: bool


def parts_behind(parts: Iterator[WirePart], skip: int) -> Iterator[WirePart]:
    """Yield the parts behind *skip* bytes, which are whole events."""
    for part in parts:
        if skip > 0:
            skip -= len(part.data)
        else:
            yield part


class _Fate(Enum):
    """What becomes of an event."""

    SEND = auto()
    DROP = auto()
    DUMMY = auto()
    BEGIN = auto()
    BY_GTID_FLAGS = auto()
    JOIN = auto()
    REFUSE = auto()


# Belong to the stream and not to groups; MariaDB would not send them as they were stored.
_NEVER_SENT: Final = (
    EventType.STOP,
    EventType.ROTATE,
    EventType.HEARTBEAT,
    EventType.HEARTBEAT_V2,
    EventType.BINLOG_CHECKPOINT,
    EventType.GTID_LIST,
    EventType.START_ENCRYPTION,
)
# Leaving these out would lose changes, and MariaDB's replicas stop at them.
_REFUSED: Final = (
    EventType.FORMAT_DESCRIPTION,
    EventType.PARTIAL_UPDATE_ROWS,
    EventType.TRANSACTION_PAYLOAD,
)


class EventEncoder:
    """
    Encodes groups for clients of one kind; keeps nothing from one group to the next.

    Args:
        checksum: events carry a CRC-32.
        annotate: the client asked for ANNOTATE_ROWS (dump flag 2).
        capability: value of `@mariadb_slave_capability`.
        skip_marked: leave out events marked with `skip_replication`.
        join_fragments: the client does not know fragments of rows events and gets the event.
        positions: where the client is; whoever sends the events moves it on. None: log_pos is 0.
    """

    __slots__ = ("_checksum_size", "_fates", "_gtid_standalone_fate", "_marked", "_positions")

    def __init__(
        self,
        checksum: bool,
        annotate: bool,
        capability: int,
        skip_marked: bool,
        *,
        join_fragments: bool = True,
        positions: StreamPosition | None = None,
    ) -> None:
        self._positions = positions
        drop_or_dummy = _Fate.DROP if capability >= CAPABILITY_HOLES else _Fate.DUMMY
        fates: dict[int, _Fate] = dict.fromkeys(_NEVER_SENT, _Fate.DROP)
        fates |= dict.fromkeys(_REFUSED, _Fate.REFUSE)
        if not annotate and capability != CAPABILITY_ANNOTATE:
            fates[EventType.ANNOTATE_ROWS] = drop_or_dummy
        if capability < CAPABILITY_GTID:
            fates[EventType.GTID] = _Fate.BY_GTID_FLAGS
        if join_fragments:
            fates[EventType.PARTIAL_ROW_DATA] = _Fate.JOIN
        self._checksum_size = CHECKSUM_SIZE if checksum else 0
        self._fates = fates
        self._gtid_standalone_fate = drop_or_dummy
        self._marked = int(EventFlag.SKIP_REPLICATION) if skip_marked else 0

    def encode_group(self, pieces: Iterable[Buffer]) -> Iterator[WirePart]:
        """
        Yield the events of one group, or of several that follow one another, for the client.

        Args:
            pieces: the stored bytes, cut anywhere; a piece may be reused when the next one is
                asked for.

        Raises:
            FormatError: an event of impossible length, one that has no place in a group, or the
                last piece ends inside an event.
            SqlError: 1236, an event cannot be replaced for so old a client.
        """
        splitter = EventSplitter(EVENT_BYTES_MAX - CHECKSUM_SIZE)
        large: _LargeEvent | _JoinedEvent | None = None
        joined: _JoinedEvent | None = None  # not all of its fragments have come
        fates, marked = self._fates, self._marked
        for piece in pieces:
            for part in splitter.feed(piece):
                header, data, first, last = part
                if not first:
                    assert large is not None  # the splitter begins every event with a first part
                    yield from large.encode(part)
                    continue
                fate = _Fate.SEND
                if header.type in fates or header.flags & marked:
                    fate = self._fate(header, data)
                if fate is _Fate.JOIN or joined is not None:
                    joined = self._join(joined, header)
                if joined is not None:
                    large = joined
                    yield from joined.encode(part)
                elif not last:
                    large = _LargeEvent(header, fate, self._checksum_size, self._positions)
                    yield from large.encode(part)
                elif fate is not _Fate.DROP:
                    event = self._whole_event(header, data, fate)
                    # A call of WirePart takes twice the time, once an event.
                    yield tuple.__new__(WirePart, (event, len(event), True, True))
        if not splitter.at_boundary or (joined is not None and not joined.done):
            raise FormatError("event group ends inside an event")

    def _fate(self, header: EventHeader, data: bytes | memoryview) -> _Fate:
        """Decide what becomes of the event whose first or only part is *data*."""
        if header.flags & self._marked:
            return _Fate.DROP
        fate = self._fates.get(header.type, _Fate.SEND)
        if fate is _Fate.REFUSE:
            raise FormatError(f"{type_name(header.type)} event inside a group")
        if fate is _Fate.BY_GTID_FLAGS:
            if len(data) <= _GTID_FLAGS2_OFFSET:
                raise FormatError(f"Gtid event of only {len(data)} bytes")
            standalone = data[_GTID_FLAGS2_OFFSET] & GtidFlag.STANDALONE
            return self._gtid_standalone_fate if standalone else _Fate.BEGIN
        return fate

    def _join(self, joined: _JoinedEvent | None, header: EventHeader) -> _JoinedEvent | None:
        """Return what takes the event that begins now: the one that its fragment belongs to."""
        if joined is None or joined.done:
            if self._fates.get(header.type) is not _Fate.JOIN:
                return None
            return _JoinedEvent(self._checksum_size, self._positions)
        if header.type != EventType.PARTIAL_ROW_DATA:
            raise FormatError(f"{type_name(header.type)} event between fragments of a rows event")
        return joined

    def _whole_event(self, header: EventHeader, data: bytes | memoryview, fate: _Fate) -> bytes:
        """Return a small event as the client gets it."""
        event = _patched(header, data, self._checksum_size, self._positions)
        if fate is _Fate.BEGIN:
            replace_with_begin(event)
        elif fate is _Fate.DUMMY:
            replace_with_dummy(event)
        if self._checksum_size:
            event += U32.pack(crc32(event))
        return bytes(event)


class _LargeEvent:
    """A large event on its way through, with the checksum of what has passed."""

    __slots__ = ("_checksum_size", "_crc", "_fate", "_positions", "_total_length")

    def __init__(
        self,
        header: EventHeader,
        fate: _Fate,
        checksum_size: int,
        positions: StreamPosition | None,
    ) -> None:
        self._fate = fate
        self._positions = positions
        self._checksum_size = checksum_size
        self._total_length = header.length + checksum_size
        self._crc = 0

    def encode(self, part: EventPart) -> Iterator[WirePart]:
        """Yield what the client gets for the next part of the event."""
        if self._fate is _Fate.DROP:
            return
        data = part.data
        if part.first:
            event = _patched(part.header, data, self._checksum_size, self._positions)
            if self._fate is _Fate.DUMMY:
                replace_with_dummy(event)
            data = bytes(event)
        elif self._fate is _Fate.DUMMY:
            data = b" " * len(data)  # the comment of the first part goes on
        if not self._checksum_size:
            yield WirePart(data, self._total_length, part.first, part.last)
            return
        self._crc = crc32(data, self._crc)
        yield WirePart(data, self._total_length, part.first, False)
        if part.last:
            yield WirePart(U32.pack(self._crc), self._total_length, False, True)


class _JoinedEvent:
    """A rows event that comes in fragments, on its way through."""

    __slots__ = ("_checksum_size", "_event", "_joiner", "_positions")

    def __init__(self, checksum_size: int, positions: StreamPosition | None) -> None:
        self._checksum_size = checksum_size
        self._positions = positions
        self._joiner = FragmentJoiner()
        self._event: _LargeEvent | None = None

    @property
    def done(self) -> bool:
        """Whether the last fragment has come."""
        return self._joiner.done

    def encode(self, part: EventPart) -> Iterator[WirePart]:
        """Yield what the client gets for the next part of a fragment."""
        inner = self._joiner.take(part)
        if self._event is None:
            self._event = _LargeEvent(
                inner.header, _Fate.SEND, self._checksum_size, self._positions
            )
        yield from self._event.encode(inner)


def _patched(
    header: EventHeader, data: Buffer, checksum_size: int, positions: StreamPosition | None
) -> bytearray:
    """Copy the first or only part of an event; give it length and position on the wire."""
    event = bytearray(data)
    length = header.length + checksum_size
    log_pos = 0 if positions is None else positions.log_pos(length)
    _LENGTH_AND_LOG_POS.pack_into(event, LENGTH_OFFSET, length, log_pos)
    if header.flags & _ACCEPT_OWN:  # means something inside a replica only
        U16.pack_into(event, FLAGS_OFFSET, header.flags & ~_ACCEPT_OWN)
    return event
