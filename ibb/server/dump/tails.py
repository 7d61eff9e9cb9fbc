"""
The tails of a server: one for each kind of packets that readers at the end wait for.

    await tails.rested(stream)
    member = tails.join(stream, connection)    None: the stream goes on by itself
    await member.left                          or member.leave()

The loop serves them when the history has grown. It rests behind that four times as long as it took,
up to a limit: so some hundred readers take a fifth of its time at the most, groups that come fast
are sent to many together, and one that comes alone, or to few, is sent at once.

A few are served by the thread of a relay that has made something durable, without the loop: to
wake that takes about as long as all the rest of the way from a primary to its replica.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from ibb.server.log import get_log

from .tail import Tail
from .tail_stream import TailStream
from .tail_turns import TailTurns

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from ibb.server.connections.connection import Connection
    from ibb.server.durable_signal import DurableSignal
    from ibb.storage.page_runs import PageRuns
    from ibb.storage.store import Store

    from .dump_stream import DumpStream
    from .tail_member import TailMember
    from .tail_place import PacketKind, TailPlace

REST_SHARE: Final = 4  # of the processor time that serving took
REST_SECONDS_MIN: Final = 0.001  # less than that few readers would wait for, not many
REST_SECONDS_MAX: Final = 0.05
AT_ONCE_MAX: Final = 4  # readers: more take longer to send to than the loop to wake


class Tails:
    """
    The readers at the end of a store; belongs to the event loop.

    What another program writes is not served here: to look at it takes time.

    Args:
        store: what they read.
        runs: its pages.
        signal: tells when it grew; calls nobody else at once.
        pool: runs the store's blocking calls.
    """

    def __init__(self, store: Store, runs: PageRuns, signal: DurableSignal, pool: Executor) -> None:
        self._store = store
        self._runs = runs
        self._signal = signal
        self._pool = pool
        self._tails: dict[PacketKind, Tail] = {}
        self._resting: asyncio.TimerHandle | None = None
        self._rested: list[asyncio.Future[None]] = []  # who waits until it has
        self._syncing: asyncio.Future[None] | None = None
        self._sync_again = False
        self._turns = TailTurns()
        signal.listener, signal.at_once = self._news, self._serve_at_once

    def close(self) -> None:
        """Serve nobody any more."""
        self._signal.listener = self._signal.at_once = None
        if self._resting is not None:
            self._resting.cancel()
            self._resting = None
        self._wake_rested()
        with self._turns:
            self._tails.clear()
        self._sync_again = False

    async def rested(self, stream: DumpStream) -> None:
        """
        Return when a reader may be able to join: at once if the loop does not rest.

        Who has everything is before those who wait meanwhile: to serve all for each who comes
        would take most of the time where many come.

        Args:
            stream: the reader's; one that cannot join anyhow waits for nothing.
        """
        if self._resting is not None and _place(stream) is not None:
            waiting = asyncio.get_running_loop().create_future()
            self._rested.append(waiting)
            await waiting

    def join(self, stream: DumpStream, connection: Connection) -> TailMember | None:
        """
        Have a reader served from here on that has sent all that its stream could make.

        None: what comes for it cannot be made here, or it is not where the others are.
        """
        place = _place(stream)
        if place is None or not isinstance(stream, TailStream):
            return None
        with self._turns:
            if self._resting is None:  # else who was served last is behind all who come
                self._serve_all()
            tail = self._tails.get(place.kind)
            if tail is None or not tail.members:
                tail = Tail(self._store, self._runs, place, self._turns)
            member = tail.admit(place, stream, connection)
            if member is None:
                return None
            self._tails[place.kind] = tail
        if self._resting is None and self._serve_all():  # who came later may lack much
            self._resting = asyncio.get_running_loop().call_later(0, self._serve_and_rest)
        self._sync()
        return member

    def _news(self) -> None:
        if self._resting is None:
            self._serve_and_rest()
        self._sync()

    def _serve_and_rest(self) -> None:
        self._resting = None
        loop = asyncio.get_running_loop()
        begun = time.thread_time()
        try:
            has_more = self._serve_all()
        finally:
            self._wake_rested()
        rest = min((time.thread_time() - begun) * REST_SHARE, REST_SECONDS_MAX)
        if has_more or rest >= REST_SECONDS_MIN:
            self._resting = loop.call_later(rest, self._serve_and_rest)

    def _wake_rested(self) -> None:
        rested, self._rested = self._rested, []
        for waiting in rested:
            if not waiting.done():
                waiting.set_result(None)

    def _serve_all(self) -> bool:
        """Serve all; return whether there is more for any."""
        has_more = False
        with self._turns:
            for kind, tail in list(self._tails.items()):
                try:
                    has_more |= tail.serve()
                except Exception:  # noqa: BLE001 - whatever it is, it is not the other readers'
                    get_log().exception("tail_failed", readers=len(tail.members))
                    tail.give_up()
                if not tail.members:
                    del self._tails[kind]
            if self._are_few():
                for tail in self._tails.values():
                    tail.open_senders()
        return has_more

    def _are_few(self) -> bool:
        return sum(len(tail.members) for tail in self._tails.values()) <= AT_ONCE_MAX

    def _serve_at_once(self) -> bool:
        """Serve all if they are few, in any thread; return whether the loop has nothing to do."""
        if not self._tails or self._resting is not None or not self._store.commits.are_synced:
            return False
        if not self._turns.begin():
            return False
        try:
            are_served = self._are_few() and self._served_at_once()
        finally:
            is_done = self._turns.end()
        return are_served and is_done

    def _served_at_once(self) -> bool:
        are_served = True
        for tail in self._tails.values():
            try:
                are_served &= tail.serve_at_once()
            except Exception:  # noqa: BLE001 - as above
                self._turns.leave(tail.give_up)
                get_log().exception("tail_failed", readers=len(tail.members))
        return are_served

    def _sync(self) -> None:
        """Have what waits for a reader made durable, where nobody else does it; once at a time."""
        if self._store.commits.are_synced or not self._tails:
            return
        self._sync_again = self._syncing is not None
        if self._syncing is None:
            loop = asyncio.get_running_loop()
            self._syncing = loop.run_in_executor(self._pool, self._store.refresh)
            self._syncing.add_done_callback(self._synced)

    def _synced(self, syncing: asyncio.Future[None]) -> None:
        self._syncing = None
        error = None if syncing.cancelled() else syncing.exception()
        if error is not None:
            get_log().warning("readers_not_synced_for", error=str(error))
            for tail in self._tails.values():
                tail.disband()  # the streams meet it, and tell who reads
            self._tails.clear()
        elif self._sync_again:
            self._sync()


def _place(stream: DumpStream) -> TailPlace | None:
    """Return where a reader could be served by others, if it could."""
    return stream.tail_place() if isinstance(stream, TailStream) else None
