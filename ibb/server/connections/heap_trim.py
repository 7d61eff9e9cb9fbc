"""
Memory that ended sessions have left free, given back to the system now and then.

What a dump reads and encodes is larger than what the C library maps by itself once it has seen a
few, so it lies in its heap, where it stays: after some hundred dumps half of a server's memory.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ibb.server.worker_threads import run_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

TRIM_SECONDS: Final = 30.0  # from the end of a session to a trim, which others may join
SENT_BYTES_MIN: Final = 128 << 10  # who was sent less has left nothing to speak of


class HeapTrim:
    """
    Trims the heap when sessions that were sent much have ended.

    Args:
        trims: give memory back, one behind the other; called in a thread. None: this system has
            nothing that does.
    """

    def __init__(self, *trims: Callable[[], object] | None) -> None:
        self._trims = [trim for trim in trims if trim is not None]
        self._timer: asyncio.TimerHandle | None = None

    def session_ended(self, sent: int, pool: Executor) -> None:
        """Take note that a session which was sent so many bytes has ended; *pool* is to trim."""
        if self._trims and self._timer is None and sent >= SENT_BYTES_MIN:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(TRIM_SECONDS, self._begin, pool)

    def close(self) -> None:
        """Forget the sessions that have ended."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begin(self, pool: Executor) -> None:
        self._timer = None
        run_in(pool, self._trim)

    def _trim(self) -> None:
        for trim in self._trims:
            trim()
