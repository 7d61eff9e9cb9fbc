"""
Cutting a byte stream into events, wherever the pieces of the stream happen to end.

Small events come whole, so that whoever looks into them has all of them; large ones come in parts
and are never collected.
Source: ibb-format 5.1 (events may be cut anywhere between pieces), dump-protocol 4.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from .errors import FormatError
from .event import EVENT_BYTES_MAX, HEADER_SIZE, LENGTH_OFFSET, EventHeader, type_name
from .fields import U32

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .fields import Buffer

WHOLE_EVENT_BYTES_MAX: Final = 64 * 1024  # events up to this size come as one part
FIRST_PART_BYTES_MIN: Final = 128  # of a larger event: header, post-header and more


class EventPart(NamedTuple):
    """
    An event, or a part of one above `WHOLE_EVENT_BYTES_MAX`.

    Args:
        header: of the event, with every part of it.
        data: bytes of the event in order; the first part's data begins with the header and has
            at least `FIRST_PART_BYTES_MIN` bytes. A view is valid while its piece is.
        first: this part begins the event.
        last: this part ends the event.
    """

    header: EventHeader
    data: bytes | memoryview
    first: bool
    last: bool

    @property
    def total_length(self) -> int:
        """Bytes of the whole event."""
        return self.header.length


class EventSplitter:
    """
    Cuts pieces of a stream into events.

    It holds back at most `WHOLE_EVENT_BYTES_MAX` bytes: the beginning of one small event, or the
    first `FIRST_PART_BYTES_MIN` bytes of a large one.

    Args:
        event_bytes_max: a longer event is damage; up to `EVENT_BYTES_MAX`.
    """

    __slots__ = ("_event_bytes_max", "_header", "_held", "_left", "_wanted")

    def __init__(self, event_bytes_max: int = EVENT_BYTES_MAX) -> None:
        assert HEADER_SIZE <= event_bytes_max <= EVENT_BYTES_MAX
        self._event_bytes_max = event_bytes_max
        self._held = bytearray()  # beginning of an event that cannot be given out yet
        self._wanted = HEADER_SIZE  # bytes that `_held` needs before it is looked at again
        self._header: EventHeader | None = None  # of the large event that is passing
        self._left = 0  # bytes of it still to come

    @property
    def at_boundary(self) -> bool:
        """Whether the bytes so far end where an event ends."""
        return not self._held and not self._left

    def step(self, piece: Buffer) -> int:
        """Return how much of *piece* to feed in order not to pass the end of an event."""
        if self._left or self._held:
            return min(self._left or self._wanted - len(self._held), len(piece))
        if len(piece) < HEADER_SIZE:
            return len(piece)
        length: int = U32.unpack_from(piece, LENGTH_OFFSET)[0]
        return min(max(length, HEADER_SIZE), len(piece))

    def feed(self, piece: Buffer) -> Iterator[EventPart]:
        """
        Take the next *piece* of the stream and yield the parts that it completes.

        The iterator must be run to its end before the next piece is fed. Parts are views of
        *piece* where no bytes had to be held back.

        Raises:
            FormatError: an event length below the header's 19 bytes or above the limit; the
                splitter cannot go on after that.
        """
        view = memoryview(piece)
        offset, size = 0, len(view)
        while offset < size:
            if self._left:
                data = view[offset : offset + self._left]
                offset += len(data)
                yield self._go_on(data)
            elif self._held:
                missing = view[offset : offset + self._wanted - len(self._held)]
                offset += len(missing)
                self._held += missing
                if len(self._held) == self._wanted and (part := self._release()):
                    yield part
            else:
                header = self._look(view, offset)
                end = min(offset + header.length, size) if header else size
                if header and end - offset >= self._wanted:
                    yield self._begin(header, view[offset:end])
                else:
                    self._held += view[offset:]
                offset = end

    def _look(self, view: memoryview, offset: int) -> EventHeader | None:
        """Return the header at *offset* if it is there, and note how much is wanted from there."""
        if len(view) - offset < HEADER_SIZE:
            self._wanted = HEADER_SIZE
            return None
        header = EventHeader.unpack(view, offset)
        length = header.length
        if not HEADER_SIZE <= length <= self._event_bytes_max:
            raise FormatError(
                f"{type_name(header.type)} event of {length} bytes; "
                f"{HEADER_SIZE} to {self._event_bytes_max} are allowed"
            )
        self._wanted = length if length <= WHOLE_EVENT_BYTES_MAX else FIRST_PART_BYTES_MIN
        return header

    def _release(self) -> EventPart | None:
        """Give out what is held, or only note how much more is wanted before that."""
        with memoryview(self._held) as view:
            header = self._look(view, 0)
        if header is None or len(self._held) < self._wanted:
            return None
        data = bytes(self._held)
        self._held.clear()
        return self._begin(header, data)

    def _begin(self, header: EventHeader, data: bytes | memoryview) -> EventPart:
        self._left = header.length - len(data)
        self._header = header
        return tuple.__new__(EventPart, (header, data, True, not self._left))  # faster than a call

    def _go_on(self, data: memoryview) -> EventPart:
        assert self._header is not None
        self._left -= len(data)
        return EventPart(self._header, data, False, not self._left)
