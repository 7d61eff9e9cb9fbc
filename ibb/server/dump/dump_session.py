"""
One dump on its connection: batches from the pool to the socket, heartbeats while nothing is due.

A thread of the pool makes batches and sends them itself, as long as the client takes them. With
TLS, a limit of its rate, or too many others, the loop writes what the pool has made, and encrypted
if that is wanted; the pool makes the next one meanwhile. So at most two batches and the transport's
buffer are held for a client, however slowly it reads.
Source: dump-protocol 4.8, 5.1, 10.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from ibb.server.config import BATCH_BYTES
from ibb.server.worker_threads import run_in

from .dump_batch import Outcome
from .socket_pump import SocketPump

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from ibb.protocol.errors import SqlError
    from ibb.protocol.gtid import Gtid
    from ibb.server.connections.connection import Connection
    from ibb.server.durable_signal import DurableSignal

    from .dump_batch import Batch, Place
    from .dump_stream import DumpStream
    from .pacing import Pace
    from .socket_pump import PumpTurns
    from .tail_member import TailMember
    from .tails import Tails

T = TypeVar("T")
SLOW_SECONDS: Final = 0.1  # for what is encrypted, which nobody can take back: an end is behind it
REST_SECONDS_MAX: Final = 1.0  # at a time, before it is seen whether a rate or delay has changed


class StreamBroken(ConnectionError):  # noqa: N818 - a state of the world
    """The dump failed inside an event: the client can only see the connection end."""


class DumpSession:
    """
    Sends one stream.

    Args:
        stream: makes the packets.
        connection: takes them.
        signal: tells when the history grew.
        pool: runs the stream's blocking calls.
        turns: of all dumps in that pool.
        heartbeat_period: seconds of silence before a heartbeat, or None; asked for each time,
            since the session may change it.
        non_block: end when everything durable was sent.
        pace: how fast the client is served.
        tails: serve it while it has everything; None: it always serves itself.

    Attributes:
        idle: everything durable was sent.
    """

    def __init__(
        self,
        stream: DumpStream,
        connection: Connection,
        *,
        signal: DurableSignal,
        pool: Executor,
        turns: PumpTurns,
        heartbeat_period: Callable[[], float | None],
        non_block: bool,
        pace: Pace,
        tails: Tails | None = None,
    ) -> None:
        self._stream = stream
        self._connection = connection
        self._signal = signal
        self._pool = pool
        self._turns = turns
        self._upcoming: asyncio.Future[Batch] | None = None  # made while another one is written
        self._is_slow = False  # the client takes its time for what is encrypted
        self._pump = SocketPump(stream, turns)
        self._heartbeat_period = heartbeat_period
        self._non_block = non_block
        self._pace = pace
        self._ending = asyncio.Event()
        self._ended_by: SqlError | None = None
        self._tails = tails
        self._member: TailMember | None = None
        self.idle = False
        self._has_begun = False  # its start was found
        self._at: Place | None = None
        self._left_at: Place | None = None  # where it was served last by others
        self._reached: dict[int, Gtid] = {}

    @property
    def at(self) -> Place | None:
        """How far it is with what the connection has taken; None: as far as its stream."""
        member = self._member
        return self._at if member is None else member.at

    @property
    def reached(self) -> dict[int, Gtid]:
        """The last GTID of each domain that the connection has taken, or the client had."""
        member = self._member
        return self._reached if member is None else self._reached | member.reached()

    @property
    def sent_now(self) -> int:
        """Bytes that a thread has sent, and the connection has not counted yet."""
        return self._pump.taken + self._stream.under_way()[0]

    @property
    def waits_for_client(self) -> bool:
        """Whether the client takes no more just now."""
        waits = self._pump.waits or self._stream.under_way()[1]
        return waits or self._connection.unsent > 0

    def end(self, error: SqlError | None) -> None:
        """Have `run` raise *error*, or return, behind the group that is being sent."""
        self._ended_by = error
        self._stream.stop()
        self._ending.set()
        if self._member is not None:
            self._member.leave()
        self._signal.nudge()

    async def run(self, accepted: Callable[[], None]) -> None:
        """
        Send until the dump's own end, which is EOF.

        Args:
            accepted: called once the start was found.

        Raises:
            SqlError: the reason to tell the client instead.
            StreamBroken: there is a reason, but no place left for it in the stream.
            OSError, TimeoutError: the client went or does not read.
        """
        if not self._connection.encrypted:
            self._connection.keep_nothing()
        self._count_sealing(1)
        try:
            await self._run(accepted)
        finally:
            self._count_sealing(-1)
            if self._upcoming is not None:
                self._upcoming.cancel()  # also, what is wrong with it concerns nobody any more
            self._connection.keep_nothing(wanted=False)

    async def _run(self, accepted: Callable[[], None]) -> None:
        seen = self._signal.count
        batch = await self._next_batch(self._begin)
        if self._has_begun:
            accepted()
        while True:
            data = bytes(batch.data)  # the next batch may be made where it lies
            if data or batch.sealed:
                self._at = batch.start
                self._upcoming = self._begin_next(batch)
                await self._write(data, batch.sealed)
            self._reached.update(batch.sent)
            self._at = None if self._upcoming is None else batch.end
            may_end = self._upcoming is None and self._stream.between_groups
            if may_end and self._ending.is_set():
                if self._ended_by is not None:
                    raise self._ended_by
                return
            if batch.outcome is Outcome.END:
                if not self._stream.at_boundary:
                    raise StreamBroken(str(batch.error))
                if batch.error is not None:
                    raise batch.error
                return
            if batch.outcome is Outcome.MORE:
                if self._upcoming is None:
                    self._pace.sent(len(data) + batch.sealed)
                    await self._rest(self._pace.rest)
            elif self._non_block:
                return
            elif batch.outcome is Outcome.YOUNG:
                await self._rest(partial(self._pace.too_young, batch.written_at))
            else:
                self._count_sealing(-1)
                try:
                    await self._wait(seen)
                finally:
                    self._count_sealing(1)
                self.idle = False
            if self._upcoming is None:
                seen = self._signal.count
                self._at = self._left_at or batch.end  # a thread that sends goes on from there
                self._left_at = None
                batch = await self._next_batch()
                self._at = None
            else:
                batch = await self._upcoming
                self._upcoming = None

    def _begin(self) -> Batch:
        """Return the stream's start, with the first groups behind it if there are any."""
        first = self._stream.start()
        if first.outcome is Outcome.END:
            return first
        self._has_begun = True
        self._reached.update(first.sent)  # it has that already, whatever comes of the rest
        batch = self._stream.next_batch()
        sent = {**first.sent, **batch.sent}
        return replace(batch, data=b"".join((first.data, batch.data)), sent=sent, start=first.start)

    def _begin_next(self, batch: Batch) -> asyncio.Future[Batch] | None:
        """Start making the next batch, unless the dump ends, waits or may have to rest first."""
        ends = self._ending.is_set() and self._stream.between_groups
        if batch.outcome is not Outcome.MORE or ends or self._pace.limited:
            return None
        return self._in_pool(self._sealed) if self._connection.encrypted else None

    async def _write(self, data: bytes, sealed: int) -> None:
        """Write what is encrypted already, or *data*."""
        if not sealed:
            await self._connection.write(data)
            return
        now = asyncio.get_running_loop().time
        begun = now()
        await self._connection.write_sealed(sealed)
        self._is_slow = now() - begun > SLOW_SECONDS

    def _count_sealing(self, change: int) -> None:
        self._turns.sealing += change if self._connection.encrypted else 0

    def _sealed(self, make: Callable[[], Batch] | None = None) -> Batch:
        """Return the next batch, encrypted by the thread that has made it."""
        self._stream.apart_bytes = BATCH_BYTES if self._is_slow else self._turns.sealed_bytes
        batch = make() if make is not None else self._stream.next_batch()
        size = len(batch.data)
        if size:
            self._connection.seal(batch.data)
        self._stream.forget_batch()
        return replace(batch, data=b"", sealed=size)

    async def _next_batch(self, make: Callable[[], Batch] | None = None) -> Batch:
        """
        Return what is to be sent next, which may be nothing: much was sent already.

        Args:
            make: makes the first batch; None: the stream, like the others.
        """
        sender, is_first = None, make is not None  # a client waits for that, maybe beside others
        if self._turns.has_room and not self._pace.limited:
            sender = self._connection.direct_sender()
        if self._connection.encrypted:
            return await self._in_pool(partial(self._sealed, make), at_once=is_first)
        if sender is None:
            return await self._in_pool(make or self._stream.next_batch, at_once=is_first)
        self._turns.taken += 1
        try:
            turn = partial(self._pump.turn, sender, self._took, make)
            batch = await self._in_pool(turn, at_once=is_first)
        finally:
            self._turns.taken -= 1
            sender.close()
        self._connection.sent += self._pump.taken
        self._pump.taken = 0
        return batch

    def _took(self, batch: Batch) -> None:
        """Note what the client has taken; called by a thread while nothing else changes this."""
        self._reached.update(batch.sent)
        self._at = batch.end

    def _in_pool(self, call: Callable[[], T], *, at_once: bool = False) -> asyncio.Future[T]:
        return run_in(self._pool, call, at_once=at_once)

    async def _rest(self, seconds_left: Callable[[], float]) -> None:
        """
        Wait while there are seconds left, with heartbeats; return sooner if the dump is to end.

        What is left is asked for again and again, since rates and delays may be changed. Nobody
        makes a batch meanwhile. Inside an event there is no place for a heartbeat.
        """
        loop = asyncio.get_running_loop()
        spoke_at = loop.time()
        while (left := seconds_left()) > 0 and not self._ending.is_set():
            period = self._heartbeat_period() if self._stream.at_boundary else None
            silence = loop.time() - spoke_at
            turn = min(left, REST_SECONDS_MAX)
            if period is not None:
                turn = min(turn, max(period - silence, 0.0))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), turn)
            due = period is not None and loop.time() - spoke_at >= period
            if due and not self._ending.is_set():
                await self._connection.write(self._stream.heartbeat())
                spoke_at = loop.time()

    async def _wait(self, seen: int) -> None:
        """Return when there may be more, or a reason to end; send heartbeats until then."""
        self.idle = True
        if not self._ending.is_set() and await self._was_served():
            return
        while self._signal.count == seen and not self._ending.is_set():
            period = self._heartbeat_period()
            await self._signal.wait(seen, period)
            if period is not None and self._signal.count == seen and not self._ending.is_set():
                await self._connection.write(self._stream.heartbeat())

    async def _was_served(self) -> bool:
        """Tell whether the client was served where it waits; return when it is not any more."""
        if self._tails is None:
            return False
        await self._tails.rested(self._stream)
        member = self._tails.join(self._stream, self._connection)
        if member is None:
            return False
        self._member = member
        try:
            await self._while_served(member)
        finally:
            member.leave()
            self._reached.update(member.reached())
            self._at, self._member = member.at, None
        await self._all_taken()
        self._reached.update(member.unsent)
        self._at, self._left_at = None, member.last
        return True

    async def _all_taken(self) -> None:
        """Return when nothing waits for the client; raises TimeoutError when it does not read."""
        self.idle = not self._connection.unsent
        self._connection.keep_nothing()
        try:
            await self._connection.flushed()
        finally:
            self._connection.keep_nothing(wanted=not self._connection.encrypted)

    async def _while_served(self, member: TailMember) -> None:
        """Send heartbeats while nothing else is sent; return when the client is not served."""
        loop = asyncio.get_running_loop()
        spoke_at = loop.time()
        while not member.left.done():
            period, left = self._heartbeat_period(), None
            if period is not None:
                left = max(spoke_at, member.spoken_to_at) + period - loop.time()
            if left is None or left > 0:
                await asyncio.wait((member.left,), timeout=left)
            else:
                member.beat()
                await self._connection.flushed()
                spoke_at = loop.time()
