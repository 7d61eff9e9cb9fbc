"""Pieces from the event loop to one thread, in order, which is woken for the first of them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class ByteQueue:
    """
    Pieces that wait for a thread.

    Args:
        bytes_max: bytes from which on there is no room; who puts should wait then.
        on_room: called, by the thread, when there is again.
    """

    def __init__(self, bytes_max: int, on_room: Callable[[], None]) -> None:
        self._bytes_max = bytes_max
        self._on_room = on_room
        self._mutex = threading.Lock()
        self._pieces: list[bytes] = []
        self._bytes = 0
        self._end: BaseException | None = None
        self._is_closed = False
        self._is_awaited = False  # the thread waits for `_woken`
        self._woken = threading.Lock()
        self._woken.acquire()

    def put(self, piece: bytes) -> bool:
        """Add *piece*; return whether there is room for more."""
        with self._mutex:
            if self._is_closed:
                return False
            self._pieces.append(piece)
            self._bytes += len(piece)
            self._wake()
            return self._bytes < self._bytes_max

    def end(self, reason: BaseException) -> None:
        """Have `take` raise *reason* when everything has been taken; the first reason counts."""
        with self._mutex:
            self._end = self._end or reason
            self._wake()

    def close(self, reason: BaseException) -> None:
        """Have `take` raise *reason* from now on, whatever waits."""
        with self._mutex:
            self._pieces, self._bytes, self._end, self._is_closed = [], 0, reason, True
            self._wake()

    @property
    def has_pieces(self) -> bool:
        """Whether `take` would not have to wait for some."""
        return bool(self._pieces)

    def take(self) -> list[bytes]:
        """Wait for pieces; return all there are, at least one. Raises what `end` said."""
        while True:
            with self._mutex:
                if self._pieces:
                    pieces, self._pieces = self._pieces, []
                    was_full, self._bytes = self._bytes >= self._bytes_max, 0
                    break
                if self._end is not None:
                    raise self._end
                self._is_awaited = True
            self._woken.acquire()
        if was_full:
            self._on_room()
        return pieces

    def _wake(self) -> None:
        if self._is_awaited:
            self._is_awaited = False
            self._woken.release()
