"""
Packets made once for several readers that pass the same stretch of history.

    block = blocks.find(seat, place)    None: make it, or whatever is to be made there
    blocks.keep(seat, block or None)    in any case then
    blocks.release(block)               when it was sent, or copied

A block begins at a place, and is found by it. What it holds follows from the place and the kind of
the packets alone; the ids of packets are counted on from those that it was made with. It is kept
for the readers that are a little behind who has made it, until all of them had it, or others were
used since and need its room. Nobody waits for a reader: only for who makes a block just then. A
reader alone makes nothing for others, and one that is sent what it reads without the interpreter
has a `PieceShelf` for that. Safe to use from several threads.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.server.config import SHARED_BYTES_MAX

from .packet_buffers import give_buffer
from .shared_pieces import SharedPieces

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ibb.protocol.fields import Buffer

    from .run_encoder import RunEncoder

REACH_BYTES: Final = SHARED_BYTES_MAX // 2  # of history, that a reader may be behind
BLOCK_COST: Final = 4096  # bytes of memory that a block takes beside its packets
WAIT_SECONDS_MAX: Final = 1.0  # for who makes a block; then one is made without waiting


class BlockPlace(NamedTuple):
    """
    Where a block begins.

    Attributes:
        generation: of the history.
        file_no, offset: behind the last group, or other record between groups.
        sent: bytes of the next group that come before; -1: it has not begun.
    """

    generation: int
    file_no: int
    offset: int
    sent: int

    def is_little_before(self, other: BlockPlace) -> bool:
        """Tell whether this is another place, or within reach before it in the same file."""
        distance = other.offset - self.offset + other.sent - self.sent
        return self <= other and self[:2] == other[:2] and distance <= REACH_BYTES


@dataclass(slots=True, eq=False)
class Block:
    """
    Packets, and what is behind them.

    Attributes:
        data: the packets.
        seq: sequence id of the first one.
        packets: how many there are, modulo 256.
        event_bytes: of the events in them.
        groups: the last domain, server and number of each domain whose group ends in it.
        code: why it ends, as `RunEncoder.run` says.
        after: is behind it.
        buffer: in which the packets lie, if it is to be given back.
        users: who reads them now; who has made it is the first.
        awaited: readers behind it.
        is_kept: it may be found.
    """

    data: Buffer
    seq: int
    packets: int
    event_bytes: int
    groups: list[tuple[int, int, int]]
    code: int
    after: RunEncoder
    buffer: memoryview | None
    users: int = 1
    awaited: int = 0
    is_kept: bool = False

    @property
    def cost(self) -> int:
        """Bytes of memory that it takes."""
        return BLOCK_COST + len(self.data if self.buffer is None else self.buffer)


@dataclass(slots=True, eq=False)
class Seat:
    """
    One reader.

    Attributes:
        kind: of its packets: readers of one kind get the same.
        place: where it is; None: it has not begun. May be set.
        making: what it makes for others.
    """

    kind: Hashable
    place: BlockPlace | None = None
    making: tuple[Hashable, BlockPlace] | None = None


class SharedBlocks:
    """
    The blocks of one history.

    Args:
        bytes_max: bytes of memory that blocks may take which can be found.

    Attributes:
        pieces: what they share that are sent to without the interpreter.
    """

    def __init__(self, bytes_max: int = SHARED_BYTES_MAX) -> None:
        self.pieces = SharedPieces(bytes_max)
        self._bytes_max = bytes_max
        self._mutex = threading.Lock()
        self._made = threading.Condition(self._mutex)
        self._seats: dict[Hashable, set[Seat]] = {}
        self._making: set[tuple[Hashable, BlockPlace]] = set()
        self._kept: OrderedDict[tuple[Hashable, BlockPlace], Block] = OrderedDict()  # by last use
        self._bytes = 0

    def join(self, seat: Seat) -> None:
        """Note one who reads, and keeps the history from being begun anew until it has left."""
        with self._mutex:
            self._seats.setdefault(seat.kind, set()).add(seat)

    def leave(self, seat: Seat) -> None:
        """Note that one reads no more; what was kept for one reader alone goes."""
        with self._mutex:
            seats = self._seats.get(seat.kind, set())
            seats.discard(seat)
            if not seats:
                self._seats.pop(seat.kind, None)
            if len(seats) <= 1:
                for key in [key for key in self._kept if key[0] == seat.kind]:
                    self._drop(key)

    def is_alone(self, seat: Seat) -> bool:
        """Tell whether there is nobody to share with."""
        return len(self._seats.get(seat.kind, ())) <= 1

    def find(self, seat: Seat, place: BlockPlace) -> Block | None:
        """Return the block that begins at a place, if there is one, or will be at once."""
        seat.place = place
        if self.is_alone(seat):
            return None
        key = seat.kind, place
        with self._mutex:
            while True:
                block = self._kept.get(key)
                if block is not None:
                    self._use(key, block)
                    return block
                if key not in self._making:
                    if self._behind(seat, place):
                        self._making.add(key)
                        seat.making = key
                    return None
                if not self._made.wait(WAIT_SECONDS_MAX):
                    return None

    def keep(self, seat: Seat, block: Block | None) -> None:
        """Take what was made where nothing was found; None: there is nothing to be kept."""
        key = seat.making
        if key is None:
            return
        seat.making = None
        with self._mutex:
            self._making.discard(key)
            self._made.notify_all()
            if block is None:
                return
            block.awaited = self._behind(seat, key[1])
            if not block.awaited:
                return
            block.is_kept = True
            self._kept[key] = block
            self._bytes += block.cost
            while self._bytes > self._bytes_max:
                self._drop(next(iter(self._kept)))

    def release(self, block: Block | memoryview | None) -> None:
        """Note that one of those who got a block has done with it, or with a buffer of its own."""
        if not isinstance(block, Block):
            if block is not None:
                give_buffer(block)
            return
        with self._mutex:
            block.users -= 1
            self._give_back(block)

    def _use(self, key: tuple[Hashable, BlockPlace], block: Block) -> None:
        block.users += 1
        block.awaited -= 1
        if block.awaited:
            self._kept.move_to_end(key)
        else:
            self._drop(key)

    def _drop(self, key: tuple[Hashable, BlockPlace]) -> None:
        block = self._kept.pop(key)
        self._bytes -= block.cost
        block.is_kept = False
        self._give_back(block)

    def _give_back(self, block: Block) -> None:
        if not block.users and not block.is_kept and block.buffer is not None:
            give_buffer(block.buffer)

    def _behind(self, seat: Seat, at: BlockPlace) -> int:
        """Return how many other readers are at a place, or not far behind."""
        return sum(
            other is not seat and other.place is not None and other.place.is_little_before(at)
            for other in self._seats.get(seat.kind, ())
        )
