"""
Batches of a dump sent where they are made: on a thread of the pool, as long as the client reads.

A batch that goes through the event loop costs two changes of thread and a copy. A client that
reads as fast as batches are made is sent many in one turn. While other dumps want to have work done
turns are short; a thread that waits for its client lets others work.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ibb.server.config import BATCH_BYTES
from ibb.server.connections.connection import PeerGone
from ibb.server.work_permits import WorkPermits

from .dump_batch import Outcome
from .packet_buffers import LONG_BYTES, SENT_SECONDS
from .run_encoder import REST_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from ibb.server.connections.direct_sender import DirectSender

    from .dump_batch import Batch
    from .dump_stream import DumpStream

RESTING_MAX: Final = 64  # threads that wait for their clients, each with a piece and some pages
TURNS_MIN: Final = 64  # that may be taken, or waited for, at a time: each has a descriptor
TURNS_MAX: Final = 4096  # the same where there are descriptors to spare
TURN_SECONDS: Final = 0.05  # so that what others are told of a dump is not old
SHORT_TURN_SECONDS: Final = 0.005  # while others wait for theirs
SEALED_BYTES_MAX: Final = 64 << 20  # that wait for all clients with TLS
WAIT_SECONDS: Final = 0.05  # for a client, before it is seen whether the connection was closed


class PumpTurns:
    """
    The turns of a server's dumps.

    Args:
        threads: that work for them at a time.
        spare: descriptors that nobody else will want.

    Attributes:
        taken: how many dumps have one, or wait for a thread; counted by the event loop.
        sealing: how many are catching up whose packets are encrypted; likewise.
        permits: by which the threads work.
    """

    def __init__(self, threads: int, spare: int = 0) -> None:
        self._threads = threads
        self.permits = WorkPermits(threads, RESTING_MAX)
        self._most = min(max(spare, TURNS_MIN), TURNS_MAX)
        self.taken = self.sealing = 0

    @property
    def sealed_bytes(self) -> int:
        """
        Bytes that are made and encrypted at a time for one alone; 0: they are too many for that.

        For each, one such batch is being written and another one made.
        """
        size = SEALED_BYTES_MAX // (2 * max(self.sealing, 1))
        return min(size, LONG_BYTES) if size >= 2 * BATCH_BYTES else 0

    @property
    def has_room(self) -> bool:
        """Whether another one may be taken."""
        return self.taken < self._most

    @property
    def crowded(self) -> bool:
        """Whether more dumps want to have work done than may, or are about to."""
        return self.taken + self.sealing - self.permits.resting > self._threads


class SocketPump:
    """
    Sends one stream; calls of `turn` must not overlap.

    Args:
        stream: makes the packets.
        turns: of all dumps.

    Attributes:
        taken: bytes that the client took in the last turn; may be set to 0 when they were counted.
        waits: it takes no more just now.
    """

    def __init__(self, stream: DumpStream, turns: PumpTurns) -> None:
        self._stream = stream
        self._turns = turns
        self.taken, self.waits = 0, False
        self._rested = 0.0  # seconds of this turn

    def turn(
        self,
        sender: DirectSender,
        took: Callable[[Batch], None],
        make: Callable[[], Batch] | None = None,
    ) -> Batch:
        """
        Make and send batches until the client does not take one, or the turn is over.

        Args:
            sender: takes them; is closed at the end.
            took: called, by the thread, with each batch that the client has taken to its end.
            make: makes the first one; None: the stream, like the others.

        Returns:
            the last batch, less what was sent of it.

        Raises:
            OSError: the client has gone; nothing is made for it any more.
        """
        self.taken, self._rested = 0, 0.0
        begun = time.monotonic()
        try:
            while True:
                batch = make() if make is not None else self._next_batch(sender)
                make = None
                self.taken += batch.sent_size
                left = memoryview(batch.data)
                if batch.outcome is Outcome.MORE and (left or batch.sent_size):
                    left = self._send(sender, left)
                    if not left:
                        took(batch)
                        if not (batch.gives_way or self._is_over(begun)):
                            if not sender.has_reader():
                                raise PeerGone("the client closed the connection")
                            continue
                return replace(batch, data=bytes(left))
        finally:
            self._stream.forget_batch()
            sender.close()

    def _next_batch(self, sender: DirectSender) -> Batch:
        seconds = SHORT_TURN_SECONDS if self._turns.crowded else SENT_SECONDS
        return self._stream.next_batch(sender, seconds)

    def _is_over(self, begun: float) -> bool:
        seconds = SHORT_TURN_SECONDS if self._turns.crowded else TURN_SECONDS
        return time.monotonic() - begun - self._rested >= seconds

    def _send(self, sender: DirectSender, data: memoryview) -> memoryview:
        """Return what the client does not take of *data* in this turn."""
        while data:
            size = sender.send(data)
            self.taken += size
            data = data[size:]
            if data and not self._wait(sender):
                break
        return data

    def _wait(self, sender: DirectSender) -> bool:
        """Let others work until the client reads on; return whether it soon does."""
        permits, begun = self._turns.permits, time.monotonic()
        if self._rested >= REST_SECONDS or not permits.lend():
            return False
        until, self.waits = begun + REST_SECONDS - self._rested, True
        try:
            while not (reads := sender.wait(WAIT_SECONDS)) and time.monotonic() < until:
                pass
        finally:
            self.waits = False
            permits.take_back()
            self._rested += time.monotonic() - begun
        return reads
