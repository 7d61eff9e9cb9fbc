"""What a session needs of the server around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from .statements.variables import ServerFacts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ibb.protocol.authentication import Method
    from ibb.storage.page_runs import PageRuns

    from .connections.refusal_log import RefusalLog
    from .dump.refused_dumps import RefusedDumps
    from .dump.semi_sync import SemiSync
    from .dump.shared_blocks import SharedBlocks
    from .dump.tails import Tails
    from .durable_signal import DurableSignal
    from .gtid_waits import GtidWaits
    from .login.accounts import AccountBook
    from .login.login_guard import LoginGuard
    from .pools import Pools
    from .session_table import SessionTable
    from .sql.ast import ChangeMaster, ReplicaCommand
    from .sql.context import Warned
    from .statements.session_memory import SharedMemory


class SessionHost(ServerFacts, Protocol):
    """What a session needs of the server, beside what its statements do."""

    accounts: AccountBook
    methods: Mapping[str, Method]  # by their names in accounts
    guard: LoginGuard
    refusals: RefusalLog
    signal: DurableSignal
    gtid_waits: GtidWaits
    memory: SharedMemory
    page_runs: PageRuns
    shared_blocks: SharedBlocks
    tails: Tails | None  # None: what another program writes is served by threads alone
    pools: Pools
    sessions: SessionTable
    semi_sync: SemiSync
    questions: int  # commands answered so far, of all sessions
    access_denied_errors: int  # answers that the client, or its account, may not do that
    aborted_connects: int  # logins that failed
    aborted_clients: int  # sessions that ended without a goodbye
    refused_dumps: RefusedDumps

    def uptime(self) -> float:
        """Return seconds since the start."""

    def statistics(self) -> str:
        """Return what answers COM_STATISTICS."""

    async def reset_ended(self) -> None:
        """Return when no RESET MASTER is at work."""

    async def upstream_command(self, statement: ReplicaCommand | ChangeMaster) -> list[Warned]:
        """Do what concerns the relay's upstream; return warnings, raise SqlError."""
