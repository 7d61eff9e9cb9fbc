"""Writes to a client's socket past its transport: by any thread, and never waiting."""

from __future__ import annotations

import os
import select
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ibb.protocol.fields import Buffer


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
        self._descriptor = os.dup(descriptor)

    def send(self, data: Buffer) -> int:
        """
        Return how many bytes of *data* the system has taken, perhaps none.

        Raises:
            OSError: the connection is gone, or closed.
        """
        with self._mutex:
            if self._descriptor < 0:
                raise ConnectionAbortedError("the connection was closed")
            try:
                return os.write(self._descriptor, data)
            except BlockingIOError:
                return 0

    def wait(self, seconds: float) -> bool:
        """Return whether the system may take more within some seconds, or would say why not."""
        poll = select.poll()
        with self._mutex:
            if self._descriptor < 0:
                return True
            poll.register(self._descriptor, select.POLLOUT)
        # It may be closed meanwhile, and be another's: who believes that only asks too often.
        return bool(poll.poll(max(0.0, seconds) * 1000))

    def close(self) -> None:
        """Give the descriptor up, from any thread; a second call does nothing."""
        with self._mutex:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1
