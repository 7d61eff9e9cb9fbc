"""What an upstream sends, on its way to the thread that stores it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from ibb.server.config import INGEST_BYTES_MAX
from ibb.server.connections.byte_queue import ByteQueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from ibb.protocol.fields import Buffer
    from ibb.server.connections.direct_receiver import DirectReceiver

    from .upstream import Upstream


class Intake(Protocol):
    """One dump's bytes."""

    def take(self) -> list[Buffer]:
        """
        Wait for what comes, in the one thread that does; return all there is, cut anywhere.

        It is gone with the next call.

        Raises:
            TimeoutError: nothing came, not even a heartbeat.
            OSError, ProtocolError: the connection ended, or was closed here.
        """

    def has_more(self) -> bool:
        """Tell, in that thread, whether `take` would not have to wait."""

    def close(self) -> None:
        """Have `take` end, whatever has come."""


def open_intake(upstream: Upstream, silence: Callable[[], float]) -> Intake:
    """
    Return what takes a dump's bytes from now on.

    Args:
        upstream: sends them.
        silence: returns for how many seconds it may say nothing.

    Raises:
        OSError: the connection has broken.
    """
    receiver = upstream.direct_receiver()
    if receiver is None:
        return LoopIntake(upstream, silence)
    return DirectIntake(receiver, silence)


class DirectIntake:
    """
    Bytes that the thread which stores them receives by itself.

    Args:
        receiver: gives them.
        silence: as for `open_intake`.
    """

    def __init__(self, receiver: DirectReceiver, silence: Callable[[], float]) -> None:
        self._receiver = receiver
        self._silence = silence

    def take(self) -> list[Buffer]:
        """Do as `Intake.take`."""
        return [self._receiver.receive(self._silence)]

    def has_more(self) -> bool:
        """Do as `Intake.has_more`."""
        return self._receiver.has_more()

    def close(self) -> None:
        """Do as `Intake.close`."""
        self._receiver.close()


class LoopIntake:
    """
    Bytes that the event loop decrypts; belongs to it, but for `take`.

    What has come wakes the thread by itself: no task of the loop stands between.

    Args:
        upstream: sends them, from now on.
        silence: returns for how many seconds it may say nothing.
    """

    def __init__(self, upstream: Upstream, silence: Callable[[], float]) -> None:
        self._upstream = upstream
        self._silence = silence
        self._loop = asyncio.get_running_loop()
        self._heard_at = self._loop.time()
        self._is_full = False
        self._queue = ByteQueue(INGEST_BYTES_MAX, self._emptied)
        self._watching = asyncio.create_task(self._watch())
        upstream.hand_on(self._received, self._queue.end)

    def take(self) -> list[Buffer]:
        """Do as `Intake.take`."""
        return list(self._queue.take())

    def has_more(self) -> bool:
        """Do as `Intake.has_more`."""
        return self._queue.has_pieces

    def close(self) -> None:
        """Do as `Intake.close`."""
        self._watching.cancel()
        self._queue.close(ConnectionAbortedError("the relay has left its upstream"))

    def _received(self, piece: bytes) -> None:
        self._heard_at = self._loop.time()
        if not self._queue.put(piece):
            self._is_full = True
            self._upstream.pause()

    def _emptied(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._go_on)

    def _go_on(self) -> None:
        self._is_full, self._heard_at = False, self._loop.time()
        self._upstream.resume()

    async def _watch(self) -> None:
        """Return when the upstream has been silent for too long, or what it says is not heard."""
        while True:
            limit = self._silence()
            left = limit if self._is_full else self._heard_at + limit - self._loop.time()
            if left <= 0:
                self._queue.end(TimeoutError())
                return
            await asyncio.sleep(left)
