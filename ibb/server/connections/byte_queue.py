"""A queue of received pieces between two tasks, bounded by their bytes."""

from __future__ import annotations

import asyncio


class ByteQueue:
    """
    Pieces from one task to another, in order.

    Args:
        bytes_max: bytes that may wait; `put` blocks above that.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._pieces: list[bytes] = []
        self._bytes = 0
        self._end: BaseException | None = None
        self._changed = asyncio.Condition()

    async def put(self, piece: bytes) -> None:
        """Add *piece* once there is room."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._bytes < self._bytes_max)
            self._pieces.append(piece)
            self._bytes += len(piece)
            self._changed.notify_all()

    async def end(self, reason: BaseException) -> None:
        """Have `take` raise *reason* when everything has been taken."""
        async with self._changed:
            self._end = reason
            self._changed.notify_all()

    async def take(self) -> list[bytes]:
        """Return everything that waits, at least one piece; raises what `end` said."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._pieces or self._end is not None)
            if not self._pieces:
                assert self._end is not None
                raise self._end
            pieces, self._pieces, self._bytes = self._pieces, [], 0
            self._changed.notify_all()
            return pieces
