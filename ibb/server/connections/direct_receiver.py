"""Reads of a socket past its transport: by one thread, which waits for them by itself."""

from __future__ import annotations

import os
import select
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ibb.storage.large_memory import large_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ibb.protocol.fields import Buffer

RECEIVE_BYTES: Final = 1 << 20  # taken at a time
LOOK_SECONDS: Final = 1.0  # at most between two looks at how long the silence may be


class DirectReceiver:
    """
    A second descriptor of a connected socket, whose transport reads nothing any more.

    Args:
        descriptor: of the socket, which does not block.
        rest: what the transport has read already.

    Raises:
        OSError: there is no other descriptor to be had.
    """

    def __init__(self, descriptor: int, rest: bytes = b"") -> None:
        self._mutex = threading.Lock()  # a descriptor that is closed may be somebody else's next
        self._ends = False
        self._rest = rest
        self._room = large_memory(RECEIVE_BYTES)
        self._waking = threading.Lock()  # it is closed behind that it was written to
        self._descriptor = os.dup(descriptor)
        try:
            self._woken, self._waker = os.pipe()
        except OSError:
            os.close(self._descriptor)
            raise
        self._is_open = True
        self._poll = select.poll()
        self._poll.register(self._descriptor, select.POLLIN)
        self._poll.register(self._woken, select.POLLIN)

    def receive(self, silence: Callable[[], float]) -> Buffer:
        """
        Wait for what comes, and return it; it is gone with the next call.

        Args:
            silence: returns for how many seconds nothing may come.

        Raises:
            TimeoutError: nothing came.
            OSError: the connection ended, or was closed here.
        """
        with self._in_use():
            return self._received(silence)

    def has_more(self) -> bool:
        """Tell whether `receive` would not have to wait; for the thread that calls it."""
        with self._in_use():
            return self._ends or bool(self._rest or self._poll.poll(0))

    def close(self) -> None:
        """
        Give the descriptors up, from any thread, and have `receive` end; again, it does nothing.

        It waits for nobody: who receives just then gives them up behind that.
        """
        with self._waking:
            if not self._ends:
                self._ends = True
                os.write(self._waker, b"\0")
        if self._mutex.acquire(blocking=False):
            try:
                self._close()
            finally:
                self._mutex.release()

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        """Keep the descriptors open, and close them behind that for who has not waited for it."""
        try:
            with self._mutex:
                yield
        finally:
            if self._ends:
                self.close()

    def _received(self, silence: Callable[[], float]) -> Buffer:
        if self._rest:
            rest, self._rest = self._rest, b""
            return rest
        begun = time.monotonic()
        while True:
            if self._ends:
                raise ConnectionAbortedError("the connection was closed")
            try:
                size = os.readv(self._descriptor, [self._room])
            except BlockingIOError:
                self._wait(begun + silence() - time.monotonic())
                continue
            if not size:
                raise ConnectionResetError("the other side closed the connection")
            return self._room[:size]

    def _wait(self, seconds: float) -> None:
        """Return when something may have come, or it is time to look; raises TimeoutError."""
        if seconds <= 0:
            raise TimeoutError
        self._poll.poll(min(seconds, LOOK_SECONDS) * 1000)

    def _close(self) -> None:
        if self._is_open:
            self._is_open = False
            for each in (self._descriptor, self._woken, self._waker):
                os.close(each)
