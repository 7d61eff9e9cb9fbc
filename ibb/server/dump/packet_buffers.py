"""Buffers that dumps make packets in, kept for whoever needs one next."""

from __future__ import annotations

from collections import deque
from typing import Final

from ibb.server.config import BATCH_BYTES
from ibb.storage.large_memory import LARGE_PAGE_BYTES, large_memory

from .run_encoder import BEYOND_BYTES

BLOCK_BYTES: Final = BATCH_BYTES * 3 // 2  # wanted in one, when a file's end does not come before
LONG_BYTES: Final = 4 << 20  # wanted for a reader that shares with nobody: fewer calls a byte
SENT_BYTES: Final = 32 << 20  # the same where pieces are sent as they are made,
SENT_SECONDS: Final = 0.02  # for as long at most
PIECE_BYTES: Final = 576 << 10  # of such a piece, for each of which a client is woken
BUFFER_BYTES: Final = BLOCK_BYTES + BEYOND_BYTES
LONG_BUFFER_BYTES: Final = LONG_BYTES + BEYOND_BYTES
PIECE_BUFFER_BYTES: Final = PIECE_BYTES + BEYOND_BYTES
PIECE_BUFFERS: Final = LARGE_PAGE_BYTES // PIECE_BUFFER_BYTES  # that are made at a time
BUFFERS_MAX: Final = 8  # that are kept
LONG_BUFFERS_MAX: Final = 4
PIECE_BUFFERS_MAX: Final = 24 * PIECE_BUFFERS  # one that is lost keeps the others' page
_buffers: Final[dict[int, deque[memoryview]]] = {
    BUFFER_BYTES: deque(maxlen=BUFFERS_MAX),
    PIECE_BUFFER_BYTES: deque(maxlen=PIECE_BUFFERS_MAX),
    LONG_BUFFER_BYTES: deque(maxlen=LONG_BUFFERS_MAX),
}


def take_buffer(wanted: int = BLOCK_BYTES) -> memoryview:
    """
    Return a buffer with anything in it, and room for so many bytes and what may be beyond them.

    Args:
        wanted: at most `LONG_BYTES`.
    """
    size = next(size for size in _buffers if size - BEYOND_BYTES >= wanted)
    try:
        return _buffers[size].pop()
    except IndexError:
        if size != PIECE_BUFFER_BYTES:
            return large_memory(size) if size > BUFFER_BYTES else memoryview(bytearray(size))
    whole = large_memory(size * PIECE_BUFFERS)  # that is one page of the system
    for number in range(1, PIECE_BUFFERS):
        give_buffer(whole[number * size : (number + 1) * size])
    return whole[:size]


def forget_buffers() -> None:
    """Give back to the system what nobody uses just now."""
    for free in _buffers.values():
        free.clear()


def give_buffer(buffer: memoryview) -> None:
    """Take back a buffer that nobody reads any more."""
    _buffers[len(buffer)].append(buffer)
