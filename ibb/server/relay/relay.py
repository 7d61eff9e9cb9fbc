"""
The relay: keep a store filled from an upstream primary, through every kind of interruption.

What went wrong decides what comes next: what time may cure is tried again, sooner or later; what
only a person can cure ends the relay, while the server goes on serving what there is.
Source: dump-protocol 8; 10, traps 10, 15.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import nullcontext
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from ibb.protocol import error_codes as codes
from ibb.protocol.errors import IbbError, SqlError
from ibb.server.log import get_log
from ibb.server.sql.system_variables import OF_UPSTREAM
from ibb.server.worker_threads import WorkerThreads
from ibb.storage.errors import DiskError, StoreFailed, StoreFull

from .ingest import Ingest, NotAscending
from .intake import open_intake
from .relay_figures import RelayFigures
from .relay_lag import RelayLag
from .upstream import Upstream
from .upstream_login import UpstreamRefused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from contextlib import AbstractContextManager

    from ibb.protocol.command import SemiSyncAck
    from ibb.protocol.fields import Buffer
    from ibb.server.config import Config
    from ibb.storage.store import Store

    from .intake import Intake
    from .upstream import UpstreamAddress

RETRY_SECONDS_MIN: Final = 1.0
ADVICE: Final = "it is not tried again: mend the cause, then START REPLICA, or restart"
_WITHOUT_PASSWORD: Final = "(using password: NO)"  # noqa: S105 - in the text of a refusal

_T = TypeVar("_T")


class Cure(Enum):
    """What may help after an error."""

    SOON = auto()  # try again, at first at once, then less and less often
    LATER = auto()  # try again, but seldom
    PERSON = auto()  # stop


_BY_SQL_CODE: Final = {
    codes.MASTER_FATAL_ERROR_READING_BINLOG.code: Cure.PERSON,
    codes.SLAVE_INCIDENT.code: Cure.PERSON,
    codes.ACCESS_DENIED_ERROR.code: Cure.LATER,
    codes.SPECIFIC_ACCESS_DENIED_ERROR.code: Cure.LATER,
    codes.SLAVE_SAME_ID.code: Cure.LATER,  # at once would begin an endless fight
}


# Their texts name the account, which is in no log; SHOW REPLICA STATUS has them whole.
_NAMING_ACCOUNTS: Final = frozenset(
    code.code
    for code in (
        codes.ACCESS_DENIED_ERROR,
        codes.DBACCESS_DENIED_ERROR,
        codes.TOO_MANY_USER_CONNECTIONS,
        codes.USER_LIMIT_REACHED,
    )
)


def for_log(error: Exception, *, logged_in: bool) -> str:
    """
    Return what the log says of an upstream's error.

    Args:
        error: what it is.
        logged_in: it came after the login.
    """
    if isinstance(error, SqlError) and error.code in _NAMING_ACCOUNTS:
        why = _why_refused(error, logged_in=logged_in)
        return f"{error.code} ({error.sqlstate}) the upstream refuses our account: {why}"
    return str(error) or repr(error)


def _why_refused(error: SqlError, *, logged_in: bool) -> str:
    if error.code in (codes.TOO_MANY_USER_CONNECTIONS.code, codes.USER_LIMIT_REACHED.code):
        return "it has as many connections, or has done as much, as it may"
    if logged_in:
        return "the login is right, but it may not do what a replica does: GRANT REPLICATION SLAVE"
    if _WITHOUT_PASSWORD in error.message:
        return "no password was sent, or an empty one: upstream_password_file names its file"
    return "its name or password is wrong, or it may not come from this host, or not without TLS"


def cure_of(error: Exception) -> Cure:
    """Return what may help against *error*."""
    match error:
        case SqlError():
            return _BY_SQL_CODE.get(error.code, Cure.SOON)
        case UpstreamRefused() | NotAscending() | StoreFailed():
            return Cure.PERSON
        case DiskError():
            return Cure.SOON if error.full else Cure.PERSON
        case StoreFull():
            return Cure.SOON
    return Cure.SOON


class Relay:
    """
    Follows one upstream.

    Args:
        store: takes the groups; this relay alone writes it.
        address: of the upstream.
        config: settings.
        server_id: our own.
        port: returns the port that our server listens on.
        sleep: waits some seconds; for tests.
        learn: is told what the upstream's system variables in `OF_UPSTREAM` are.
        figures: where to count; its own by default.
        told_behind: in its blocks all that one makes durable is told to readers at the end.

    Attributes:
        stopped_by: the error that ended it, or None while it runs.
        connected: the upstream is sending.
        cipher: what the connection is encrypted by, "" if by nothing.
        acknowledges: it is told what is safe here.
        acknowledged: how often it was told.
        config: settings, looked at when they are needed.
        last_error: what went wrong last; None once it goes well again.
        retry_seconds: that it waits, or waited, after the last error.
        upstream_id: server id of the upstream, 0 before it has said.
    """

    def __init__(
        self,
        store: Store,
        address: UpstreamAddress,
        *,
        config: Config,
        server_id: int,
        port: Callable[[], int],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        learn: Callable[[str, str], None] | None = None,
        figures: RelayFigures | None = None,
        told_behind: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._told_behind = told_behind
        self.stopped_by: Exception | None = None
        self.connected = False
        self.cipher = ""
        self.acknowledges = False
        self.acknowledged = 0
        self.last_error: Exception | None = None
        self.retry_seconds = config.master_connect_retry
        self.upstream_id = 0
        self._figures = figures or RelayFigures()
        self._lag = RelayLag()
        self._store = store
        self._address = address
        self.config = config
        self._server_id = server_id
        self._port = port
        self._sleep = sleep
        self._learn = learn
        self._thread = WorkerThreads(1, "storage")
        self._logged_in = False  # the last attempt came so far
        self._progress = False  # something was received since the last connect
        self._log = get_log().bind(upstream=str(address))

    def seconds_behind(self, now: float) -> int | None:
        """Return how far it is behind, see `RelayLag`; None while not connected."""
        return self._lag.seconds(now) if self.connected else None

    async def run(self) -> None:
        """Relay until cancelled, or until only a person can help; that is logged."""
        delay = RETRY_SECONDS_MIN
        try:
            while True:
                self._progress = False
                try:
                    await self._follow()
                except (IbbError, OSError) as error:
                    self.last_error = error
                    self._figures.count_error(error)
                    cure, said = cure_of(error), for_log(error, logged_in=self._logged_in)
                    if cure is Cure.PERSON:
                        self.stopped_by = error
                        self._log.error("relay_stopped", error=said, advice=ADVICE)
                        return
                    if self._progress:
                        delay = RETRY_SECONDS_MIN
                    if cure is Cure.LATER:
                        delay = self.config.master_connect_retry
                    self.retry_seconds = delay
                    self._log.warning("relay_interrupted", error=said, retry_seconds=delay)
                await self._sleep(delay)
                delay = min(delay * 2, self.config.master_connect_retry)
        finally:
            await asyncio.get_running_loop().run_in_executor(None, self._thread.shutdown)

    async def _follow(self) -> None:
        """Connect and take groups; never returns, raises what ends it."""
        config = self.config
        await self._in_thread(self._store.sync)  # the state says what is durable only
        state = await self._in_thread(self._store.state)
        position = state.position()
        self._logged_in = False
        async with asyncio.timeout(config.slave_net_timeout):
            upstream = await Upstream.connect(self._address)
        self._logged_in = True
        ingest: Ingest | None = None
        intake: Intake | None = None
        try:
            async with asyncio.timeout(config.slave_net_timeout):
                if self._learn is not None:
                    for name, value in (await upstream.variables(OF_UPSTREAM)).items():
                        self._learn(name.lower(), value)
                terms = await upstream.start_dump(
                    position,
                    server_id=self._server_id,
                    port=self._port(),
                    heartbeat_period=config.master_heartbeat_period,
                    semi_sync=config.rpl_semi_sync_slave_enabled,
                )
            self.connected, self.last_error = True, None
            self._figures.connects += 1
            self.acknowledges = terms.semi_sync
            self.upstream_id = upstream.server_id
            self._lag.clock_ahead = upstream.clock_ahead
            self.cipher, tls_version = upstream.cipher()
            self._log.info(
                "relay_started",
                position=str(position),
                version=upstream.server_version,
                tls=tls_version or None,
                semi_sync=terms.semi_sync,
            )
            make = partial(
                Ingest,
                strict=config.gtid_strict_mode,
                skip_incidents=config.skip_incidents,
                lag=self._lag,
                **terms._asdict(),
            )
            ingest = await self._in_thread(partial(make, self._store))
            intake = open_intake(upstream, lambda: self.config.slave_net_timeout)
            following, loop = asyncio.current_task(), asyncio.get_running_loop()

            def acknowledge(what: SemiSyncAck) -> None:
                told = self._acknowledge(following, upstream, what)
                asyncio.run_coroutine_threadsafe(told, loop).result()

            await self._in_thread(partial(self._store_all, ingest, intake, acknowledge))
        finally:
            self.connected = self.acknowledges = False
            if intake is not None:
                intake.close()
            await upstream.close()
            if ingest is not None:
                await self._in_thread(ingest.close)

    def _store_all(
        self, ingest: Ingest, intake: Intake, acknowledge: Callable[[SemiSyncAck], None]
    ) -> None:
        """Store what comes; never returns, raises what ends it; in the storage thread."""
        # An upstream that waits for an acknowledgement waits for no reader.
        told_behind = self._told_behind if not self.acknowledges else nullcontext
        while True:
            pieces = intake.take()
            with told_behind():
                acknowledgement = self._feed(ingest, pieces, intake.has_more)
            if acknowledgement is not None:
                acknowledge(acknowledgement)
            self._progress = self._progress or ingest.groups > 0

    async def _acknowledge(
        self, following: asyncio.Task[None] | None, upstream: Upstream, what: SemiSyncAck
    ) -> None:
        """Tell the upstream what is safe here; not when the relay ends, which lets all go."""
        if following is None or following.cancelling():
            return
        async with asyncio.timeout(self.config.slave_net_timeout):
            await upstream.acknowledge(what)
        self.acknowledged += 1

    def _feed(
        self, ingest: Ingest, pieces: Sequence[Buffer], has_more: Callable[[], bool]
    ) -> SemiSyncAck | None:
        """Store what has come, and count it; in the storage thread."""
        figures, groups, skipped = self._figures, ingest.groups, ingest.skipped
        began = time.monotonic()
        try:
            return ingest.feed(pieces, has_more)
        finally:
            figures.batches.add(time.monotonic() - began)
            if ingest.synced_in is not None:
                figures.syncs.add(ingest.synced_in)
            figures.groups += ingest.groups - groups
            figures.skipped += ingest.skipped - skipped
            figures.received += sum(map(len, pieces))
            figures.written = ingest.written or figures.written

    async def _in_thread(self, call: Callable[[], _T]) -> _T:
        return await self._thread.run(call)
