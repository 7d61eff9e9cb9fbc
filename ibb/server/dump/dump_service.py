"""
A dump beside what its client sends meanwhile: acknowledgements, or a goodbye.

Source: dump-protocol 3.2, 7; 10, traps 10, 29, 31, 42.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from ibb.protocol.command import Quit, SemiSyncAck, parse_command
from ibb.protocol.error_codes import MASTER_FATAL_ERROR_READING_BINLOG
from ibb.protocol.errors import FormatError, ProtocolError, SqlError
from ibb.protocol.event_encoder import CAPABILITY_GTID
from ibb.protocol.gtid import GtidPosition
from ibb.server.connections.connection import PeerGone
from ibb.server.log import get_log

from .counted_stream import CountedStream
from .dump_lease import DumpLease
from .dump_request import heartbeat_period
from .dump_session import DumpSession
from .dump_terms import DumpTerms
from .readers import HeldUpBy
from .refused_dumps import RefusedDump
from .tail_stream import TailStream

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Protocol

    from ibb.server.connections.connection import Connection
    from ibb.server.durable_signal import DurableSignal
    from ibb.server.login.accounts import Account
    from ibb.server.pools import Pools
    from ibb.server.statements.variables import ServerFacts, SessionVariables
    from ibb.storage.page_runs import PageRuns

    from .dump_request import DumpRequest
    from .dump_stream import DumpStream
    from .lease_renewals import LeaseRenewals
    from .pacing import Pace
    from .readers import Progress
    from .refused_dumps import RefusedDumps
    from .semi_sync import SemiSync
    from .shared_blocks import SharedBlocks
    from .tails import Tails

    class DumpHost(ServerFacts, Protocol):
        """What a dump needs of the server around it."""

        page_runs: PageRuns
        shared_blocks: SharedBlocks
        signal: DurableSignal
        pools: Pools
        semi_sync: SemiSync
        tails: Tails | None
        refused_dumps: RefusedDumps


PACKET_BYTES_MAX: Final = 4096  # of what a client sends during a dump; a reply has at most 521


class ReaderStalled(PeerGone):
    """The client did not read for as long as a client may."""


class DumpService:
    """
    Serves one dump.

    Args:
        host: the server around it.
        connection: the client's.
        request: what it asked for.
        variables: of its session, which may change while the dump runs.
        pace: how fast and how fresh it is served.
        account: the client's.
    """

    def __init__(
        self,
        host: DumpHost,
        connection: Connection,
        request: DumpRequest,
        variables: SessionVariables,
        pace: Pace,
        account: Account,
    ) -> None:
        self.server_id = request.server_id
        self._account = account
        self._host = host
        self._connection = connection
        self._request = request
        self._pace = pace
        self._semi_sync = host.semi_sync if request.semi_sync else None
        self._acknowledged_at: float | None = None
        self._is_told = False  # the log has that it runs
        self._lease: DumpLease | None = None
        self._leasing: asyncio.Task[None] | None = None
        self._stream = self._new_stream()
        self._session = DumpSession(
            self._stream,
            connection,
            signal=host.signal,
            pool=host.pools.dumps,
            turns=host.pools.turns,
            heartbeat_period=lambda: heartbeat_period(variables),
            non_block=request.non_block,
            pace=pace,
            tails=host.tails,
        )
        self._log = get_log().bind(peer=connection.peer, replica_server_id=request.server_id)

    def end(self, error: SqlError | None) -> None:
        """Have the dump end with *error*, or EOF, behind the group that is being sent."""
        self._session.end(error)

    @property
    def idle(self) -> bool:
        """Whether everything durable was sent."""
        return self._session.idle

    @property
    def sent_now(self) -> int:
        """Bytes that were sent, and the connection has not counted yet."""
        return self._session.sent_now

    def held_up_by(self) -> HeldUpBy:
        """Return what the dump waits for just now, if it has not sent everything."""
        if self._session.waits_for_client:
            return HeldUpBy.CLIENT
        if self._pace.rest() > 0:
            return HeldUpBy.RATE
        return HeldUpBy.DELAY if self._pace.delay else HeldUpBy.NOTHING

    def progress(self) -> Progress:
        """Return how far the dump has come: what the socket did not take yet is not sent."""
        reached = GtidPosition(list(self._session.reached.values()))
        progress = self._stream.progress(self._session.at, reached)
        delay = self._pace.delay
        return progress._replace(acknowledged_at=self._acknowledged_at, delay=delay)

    async def run(self) -> None:
        """
        Dump until the end, which is to be told by EOF.

        Raises:
            SqlError: it is to be told by this instead.
            PeerGone: the client quit, or does not read.
            OSError: the connection broke.
        """
        if self._semi_sync is not None:
            self._semi_sync.join()
        try:
            await self._until_either_ends(self._session.run(self._accepted))
        except TimeoutError as error:
            self._log.warning("dump_dropped", reason=str(error))
            self._connection.abort()  # to close in order would wait for the client once more
            raise ReaderStalled(str(error)) from error
        except SqlError as error:
            self._note_refusal(error)
            raise
        finally:
            if self._semi_sync is not None:
                self._semi_sync.leave()
            self._connection.seq = self._stream.seq  # what the client sent does not count
            if self._leasing is not None:
                self._leasing.cancel()
                self._leasing = None  # its end holds the frames that it came through, and so this
            self._let_go()
            self._tell_started()
            self._log.info("dump_ended")

    def _tell_started(self) -> None:
        """Log that the dump runs, once: behind its first packets, which a client waits for."""
        if self._is_told:
            return
        self._is_told = True
        request = self._request
        self._log.info(
            "dump_started",
            start=str(request.connect_state) if request.connect_state is not None else None,
            file=request.file_name,
            semi_sync=request.semi_sync,
        )

    def _note_refusal(self, error: SqlError) -> None:
        """Tell of a client that will not come back by itself: a replica stops at this error."""
        self._tell_started()
        if error.code == MASTER_FATAL_ERROR_READING_BINLOG.code:
            refused = RefusedDump(self.server_id, self._connection.peer, error.message, time.time())
            self._host.refused_dumps.note(refused)
            self._log.warning("dump_refused", error=error.message)

    def _accepted(self) -> None:
        """Keep a lease from now on: not before the replica's position proved to be one."""
        self._tell_started()
        self._host.refused_dumps.forget(self.server_id)
        if self._request.connect_state is not None and self._host.renewals is not None:
            keeping = self._keep_lease(self._host.renewals, self._request.connect_state)
            self._leasing = asyncio.create_task(keeping)

    async def _keep_lease(self, renewals: LeaseRenewals, start: GtidPosition) -> None:
        """Keep a lease for the replica, if there is one for it, or its account has such."""
        user = self._account.user
        seconds = self._account.dump_lease or self._host.config.dump_lease
        terms = await renewals.terms_for(user, self.server_id, seconds)
        if terms is not None:
            self._lease = DumpLease(terms, start, progress=self.progress, renewals=renewals)
            await self._lease.keep()

    def _let_go(self) -> None:
        """Keep what the replica may still need by its lease, not by the dump any more."""
        if self._lease is not None and self._host.renewals is not None:
            self._host.renewals.finish(self._lease, self._stream.close)
        elif not self._stream.close_at_once():
            self._host.pools.statements.submit(self._stream.close)

    def _new_stream(self) -> DumpStream:
        host, request = self._host, self._request
        terms = DumpTerms(
            host.history,
            request,
            server_id=host.server_id,
            server_version=host.config.server_version,
            now=int(host.now()),
            pace=self._pace,
        )
        if request.semi_sync or request.capability < CAPABILITY_GTID:
            return CountedStream(terms, semi_sync=self._semi_sync)
        permits = host.pools.turns.permits
        return TailStream(terms, runs=host.page_runs, blocks=host.shared_blocks, permits=permits)

    async def _until_either_ends(self, dumping: Coroutine[None, None, None]) -> None:
        """
        Run the dump while listening for the client's end, which raises PeerGone.

        It runs in the session's own task, so that it begins at once; that is cancelled when the
        client's end is heard.
        """
        task, is_over, is_heard = asyncio.current_task(), False, False
        assert task is not None
        cancels = task.cancelling()

        def heard(_: asyncio.Task[None]) -> None:
            nonlocal is_heard
            if not is_over:
                is_heard = task.cancel()

        listening = asyncio.create_task(self._listen())
        listening.add_done_callback(heard)
        try:
            await dumping
        except asyncio.CancelledError:
            if not is_heard or task.cancelling() > cancels + 1:  # the session is to end as well
                raise
            await listening
        finally:
            is_over = True
            if is_heard:
                task.uncancel()
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            del listening  # as above: the error that it has ended with

    async def _listen(self) -> None:
        """
        Take acknowledgements; return never: raise PeerGone when the client quits or closes.

        What else it sends is thrown away: some clients send bytes too many.
        """
        while True:
            self._connection.expect(PACKET_BYTES_MAX)
            try:
                packet = await self._connection.receive()
            except ProtocolError:
                await self._connection.discard_until_closed()
            try:
                command = parse_command(packet.payload)
            except FormatError:
                continue
            if isinstance(command, Quit):
                raise PeerGone("the client quit its dump")
            if isinstance(command, SemiSyncAck) and isinstance(self._stream, CountedStream):
                self._stream.acknowledged(command)
                self._acknowledged_at = time.time()
