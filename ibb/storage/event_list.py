"""
One of the two lists of events that a group may have, on its way into the store.

The statement list holds what non-transactional engines did, the transaction list the rest; in the
group the former comes first. Each leaves in pieces as it grows. Source: ibb-format 5.1, 6.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ibb.protocol.event import LOG_POS_OFFSET
from ibb.protocol.event_splitter import EventPart, EventSplitter
from ibb.protocol.plain_events import clear_positions, count_others, count_plain

from .group_shape import GroupShape
from .oob_forest import ForestMark, OobForest

_LOG_POS = slice(LOG_POS_OFFSET, LOG_POS_OFFSET + 4)
_NO_LOG_POS = bytes(4)
PLAIN_BYTES_MAX = 1 << 20  # that are kept before they leave: what is written may be of any size


class ListMark(NamedTuple):
    """A savepoint of a list; it shares the bytes that it keeps."""

    kept: tuple[bytes | bytearray, ...]
    size: int
    forest: ForestMark
    shape: GroupShape | None


class EventList:
    """
    Events cut anywhere, kept until they make a piece.

    Attributes:
        size: bytes kept.
        forest: the pieces that have left.
        shape: of the events so far; None before the first.
    """

    def __init__(self) -> None:
        self.size = 0
        self.forest = OobForest()
        self.shape: GroupShape | None = None
        self._kept: list[bytes | bytearray] = []
        self._growing: bytearray | None = None  # the last of them, while nobody else has it
        self._splitter = EventSplitter()

    @property
    def at_boundary(self) -> bool:
        """The events so far are whole."""
        return self._splitter.at_boundary

    @property
    def has_events(self) -> bool:
        """At least one event, or the beginning of one, was written."""
        return self.shape is not None or not self._splitter.at_boundary

    def feed(self, data: bytes | memoryview) -> Iterator[EventPart]:
        """
        Cut the next bytes into events; `keep` those parts that belong to the list.

        Raises:
            FormatError: they are no events.
        """
        return self._splitter.feed(data)

    def keep(self, part: EventPart) -> None:
        """Keep a part, its log position set to 0."""
        if part.first:
            self._append(without_position(part.data))
        else:
            self._append(bytes(part.data))

    @property
    def takes_plain(self) -> bool:
        """Plain events, see `count_plain`, may be kept as they are."""
        return self.at_boundary and self.shape is not None and self.shape.is_in_transaction

    def keep_plain(self, events: memoryview) -> int:
        """Keep plain events from the beginning, and return how many bytes they have."""
        assert self.shape is not None
        size = count_plain(events[:PLAIN_BYTES_MAX])
        if size:
            kept = self._growing
            if kept is None:
                kept = self._growing = bytearray()
                self._kept.append(kept)
            start = len(kept)
            kept += events[:size]
            clear_positions(kept, start)
            self.shape.pass_plain()
            self.size += size
        return size

    def step(self, data: memoryview) -> int:
        """Return how much of *data* to feed in order not to pass the beginning of a plain event."""
        if self.at_boundary and (others := count_others(data)):
            return others
        return self._splitter.step(data)

    def take(self, size_min: int, piece_size: int, write: Callable[[memoryview], int]) -> None:
        """
        Hand out what is kept in pieces while at least *size_min* bytes are left.

        Those count as gone of which *write* returns the bytes.
        """
        kept = memoryview(self._kept[0] if len(self._kept) == 1 else b"".join(self._kept))
        try:
            while len(kept) >= size_min:
                whole = len(kept) if size_min < piece_size else len(kept) // piece_size * piece_size
                kept = kept[write(kept[:whole]) :]
        finally:
            self._growing = bytearray(kept)
            self._kept = [self._growing]
            self.size = len(kept)

    def contents(self) -> bytes:
        """Return what is kept."""
        return b"".join(self._kept)

    def save(self) -> ListMark:
        """Return a savepoint; the events so far are whole."""
        assert self.at_boundary
        self._growing = None
        shape = None if self.shape is None else self.shape.copy()
        return ListMark(tuple(self._kept), self.size, self.forest.save(), shape)

    def restore(self, mark: ListMark) -> None:
        """Go back to a savepoint; pieces that left since are garbage, and indexes repeat."""
        self._kept, self._growing = list(mark.kept), None
        self.size = mark.size
        self.forest.restore(mark.forest)
        self.shape = None if mark.shape is None else mark.shape.copy()
        self._splitter = EventSplitter()

    def _append(self, data: bytes) -> None:
        self._kept.append(data)
        self._growing = None
        self.size += len(data)


def without_position(event: bytes | memoryview) -> bytes:
    """Return an event, or its beginning, with log_pos 0."""
    if event[_LOG_POS] == _NO_LOG_POS:
        return bytes(event)
    changed = bytearray(event)
    changed[_LOG_POS] = _NO_LOG_POS
    return bytes(changed)
