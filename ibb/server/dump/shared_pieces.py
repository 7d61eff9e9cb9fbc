"""
Who catches up beside whom, and the shelf of what they send without the interpreter.

    sharing = pieces.begin(seat, place, ...)    None: there is nobody to share with
    pieces.leave(seat)                          it has everything, waits, or reads no more

A crowd stays together: where many wait for a thread, who has made a few pieces, or was sent all
that others have made, lets those behind come up. Else each would run away from the next, and find
nothing of what it needs. Who takes what it is sent too slowly falls behind, and holds up nobody.

Safe to use from several threads.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.server.config import SHARED_BYTES_MAX
from ibb.storage.large_memory import large_memory

from .packet_buffers import PIECE_BUFFER_BYTES
from .piece_shelf import PieceShelf
from .shared_pump import SharedPump

if TYPE_CHECKING:
    from collections.abc import Hashable

    from .shared_blocks import BlockPlace, Seat

GRID_BYTES: Final = 512 << 10  # of a file, whose packets are a piece, if events are not tiny
CROWD_PIECES: Final = 6  # made by one while many wait: few enough that the last finds the first


class Sharing(NamedTuple):
    """
    How one reader shares.

    Attributes:
        pump: sends for it.
        is_followed: others are where it is, or not far behind.
        made_max: pieces that it makes before those come up; 0: as many as it has time for.
    """

    pump: SharedPump
    is_followed: bool
    made_max: int


class SharedPieces:
    """
    The pieces of one history.

    Args:
        bytes_max: bytes of memory for them, while two or more readers of a kind catch up.
    """

    def __init__(self, bytes_max: int = SHARED_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._mutex = threading.Lock()
        self._places: dict[Hashable, dict[Seat, BlockPlace]] = {}
        self._numbers: dict[Hashable, int] = {}  # of kinds, on the shelf
        self._shelf: PieceShelf | None = None

    def begin(
        self, seat: Seat, place: BlockPlace, piece_bytes: int, *, crowded: bool
    ) -> Sharing | None:
        """
        Return how a reader shares that is sent more; None: it is alone.

        Args:
            seat: the reader.
            place: from where on.
            piece_bytes: of a piece, the same for all.
            crowded: others wait for a thread.
        """
        with self._mutex:
            places = self._places.setdefault(seat.kind, {})
            places[seat] = place
            if len(places) < 2:
                return None
            if self._shelf is None:
                self._shelf = PieceShelf(large_memory(self._bytes_max), PIECE_BUFFER_BYTES)
            number = self._numbers.setdefault(seat.kind, len(self._numbers))
            others = (at for other, at in places.items() if other is not seat)
            is_followed = any(at.is_little_before(place) for at in others)
            terms = place.generation, piece_bytes, GRID_BYTES
            made_max = CROWD_PIECES if crowded and is_followed else 0
            return Sharing(SharedPump(self._shelf, number, *terms), is_followed, made_max)

    def leave(self, seat: Seat) -> None:
        """Note that a reader is sent no more for now; where none share, nothing is kept."""
        with self._mutex:
            places = self._places.get(seat.kind, {})
            places.pop(seat, None)
            if not places:
                self._places.pop(seat.kind, None)
            if all(len(places) < 2 for places in self._places.values()):
                self._shelf = None  # who sends from it just then holds it
                self._numbers.clear()
