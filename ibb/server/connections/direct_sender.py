"""Writes to a client's socket past its transport: by any thread, and never waiting."""

from __future__ import annotations

import os
import select
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from ibb.protocol.fields import Buffer

Result = TypeVar("Result")


class DirectSender:
    """
    A second descriptor of a connected socket, for while its transport has nothing to write.

    The connection ends when both are closed.

    Args:
        descriptor: of the socket, which does not block.

    Raises:
        OSError: there is no other descriptor to be had.
    """

    def __init__(self, descriptor: int) -> None:
        self._mutex = threading.Lock()  # a descriptor that is closed may be somebody else's next
        self._ends = False
        self._descriptor = os.dup(descriptor)

    def send(self, data: Buffer) -> int:
        """
        Return how many bytes of *data* the system has taken, perhaps none.

        Raises:
            OSError: the connection is gone, or closed.
        """
        try:
            return self.lend(lambda descriptor: os.write(descriptor, data))
        except BlockingIOError:
            return 0

    def lend(self, call: Callable[[int], Result]) -> Result:
        """
        Return what *call* makes of the descriptor, which does not block.

        Raises:
            OSError: the connection was closed.
        """
        try:
            with self._mutex:
                if self._ends:
                    raise ConnectionAbortedError("the connection was closed")
                return call(self._descriptor)
        finally:
            if self._ends:
                self.close()  # who wanted that has not waited for us

    def wait(self, seconds: float) -> bool:
        """Return whether the system may take more within some seconds, or would say why not."""
        return bool(self._events(select.POLLOUT, seconds))

    def has_reader(self) -> bool:
        """Return whether the client is still there, as far as the system knows by now."""
        return not self._events(select.POLLRDHUP, 0.0)

    def close(self) -> bool:
        """
        Give the descriptor up, from any thread; a second call does nothing.

        It waits for nobody: who sends just then gives it up behind that. Returns whether it is.
        """
        self._ends = True
        if not self._mutex.acquire(blocking=False):
            return False
        try:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1
        finally:
            self._mutex.release()
        return True

    def _events(self, wanted: int, seconds: float) -> int:
        """Return which of some events are there within some seconds, or an end; 0: none."""
        poll = select.poll()
        try:
            with self._mutex:
                if self._ends:
                    return select.POLLHUP
                poll.register(self._descriptor, wanted)
        finally:
            if self._ends:
                self.close()  # as above
        # It may be closed meanwhile, and be another's: who believes that only asks too often.
        return sum(events for _, events in poll.poll(max(0.0, seconds) * 1000))
