"""Buffers that dumps make packets in, kept for whoever needs one next."""

from __future__ import annotations

from collections import deque
from typing import Final

from ibb.server.config import BATCH_BYTES
from ibb.storage.large_memory import large_memory

from .run_encoder import BEYOND_BYTES

BLOCK_BYTES: Final = BATCH_BYTES * 3 // 2  # wanted in one, when a file's end does not come before
LONG_BYTES: Final = 4 << 20  # wanted for a reader that shares with nobody: fewer calls a byte
SENT_BYTES: Final = 32 << 20  # the same where pieces are sent as they are made
PIECE_BYTES: Final = 512 << 10  # of which each has so many: the client is woken less often
SHORT_SENT_BYTES: Final = 8 << 20  # instead of `SENT_BYTES`, while other dumps wait for a thread
BUFFER_BYTES: Final = BLOCK_BYTES + BEYOND_BYTES
LONG_BUFFER_BYTES: Final = LONG_BYTES + BEYOND_BYTES
BUFFERS_MAX: Final = 8  # that are kept
LONG_BUFFERS_MAX: Final = 2
_buffers: Final[dict[int, deque[memoryview]]] = {
    BUFFER_BYTES: deque(maxlen=BUFFERS_MAX),
    LONG_BUFFER_BYTES: deque(maxlen=LONG_BUFFERS_MAX),
}


def take_buffer(size: int = BUFFER_BYTES) -> memoryview:
    """Return a buffer of `BUFFER_BYTES` or `LONG_BUFFER_BYTES`, with anything in it."""
    try:
        return _buffers[size].pop()
    except IndexError:
        return large_memory(size) if size > BUFFER_BYTES else memoryview(bytearray(size))


def give_buffer(buffer: memoryview) -> None:
    """Take back a buffer that nobody reads any more."""
    _buffers[len(buffer)].append(buffer)
