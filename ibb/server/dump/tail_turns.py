"""
Whose turn it is to serve readers at the end: the loop's, or that of who made groups durable.

    with turns: ...                  the loop, before it does anything with one of them
    if turns.begin(): ... turns.end()    any thread, which waits for nobody

What a thread finds that only the loop may do it leaves behind. The loop does that first of all.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class TailTurns:
    """The turns of a server's tails; within its turn the loop may begin another one."""

    def __init__(self) -> None:
        self._mutex = threading.RLock()
        self._left: deque[Callable[[], None]] = deque()

    def __enter__(self) -> None:
        self._mutex.acquire()
        try:
            while self._left:
                self._left.popleft()()
        except BaseException:
            self._mutex.release()
            raise

    def __exit__(self, *error: object) -> None:
        self._mutex.release()

    def begin(self) -> bool:
        """Begin a turn in any thread; False: another has it, or the loop must have one first."""
        if not self._mutex.acquire(blocking=False):
            return False
        if self._left:
            self._mutex.release()
            return False
        return True

    def end(self) -> bool:
        """End it; return whether nothing is left to the loop."""
        is_done = not self._left
        self._mutex.release()
        return is_done

    def leave(self, call: Callable[[], None]) -> None:
        """Have the loop call *call* at the beginning of its next turn."""
        self._left.append(call)
