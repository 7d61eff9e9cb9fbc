"""
Packets made once and sent to many by whoever comes by, without the interpreter: a kernel.

A piece begins at a place of a history, by which it is found, and has what an encoder is that has
made it: who sends it instead goes on behind it. The newest are kept, since those that follow pass
them in the order in which they were made. Nobody waits for anybody: two that make the same piece at
the same time both send their own. Runs as plain Python, too; `piece_shelf.pxd` gives it C types.
"""
# ruff: noqa: SLF001 (kernels reach into one another: a piece has all that an encoder knows)

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython

from ibb.server.thread_locks import ThreadLocks

from . import encoder_state
from .run_encoder import DOMAINS_MAX

if not cython.compiled:  # else the .pxd names them
    from .encoder_state import load_state, save_state, sent_of
    from .sequence_ids import renumber_here

if TYPE_CHECKING:
    from .run_encoder import RunEncoder

EMPTY: Final = -1  # of a kind: no piece
# Numbers of each piece: its key, how many send it, when it was made, what is in it.
_kind, _generation, _file, _border, _sent, _users, _turn, _groups, _state = range(9)
NUMBERS: Final = _state + encoder_state.NUMBERS
_used = encoder_state.USED
_empty, _width, _domains_max = EMPTY, NUMBERS, DOMAINS_MAX


class PieceShelf:
    """
    Room for some pieces; safe to use from several threads.

    Args:
        memory: for their packets.
        room: bytes of it for each.
    """

    def __init__(self, memory: memoryview, room: int) -> None:
        self._memory, self._room = memoryview(memory), room
        self._pieces = len(self._memory) // room if room > 0 else 0
        if not self._pieces:
            raise ValueError(f"{len(self._memory)} bytes for pieces of {room}")
        self._numbers = memoryview(array("q", [EMPTY] * (self._pieces * NUMBERS)))
        self._gtids = memoryview(array("Q", [0] * (self._pieces * DOMAINS_MAX * 3)))
        self._now = 0
        for piece in range(self._pieces):
            self._numbers[piece * NUMBERS + _users] = self._numbers[piece * NUMBERS + _turn] = 0
        self._lock = ThreadLocks(1)

    def find(self, encoder: RunEncoder, kind: int, generation: int) -> int:
        """
        Return a piece that begins where an encoder is, which is to be sent then, or -1.

        Args:
            encoder: has handed out all.
            kind: number of the kind of its packets.
            generation: of the history.
        """
        border, sent = encoder.border, sent_of(encoder)
        self._lock.take(0)
        found = self._at(kind, generation, encoder.walker.file_no, border, sent)
        if found >= 0 and self._size_of(found) > len(encoder.packets._out):
            found = -1  # its rest would not fit where the encoder makes packets
        if found >= 0:
            self._numbers[found * _width + _users] += 1
        self._lock.give(0)
        return found

    def send(self, piece: int, encoder: RunEncoder, descriptor: int) -> int:
        """
        Send a piece that was found; return how much a socket takes of it, or an error.

        The encoder is behind it then, and what the socket has not taken lies where it makes
        packets, as if it had made them.

        Args:
            piece: that was found.
            encoder: is where it begins.
            descriptor: of the socket, which does not block.
        """
        seq = encoder.packets.seq
        load_state(encoder, self._numbers, piece * _width + _state)
        self._load_groups(piece, encoder)
        used, at = encoder.packets.used, piece * self._room
        more = (seq - self._memory[at + 3]) & 255
        encoder.packets.seq = (encoder.packets.seq + more) & 255
        encoder.packets._group_seq = (encoder.packets._group_seq + more) & 255
        if more:
            self._copy_out(at, encoder, 0)
            renumber_here(encoder.packets._out, used, more)
            size = encoder.packets.offer(descriptor)
        else:
            size = encoder.packets.offer_from(descriptor, self._memory, at, used)
            if 0 <= size < used:
                self._copy_out(at, encoder, size)
        self._lock.take(0)
        self._numbers[piece * _width + _users] -= 1
        self._lock.give(0)
        return size

    def keep(self, encoder: RunEncoder, kind: int, generation: int, border: int, sent: int) -> bool:
        """
        Keep what an encoder has made and not handed out, if there is room; tell whether it is kept.

        Args:
            encoder: is behind it.
            kind: as for `find`.
            generation: as for `find`.
            border: where it began, as the encoder's `border` was.
            sent: the same, as `sent_of` was.
        """
        used = encoder.packets.used
        if used > self._room:
            return False
        file_no = encoder.walker.file_no
        self._lock.take(0)
        piece = -1
        if self._at(kind, generation, file_no, border, sent) < 0:
            piece = self._oldest()
        if piece >= 0:
            self._numbers[piece * _width + _kind] = _empty
            self._numbers[piece * _width + _users] = 1  # until it is there
        self._lock.give(0)
        if piece < 0:
            return False
        self._copy_in(piece * self._room, encoder)
        save_state(encoder, self._numbers, piece * _width + _state)
        self._save_groups(piece, encoder)
        base = piece * _width
        self._lock.take(0)
        self._numbers[base + _users] = 0
        is_first = self._at(kind, generation, file_no, border, sent) < 0
        if is_first:  # else another has been quicker
            self._numbers[base + _kind], self._numbers[base + _generation] = kind, generation
            self._numbers[base + _file], self._numbers[base + _border] = file_no, border
            self._numbers[base + _sent] = sent
            self._now += 1
            self._numbers[base + _turn] = self._now
        self._lock.give(0)
        return is_first

    def _at(self, kind: int, generation: int, file_no: int, border: int, sent: int) -> int:
        """Return the piece that begins at a place, or -1."""
        for piece in range(self._pieces):
            base = piece * _width
            is_place = (
                self._numbers[base + _border] == border and self._numbers[base + _sent] == sent
            )
            if is_place and self._numbers[base + _kind] == kind:
                is_file = self._numbers[base + _file] == file_no
                if is_file and self._numbers[base + _generation] == generation:
                    return piece
        return -1

    def _oldest(self) -> int:
        """Return the piece whose room may be used, or -1."""
        oldest, turn = -1, 0
        for piece in range(self._pieces):
            base = piece * _width
            is_older = oldest < 0 or self._numbers[base + _turn] < turn
            if self._numbers[base + _users] == 0 and is_older:
                oldest, turn = piece, self._numbers[base + _turn]
        return oldest

    def _size_of(self, piece: int) -> int:
        return self._numbers[piece * _width + _state + _used]

    def _copy_in(self, at: int, encoder: RunEncoder) -> None:
        used = encoder.packets.used
        if cython.compiled:
            memcpy(  # noqa: F821
                cython.address(self._memory[at]), cython.address(encoder.packets._out[0]), used
            )
        else:
            self._memory[at : at + used] = encoder.packets._out[:used]

    def _copy_out(self, at: int, encoder: RunEncoder, first: int) -> None:
        size = encoder.packets.used - first
        if cython.compiled:
            memcpy(  # noqa: F821
                cython.address(encoder.packets._out[first]),
                cython.address(self._memory[at + first]),
                size,
            )
        else:
            at += first
            encoder.packets._out[first : first + size] = self._memory[at : at + size]

    def _save_groups(self, piece: int, encoder: RunEncoder) -> None:
        base = piece * _domains_max * 3
        self._numbers[piece * _width + _groups] = encoder._gtids
        for place in range(encoder._gtids):
            self._gtids[base + 3 * place] = encoder._domains[place]
            self._gtids[base + 3 * place + 1] = encoder._servers[place]
            self._gtids[base + 3 * place + 2] = encoder._numbers[place]

    def _load_groups(self, piece: int, encoder: RunEncoder) -> None:
        base = piece * _domains_max * 3
        encoder._gtids = self._numbers[piece * _width + _groups]
        for place in range(encoder._gtids):
            encoder._domains[place] = self._gtids[base + 3 * place]
            encoder._servers[place] = self._gtids[base + 3 * place + 1]
            encoder._numbers[place] = self._gtids[base + 3 * place + 2]
