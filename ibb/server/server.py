"""
The server: a history that others can replicate from.

    server = Server(store)
    await server.start()
    ...
    await server.stop()
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from typing import TYPE_CHECKING

from ibb.protocol.error_codes import OPTION_PREVENTS_STATEMENT, SERVER_SHUTDOWN
from ibb.storage.clock import SystemClock
from ibb.storage.page_runs import PageRuns
from ibb.storage.store import Store

from .automatic_purge import AutomaticPurge
from .config import Config, derived_server_id
from .connections.certificate import server_tls
from .connections.descriptors import spare_beside
from .connections.refusal_log import RefusalLog
from .dump.lease_renewals import LeaseRenewals
from .dump.pacing import Pacing
from .dump.readers import IDLE, lease_lines, process_line, reader_lines
from .dump.refused_dumps import RefusedDumps
from .dump.semi_sync import SemiSync
from .dump.shared_blocks import SharedBlocks
from .dump.tails import Tails
from .durable_signal import DurableSignal
from .gtid_waits import GtidWaits
from .listener import Listener
from .log import get_log
from .login.accounts import AccountBook, check_made_up_account, made_up_account, shut_out
from .login.auth_methods import make_methods
from .login.login_guard import LoginGuard
from .pools import Pools
from .session_table import SessionTable
from .state_learner import StateLearner
from .statements.live_settings import LiveSettings
from .statements.session_memory import SharedMemory
from .storage_watch import StorageWatch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ibb.protocol.result_set import Value
    from ibb.storage.clock import Clock
    from ibb.storage.history import History

    from .connections.certificate import ServerTls
    from .dump.readers import LeaseLine, Process, ReaderLine
    from .relay.relay_control import RelayControl
    from .sql.ast import ChangeMaster, ReplicaCommand
    from .sql.context import Context, Warned
    from .sql.types import SqlValue
    from .storage_figures import StorageFigures, StorageLine

MADE_UP_USER = "repl"


class Server:
    """
    Serves one history.

    Args:
        history: a `Store` that this program writes, or a `ReadOnlyHistory`; stays the caller's.
        config: settings; by default those of `ibb serve`.
        accounts: who may log in. None makes one account with a random password, and then only
            loopback addresses may be listened on.
        place: what the derived server id depends on besides the host, e.g. the directory.
        clock: the time, for tests.

    Raises:
        ConfigError: no accounts, and an address that others can reach.

    Attributes:
        made_up: user and password of the account that was made, or None.
        upstream: the relay that fills the history, None without one; whoever runs it sets it.
        storage: figures of the store; None where nobody who opened it measures it.
        place: as above.
        global_values: what SET GLOBAL has changed and no setting holds.
        settings: changes `config` while the server runs.
        resetting: held by RESET MASTER. Who is about to read or to write first can be seen doing
            so, then waits for it.
        start_time: when it was started, in seconds since 1970.
    """

    def __init__(
        self,
        history: History,
        *,
        config: Config | None = None,
        accounts: AccountBook | None = None,
        place: str = "",
        clock: Clock | None = None,
    ) -> None:
        self.config = config or Config()
        self.history = history
        self.made_up: tuple[str, str] | None = None
        self.upstream: RelayControl | None = None
        self.storage: StorageFigures | None = None
        self.place = place
        self.global_values: dict[str, SqlValue] = {}
        self.settings = LiveSettings(self)
        self.resetting = threading.Lock()
        self.server_id = self.config.server_id or derived_server_id(socket.gethostname(), place)
        self.questions = 0
        self.access_denied_errors = 0
        self.aborted_connects = self.aborted_clients = 0
        self.refused_dumps = RefusedDumps()
        self.accounts = self._make_up_account() if accounts is None else accounts
        self.methods = make_methods()
        self.tls: ServerTls | None = None
        self.semi_sync = SemiSync(
            enabled=self.config.rpl_semi_sync_master_enabled,
            timeout_ms=self.config.rpl_semi_sync_master_timeout,
            wait_no_slave=self.config.rpl_semi_sync_master_wait_no_slave,
        )
        self.memory = SharedMemory()
        self.renewals: LeaseRenewals | None = None
        self.signal: DurableSignal
        self.gtid_waits: GtidWaits
        self.pools: Pools
        self._clock = clock or SystemClock()
        self.pacing = Pacing(
            self.config.dump_rate,
            self.config.dump_rate_total,
            self._clock,
            delay=self.config.dump_delay,
        )
        self.page_runs = PageRuns(self.history)
        self.shared_blocks = SharedBlocks()
        self.tails: Tails | None = None
        self.purging = AutomaticPurge(self.history, days=self.config.expire_logs_days)
        self._storage_watch = StorageWatch(self)
        self._state_learner = StateLearner(self.history)
        self.guard = LoginGuard(self.config.max_connect_errors, self._clock.monotonic)
        self.refusals = RefusalLog(self._clock.monotonic)
        self.sessions = SessionTable()
        self._listener = Listener(self)
        self._started_at = 0.0
        self.start_time = 0.0

    def _make_up_account(self) -> AccountBook:
        check_made_up_account(self.config)
        account, password = made_up_account(MADE_UP_USER)
        self.made_up = (account.user, password)
        return AccountBook([account])

    @property
    def address(self) -> tuple[str, int]:
        """Host and port that it listens on."""
        return self._listener.address

    async def start(self, bound: list[socket.socket] | None = None) -> None:
        """
        Begin to accept connections.

        Args:
            bound: sockets of `listen`, bound to its addresses already; None: they are made.

        Raises:
            ConfigError: the certificate cannot be used, or an address not be had.
            OSError: another server listens on the unix socket.
        """
        self._started_at, self.start_time = self._clock.monotonic(), self._clock.now()
        self.tls = server_tls(self.config, self.host_name())
        spare = spare_beside(self.config.max_connections)
        self.pools = Pools(self.config.dump_threads, spare)
        self.signal = DurableSignal(self.history, self.pools.statements, self.config.poll_interval)
        self.gtid_waits = GtidWaits(self.history, self.signal, self.pools.statements)
        self._storage_watch.start()
        if isinstance(self.history, Store):
            self.semi_sync.enabled = self.config.rpl_semi_sync_master_enabled  # a stop ends it
            self.semi_sync.guard(self.history.commits)
            self.tails = Tails(self.history, self.page_runs, self.signal, self.pools.statements)
            self.renewals = LeaseRenewals(self.history.leases, self.pools.statements)
        try:
            await self._listener.start(bound)
        except BaseException:
            await self._stop_inside()
            raise
        self.purging.start(self.pools.statements)
        self._state_learner.start(self.pools.statements)
        self._warn_of_accounts()
        host, port = self.address
        get_log().info("server_started", host=host, port=port, server_id=self.server_id)

    def reload(self, accounts: AccountBook | None = None) -> None:
        """
        Take *accounts* instead of the old ones, and read the files of TLS again.

        Sessions go on with the rights that they began with, as MariaDB's do.

        Raises:
            ConfigError: one of them cannot be used; everything stays as it was.
        """
        self.tls = server_tls(self.config, self.host_name(), self.tls)
        if accounts is not None:
            if not accounts.secret_lasts:
                accounts.decoy_secret = self.accounts.decoy_secret
            self.accounts = accounts
        self._warn_of_accounts()

    def _warn_of_accounts(self) -> None:
        for which in shut_out(self.accounts, self.config):
            get_log().warning("accounts_shut_out", accounts=which)
        if self.config.accounts and not self.accounts.secret_lasts:
            get_log().warning("decoy_secret_missing", file=self.config.accounts)

    async def stop(self) -> None:
        """End in order: no new connections, each dump told why, then the threads."""
        self._listener.stop_accepting()
        self.semi_sync.enabled = False  # whoever waits must not wait for replicas that go
        for session in self.sessions:
            session.end(SERVER_SHUTDOWN.error())
        await self._listener.closed()
        await self._stop_inside()
        get_log().info("server_stopped")

    async def _stop_inside(self) -> None:
        self.semi_sync.enabled = False
        self.semi_sync.guard(None)
        await self.purging.stop()
        await self._storage_watch.stop()
        await self._state_learner.stop()
        if self.renewals is not None:
            await self.renewals.finished()
        await self.gtid_waits.close()
        if self.tails is not None:
            self.tails.close()
        await self.signal.close()
        await asyncio.get_running_loop().run_in_executor(None, self.pools.close)

    def traffic(self) -> tuple[int, int]:
        """Return the bytes received and sent so far."""
        return self._listener.traffic()

    def now(self) -> float:
        """Return the wall-clock time in seconds since 1970."""
        return self._clock.now()

    def uptime(self) -> float:
        """Return seconds since the start."""
        return self._clock.monotonic() - self._started_at

    def port(self) -> int:
        """Return the TCP port that the server listens on."""
        return self.address[1]

    def host_name(self) -> str:
        """Return the name of this machine."""
        return socket.gethostname()

    @property
    def relay_runs(self) -> bool:
        """Whether the history grows from an upstream."""
        return self.upstream is not None and self.upstream.is_running

    @property
    def relays(self) -> bool:
        """Whether the history comes from an upstream."""
        return self.upstream is not None and self.upstream.is_configured

    def time_zone(self) -> str:
        """Return the name of the machine's time zone."""
        return time.tzname[0]

    def replicas(self) -> list[tuple[int, str, int, int]]:
        """Return server id, host, port and our own id for each replica with a dump."""
        return [
            (
                session.registered.server_id,
                session.registered.host,
                session.registered.port,
                self.server_id,
            )
            for session in self.sessions
            if session.registered is not None and session.dump_server_id is not None
        ]

    def processes(self, context: Context) -> list[Process]:
        """Return the connections that the account may see: its own, or all."""
        account, now = context.account, self.uptime()
        own = None if account is None or account.may("PROCESS") else account.user
        lines = []
        if self.upstream is not None and own is None:
            lines += self.upstream.processes()
        for session in sorted(self.sessions, key=lambda one: one.id):
            if own is None or session.user == own:
                lines.append(process_line(session, now))
        return lines

    def readers(self) -> Iterator[ReaderLine]:
        """Yield who reads, how far behind, and what that holds back, by connection id."""
        sessions = sorted(self.sessions, key=lambda one: one.id)
        return reader_lines(self.history, sessions, self.now())

    def leases(self) -> Iterator[LeaseLine]:
        """Yield the leases of the store."""
        return lease_lines(self.history, self.now())

    def storage_line(self) -> StorageLine | None:
        """Return how full the store is, blocking; None where another program writes."""
        written = self.upstream.figures.written if self.upstream else None
        return None if self.storage is None else self.storage.line(written)

    def has_dumps(self) -> bool:
        """Tell whether somebody reads the binlog."""
        return self.sessions.has_dumps

    async def reset_ended(self) -> None:
        """Return when no RESET MASTER is at work."""
        if self.resetting.locked():
            await asyncio.to_thread(self._pass_reset)

    def _pass_reset(self) -> None:
        with self.resetting:
            pass

    def replica_status(self) -> dict[str, Value] | None:
        """Return SHOW REPLICA STATUS by column name, None without an upstream."""
        return None if self.upstream is None else self.upstream.status()

    async def upstream_command(self, statement: ReplicaCommand | ChangeMaster) -> list[Warned]:
        """
        Do CHANGE MASTER, START, STOP or RESET SLAVE; return what to warn of.

        Raises:
            SqlError: 1290, nobody here can relay; or why it cannot be done.
        """
        if self.upstream is None:
            raise OPTION_PREVENTS_STATEMENT.error("--read-only")
        return await self.upstream.do(statement)

    def check_global(self, name: str, value: SqlValue) -> None:
        """Raise ConfigError if `set_global` would."""
        self.settings.check(name, value)

    def set_global(self, name: str, value: SqlValue) -> None:
        """
        Change a value of the server's, already checked, for all who ask from now on.

        Raises:
            ConfigError: no setting may have it.
        """
        self.settings.set(name, value)

    def reset_global(self, name: str) -> None:
        """Change a value of the server's back to what was configured."""
        self.settings.reset(name)

    def statistics(self) -> str:
        """Return what answers COM_STATISTICS."""
        return (
            f"Uptime: {int(self.uptime())}  Threads: {len(self.sessions)}  "
            f"Questions: {self.questions}  Slow queries: 0  Opens: 0  Open tables: 0  "
            f"Queries per second avg: {self.questions / max(self.uptime(), 1):.3f}"
        )

    def status(self) -> dict[str, str]:
        """Return the values of SHOW STATUS by their names."""
        sessions = self.sessions
        dumps = sum(session.dump_server_id is not None for session in sessions)
        lines = [process_line(session, self.uptime()) for session in sessions]
        received, sent = self.traffic()
        tls = self.tls.context.session_stats() if self.tls is not None else {}
        values = {
            "Access_denied_errors": self.access_denied_errors,
            "Aborted_clients": self.aborted_clients,
            "Aborted_connects": self.aborted_connects,
            "Bytes_received": received,
            "Bytes_sent": sent,
            "Connection_errors_max_connections": self._listener.found_full,
            "Connections": self._listener.accepted,
            "Max_used_connections": self._listener.most,
            "Queries": self.questions,
            "Questions": self.questions,
            "Slaves_connected": dumps,
            "Slaves_running": dumps,
            "Ssl_accepts": tls.get("accept", 0),
            "Ssl_finished_accepts": tls.get("accept_good", 0),
            "Threads_cached": 0,
            "Threads_connected": len(sessions),
            "Threads_created": self._listener.accepted,
            "Threads_running": sum(line.command != IDLE for line in lines),
            "Uptime": int(self.uptime()),
        }
        shown = {name: str(value) for name, value in values.items()} | self.semi_sync.status()
        return shown if self.upstream is None else shown | self.upstream.semi_sync_status()
