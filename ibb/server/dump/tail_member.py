"""One of the readers that a tail serves."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ibb.protocol.fields import Buffer
    from ibb.protocol.gtid import Gtid
    from ibb.server.connections.connection import Connection
    from ibb.server.connections.direct_sender import DirectSender

    from .dump_batch import Place
    from .tail import Tail
    from .tail_stream import TailStream


class Taken(NamedTuple):
    """
    How far readers were before they were sent something.

    Attributes:
        at: the place.
        reached: the group before in each domain of which groups were sent; None: there was none.
    """

    at: Place
    reached: dict[int, Gtid | None]


class TailMember:
    """
    A reader that is sent what a tail makes, until it has left it.

    What it was sent follows from what the tail made since it is there: nothing is noted for each
    of them when something is sent.

    Args:
        tail: which serves it, from now on.
        stream: its own, which is behind the same group.
        connection: takes the packets.
        caught_up: the last group of each domain that it was sent to get there.

    Attributes:
        last: where it is when it has left and taken all that it was sent.
        left: done when it is not served any more; its stream may go on then.
        stream: its own.
        unsent: the last group of each domain in what it left behind, and had not taken.
        shift: is added to the sequence ids that the tail counts.
    """

    __slots__ = (
        "_at",
        "_caught_up",
        "_event_bytes",
        "_owed",
        "_sender",
        "_since",
        "_tail",
        "connection",
        "last",
        "left",
        "shift",
        "stream",
        "unsent",
    )

    def __init__(
        self,
        tail: Tail,
        stream: TailStream,
        connection: Connection,
        caught_up: dict[int, Gtid],
    ) -> None:
        self.connection = connection
        self._sender: DirectSender | None = None
        self._owed: Taken | None = None  # how far it was without what is being sent to it
        self._caught_up = caught_up
        self._at: Place | None = None  # where it left
        self.unsent: dict[int, Gtid] = {}
        self.last: Place | None = None
        self.left: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._tail = tail
        self.stream = stream
        self._event_bytes, self._since = tail.event_bytes, tail.served
        self.shift = (stream.seq - tail.seq) & 255
        stream.be_sent_by_another()

    @property
    def may_be_served(self) -> bool:
        """Whether it gets whatever is durable at once."""
        return self.stream.may_be_served

    @property
    def spoken_to_at(self) -> float:
        """When something was sent to it last, by the monotonic clock; 0: it was not."""
        return self._tail.served_at if self._tail.served > self._since else 0.0

    @property
    def at(self) -> Place:
        """How far it is, or was when it left."""
        owed = self._owed
        return self._at or (self._tail.at if owed is None else owed.at)

    def reached(self) -> dict[int, Gtid]:
        """
        Return the last group of each domain that it was sent here.

        What others were sent here before is among them: it had that, or it would not be here.
        """
        if self._at is not None:
            return self._caught_up
        reached, owed = self._caught_up | self._tail.reached, self._owed
        return reached if owed is None else _without(owed, reached)

    def open_sender(self) -> None:
        """Have it sent to past its transport, by any thread, if that can be."""
        if self._sender is None and not self.left.done():
            self._sender = self.connection.direct_sender()

    @property
    def takes_at_once(self) -> bool:
        """Whether any thread may send to it now."""
        return self._sender is not None and self.may_be_served and not self.connection.unsent

    def expect(self, taken: Taken) -> None:
        """Be as far as *taken* says until all that comes next was sent to it."""
        self._owed = taken

    def send(self, data: Buffer) -> int:
        """Return how much of *data* it takes, perhaps nothing; `write` is to send it the rest."""
        assert self._sender is not None
        size = 0
        with suppress(OSError):  # the loop meets the same
            size = self._sender.send(data)
        self.connection.sent += size
        if size == len(data):
            self._owed = None
        return size

    def write(self, data: Buffer, taken: Taken) -> None:
        """
        Send to it from the loop; what it does not take waits until `settle`.

        Args:
            data: what comes next.
            taken: how far it is without that.
        """
        if self.connection.write_at_once(data):
            self._owed = None
        elif self.connection.unsent:
            self.owe(taken)
        else:
            self.leave(taken)  # it cannot be sent to

    def owe(self, taken: Taken) -> None:
        """Stay until `settle`, as far as *taken* says while something waits in its connection."""
        self._owed = taken
        self._tail.wait_for(self)

    def settle(self) -> None:
        """Leave if something waits still in its connection."""
        if self._is_owed():
            self.leave(self._owed)
        self._owed = None

    def has_made(self, event_bytes: int) -> None:
        """Take it that its own stream counts events which it made for all."""
        self._event_bytes += event_bytes

    def beat(self) -> None:
        """Send it a heartbeat, between all else that it is sent."""
        with self._tail.turns:
            if not self.left.done() and not self.connection.write_at_once(self.heartbeat()):
                self._close_sender()  # the loop looks whether what waits has gone

    def heartbeat(self) -> bytes:
        """Return a framed heartbeat, which is the next that it is sent."""
        self.note()
        data = self.stream.heartbeat()
        self.shift = (self.stream.seq - self._tail.seq) & 255
        return data

    def note(self) -> None:
        """Have its stream know what it was sent."""
        tail, seq = self._tail, (self._tail.seq + self.shift) & 255
        self.stream.was_sent(tail.event_bytes - self._event_bytes, seq)
        self._event_bytes = tail.event_bytes

    def leave(self, taken: Taken | None = None) -> None:
        """
        Be served no more, behind what it was sent; a second call does nothing.

        Args:
            taken: how far it was without what waits in its connection now; None: nothing does.
        """
        with self._tail.turns:
            if not self.left.done():
                self._leave(taken)

    def _is_owed(self) -> bool:
        """Tell whether something waits in its connection of what it was sent, or may."""
        link = self.connection
        return self._owed is not None and (link.unsent > 0 or link.is_closing)

    def _leave(self, taken: Taken | None) -> None:
        taken = taken or (self._owed if self._is_owed() else None)
        self._owed = None
        reached, at = self.reached(), self.at
        if taken is not None:
            at = taken.at
            self.unsent = {domain: reached[domain] for domain in taken.reached}
            reached = _without(taken, reached)
        self._caught_up, self._at, self.last = reached, at, self._tail.at
        self._tail.dismiss(self, self.stream)
        self._close_sender()
        self.left.set_result(None)

    def _close_sender(self) -> None:
        sender, self._sender = self._sender, None
        if sender is not None:
            sender.close()


def _without(taken: Taken, reached: dict[int, Gtid]) -> dict[int, Gtid]:
    """Return what was reached without what was sent behind *taken*."""
    had = {**reached, **taken.reached}
    return {domain: gtid for domain, gtid in had.items() if gtid is not None}
