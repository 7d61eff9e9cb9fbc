"""
Packets made, or found made, and sent without the interpreter: a kernel.

As `RunEncoder.pump`, beside others that pass the same stretch of history: a piece that one of them
has made already is sent as it lies on a `PieceShelf`, and what this one makes is laid there for
those behind it. So that they meet, pieces begin at the first group behind certain places of a file,
and go on by a certain size from there. Runs as plain Python, too; `shared_pump.pxd` gives it C
types.
"""
# ruff: noqa: SLF001 (kernels reach into one another: a pump does what its encoder would)

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython

from .event_packets import FULL, NEED
from .run_encoder import DOMAINS_MAX

if not cython.compiled:  # else the .pxd names them
    from .encoder_state import sent_of
    from .timed_poll import clock

if TYPE_CHECKING:
    from ibb.server.work_permits import WorkPermits
    from ibb.storage.page_ring import PageRing

    from .piece_shelf import PieceShelf
    from .run_encoder import RunEncoder

_full, _need, _domains_max = FULL, NEED, DOMAINS_MAX


class SharedPump:
    """
    Sends for one encoder.

    Args:
        shelf: of pieces.
        kind: number of the kind of its packets, on that shelf.
        generation: of the history.
        piece_bytes: of packets, at which a piece ends.
        grid_bytes: of a file; behind each such place a piece begins.

    Attributes:
        is_lost: the encoder is inside of a page that it does not have.
        found: how many pieces were found made, in the last run.
    """

    def __init__(
        self, shelf: PieceShelf, kind: int, generation: int, piece_bytes: int, grid_bytes: int
    ) -> None:
        self._shelf, self._kind, self._generation = shelf, kind, generation
        self._wanted, self._grid = piece_bytes, max(grid_bytes, 1)
        self._gtids = 0
        self.is_lost = False
        self.found = self._made = self._made_max = 0
        if not cython.compiled:
            self._domains, self._servers, self._numbers = ([0] * DOMAINS_MAX for _ in range(3))

    def run(
        self,
        encoder: RunEncoder,
        out: memoryview,
        seq: int,
        ring: PageRing,
        descriptor: int,
        most: int,
        nanoseconds: int,
        is_followed: bool,
        made_max: int,
        permits: WorkPermits | None = None,
    ) -> int:
        """
        Add packets to *out* and send them, as `RunEncoder.pump` does; return NEED, FULL or ODD.

        Args:
            encoder: has handed out all.
            out: the same until the encoder's `take`, with room for a piece and `BEYOND_BYTES`.
            seq: sequence id of the first packet in *out*.
            ring: has the pages.
            descriptor: of a socket, which does not block.
            most: bytes, behind which no further piece is begun.
            nanoseconds: of work from now on, likewise.
            is_followed: others may be behind this one.
            made_max: pieces that are made at a time, and none behind those that were found; 0: as
                many as there is time for.
            permits: as for `RunEncoder.pump`.
        """
        encoder.packets.lend(out, self._wanted, seq)
        self.is_lost = False
        self.found = self._made = 0
        self._made_max = made_max
        with cython.nogil:
            end = clock() + nanoseconds
            code = self._run(encoder, ring, descriptor, most, end, is_followed, permits)
        encoder.packets.give_back()
        return code

    def take(self) -> list[tuple[int, int, int]]:
        """Return the last domain, server and number of each domain, less what the encoder has."""
        found = [
            (self._domains[place], self._servers[place], self._numbers[place])
            for place in range(self._gtids)
        ]
        self._gtids = 0
        return found

    def _run(
        self,
        encoder: RunEncoder,
        ring: PageRing,
        descriptor: int,
        most: int,
        end: int,
        is_followed: bool,
        permits: WorkPermits | None,
    ) -> int:
        while self._take_groups(encoder) and not encoder.is_last:
            piece = self._shelf.find(encoder, self._kind, self._generation)
            if piece >= 0:
                self.found += 1
                size = self._shelf.send(piece, encoder, descriptor)
                self.is_lost = True
            elif self._made_max > 0 and (self.found > 0 or self._made == self._made_max):
                return _full
            else:
                self._made += 1
                code = self._make(encoder, ring, is_followed)
                if code != _full:
                    return code
                if encoder.packets.used == 0:  # nothing of so much is for this client
                    if clock() >= end + encoder.rested:
                        return _full
                    continue
                size = encoder.packets.offer(descriptor)
            if not encoder.has_taken(size, descriptor, permits):
                return _full
            if encoder.sent >= most or clock() >= end + encoder.rested:
                return _full
        return _full

    def _make(self, encoder: RunEncoder, ring: PageRing, is_followed: bool) -> int:
        """Make the piece that begins where the encoder is, for those behind it as well."""
        if self.is_lost:
            if not ring.follow(encoder.walker):
                return _need
            self.is_lost = False
        border, sent = encoder.border, sent_of(encoder)
        encoder.stop_at = border - border % self._grid + self._grid
        code = encoder.fill(ring)
        if code == _full and is_followed and encoder.packets.used > 0:
            self._shelf.keep(encoder, self._kind, self._generation, border, sent)
        return code

    def _take_groups(self, encoder: RunEncoder) -> bool:
        """Note the groups that have ended; False: there is no room for them, they stay."""
        for which in range(encoder._gtids):
            place = 0
            while place < self._gtids and self._domains[place] != encoder._domains[which]:
                place += 1
            if place == _domains_max:
                return False
            if place == self._gtids:
                self._gtids += 1
            self._domains[place] = encoder._domains[which]
            self._servers[place] = encoder._servers[which]
            self._numbers[place] = encoder._numbers[which]
        encoder._gtids = 0
        return True
