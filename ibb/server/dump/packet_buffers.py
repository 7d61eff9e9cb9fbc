"""Buffers that dumps make packets in, kept for whoever needs one next."""

from __future__ import annotations

from collections import deque
from typing import Final

from ibb.server.config import BATCH_BYTES

from .run_encoder import BEYOND_BYTES

BLOCK_BYTES: Final = BATCH_BYTES * 3 // 2  # wanted in one, when a file's end does not come before
BUFFER_BYTES: Final = BLOCK_BYTES + BEYOND_BYTES
BUFFERS_MAX: Final = 8  # that are kept
_buffers: Final[deque[bytearray]] = deque(maxlen=BUFFERS_MAX)


def take_buffer() -> bytearray:
    """Return a buffer of `BUFFER_BYTES`, with anything in it."""
    try:
        return _buffers.pop()
    except IndexError:
        return bytearray(BUFFER_BYTES)


def give_buffer(buffer: bytearray) -> None:
    """Take back a buffer that nobody reads any more."""
    _buffers.append(buffer)
