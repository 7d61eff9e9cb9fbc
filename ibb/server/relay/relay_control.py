"""
The relay as statements steer it: CHANGE MASTER, START, STOP and RESET SLAVE, SHOW REPLICA STATUS.

What CHANGE MASTER says holds until the program ends; the configuration is what it starts with.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ibb.protocol.error_codes import (
    BAD_SLAVE,
    BINLOG_IN_USE,
    NOT_SUPPORTED_YET,
    SLAVE_MUST_STOP,
)
from ibb.protocol.errors import SqlError
from ibb.protocol.gtid import GtidPosition
from ibb.server.dump.readers import Process
from ibb.server.log import get_log
from ibb.server.sql.ast import ChangeMaster
from ibb.server.sql.context import Warned
from ibb.server.sql.system_variables import OF_UPSTREAM, SYSTEM_VARIABLES
from ibb.server.statements.replica_status import status_row

from .change_master import change_master
from .relay import Relay
from .relay_figures import RelayFigures
from .upstream import UpstreamAddress
from .upstream_tls import OFF, VERIFY

if TYPE_CHECKING:
    from ibb.protocol.result_set import Value
    from ibb.server.server import Server
    from ibb.server.sql.ast import ReplicaCommand
    from ibb.storage.store import Store

    from .upstream_tls import UpstreamTls

_PORT_DEFAULT: Final = 3306
_CLIENT_ERROR: Final = 2003  # what a replica calls every failure to connect
_NOTE_STOPPED: Final = Warned("Note", 1255, "Slave already has been stopped")
_NOTE_RUNNING: Final = Warned("Note", 1254, "Slave is already running")
_NOTE_ONE_STARTED: Final = Warned("Note", 1937, "SLAVE '' started")
_NOTE_ONE_STOPPED: Final = Warned("Note", 1938, "SLAVE '' stopped")
_RETRIES_SHOWN: Final = 100_000  # as a replica says it; we try for ever


class RelayControl:
    """
    One relay, running or not. Calls come from the event loop.

    Args:
        store: takes the groups.
        server: gives settings and port.
        address: of the upstream; None until CHANGE MASTER names one.
        tls: towards one that CHANGE MASTER names.

    Attributes:
        figures: what has been relayed, and how fast.
    """

    def __init__(
        self, store: Store, server: Server, address: UpstreamAddress | None, tls: UpstreamTls
    ) -> None:
        self.figures = RelayFigures()
        self._store = store
        self._server = server
        self._address = address
        self._no_address = UpstreamAddress("", _PORT_DEFAULT, "", "", tls)
        self._relay: Relay | None = None
        self._task: asyncio.Task[None] | None = None
        self._started_at = 0.0  # of the server's time
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def is_configured(self) -> bool:
        """Whether an upstream is named."""
        return self._address is not None

    @property
    def is_running(self) -> bool:
        """Whether the relay runs, or tries to."""
        return self._task is not None and not self._task.done()

    @property
    def is_connected(self) -> bool:
        """Whether the upstream is sending."""
        return self.is_running and self._relay is not None and self._relay.connected

    @property
    def trouble(self) -> Exception | None:
        """What ended the relay, or went wrong last and has not been cured."""
        return None if self._relay is None else self._relay.stopped_by or self._relay.last_error

    def seconds_behind(self) -> int | None:
        """Return how far the relay is behind, see `RelayLag`; None while not connected."""
        return self._relay.seconds_behind(self._server.now()) if self._relay is not None else None

    def start(self) -> None:
        """
        Begin to relay, if an upstream is named and nothing runs.

        Raises:
            SqlError: 4243, RESET MASTER is at work.
        """
        if self._address is None or self.is_running:
            return
        if not self._server.resetting.acquire(blocking=False):
            raise BINLOG_IN_USE.error()
        try:
            self._begin(self._address)
        finally:
            self._server.resetting.release()

    def _begin(self, address: UpstreamAddress) -> None:
        server = self._server
        self._relay = Relay(
            self._store,
            address,
            config=server.config,
            server_id=server.server_id,
            port=server.port,
            learn=self._take_over,
            figures=self.figures,
            told_behind=server.signal.told_behind,
        )
        self._started_at = server.uptime()
        self._task = asyncio.create_task(self._relay.run())
        self._task.add_done_callback(self._ended)

    def take_settings(self) -> None:
        """Have the relay go by the server's settings of now, some from its next connection on."""
        if self._relay is not None:
            self._relay.config = self._server.config

    def _take_over(self, name: str, value: str) -> None:
        """Say from now on what the upstream says of a variable that shapes events."""
        if name in OF_UPSTREAM and value in SYSTEM_VARIABLES[name].words:
            self._server.set_global(name, value)

    async def stop(self) -> None:
        """Return when nothing is relayed any more."""
        if self._task is not None:
            self._task.cancel()
            # Cancelled first, so that it tells the upstream nothing of what no replica has.
            with self._server.semi_sync.nobody_waits():
                await asyncio.gather(self._task, return_exceptions=True)

    async def failed(self) -> None:
        """Return never: raise what a relay did not expect."""
        await self._failure

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure.set_exception(error)

    async def do(self, statement: ReplicaCommand | ChangeMaster) -> list[Warned]:
        """
        Do a statement; return what to warn of.

        Raises:
            SqlError: 1198 it runs, 1200 no upstream is named, 1235 not here, 1941 no GTID list,
                1210, 1225 or 1624 a wrong option, 4243 RESET MASTER is at work.
        """
        if isinstance(statement, ChangeMaster):
            return self._change(statement)
        if statement.action == "STOP":
            running = self.is_running
            await self.stop()
            if statement.every:
                return [_NOTE_ONE_STOPPED] if running else []
            return [] if running else [_NOTE_STOPPED]
        if statement.action == "START":
            return self._start(statement)
        if self.is_running:
            raise SLAVE_MUST_STOP.error("", "")
        if statement.every:
            self._address = self._relay = None
        return []

    def _start(self, statement: ReplicaCommand) -> list[Warned]:
        if statement.until is not None:
            GtidPosition.parse(statement.until)
            raise NOT_SUPPORTED_YET.error("START SLAVE UNTIL of a relay")
        if self._address is None:
            if statement.every:
                return []
            raise BAD_SLAVE.error()
        if self.is_running:
            return [] if statement.every else [_NOTE_RUNNING]
        self.start()
        return [_NOTE_ONE_STARTED] if statement.every else []

    def _change(self, statement: ChangeMaster) -> list[Warned]:
        if self.is_running:
            raise SLAVE_MUST_STOP.error("", "")
        server = self._server
        before = self._address or self._no_address
        changed = change_master(statement.options, before, server.config)
        self._address = changed.address if changed.address.host else None
        server.settings.change(**changed.settings)
        get_log().info("upstream_changed", upstream=str(changed.address))
        return changed.warnings

    def processes(self) -> list[Process]:
        """Return the line of SHOW PROCESSLIST for the relay, if it runs."""
        if not self.is_running:
            return []
        seconds = self._server.uptime() - self._started_at
        return [Process(0, "system user", "", None, "Connect", seconds, self._state(), None)]

    def _state(self) -> str:
        if not self.is_running:
            return ""
        return "Waiting for master to send event" if self.is_connected else "Connecting to master"

    def told(self, error: Exception) -> str:
        """Return an error as a replica tells it."""
        address = self._address or self._no_address
        if isinstance(error, SqlError):
            return error.message
        if not isinstance(error, OSError):
            return str(error) or repr(error)
        relay, config = self._relay, self._server.config
        retry = int(config.master_connect_retry if relay is None else relay.retry_seconds)
        return (
            f"error connecting to master '{address.user}@{address}' - retry-time: {retry}  "
            f"maximum-retries: {_RETRIES_SHOWN}  message: {error}"
        )

    def semi_sync_status(self) -> dict[str, str]:
        """Return the rows of SHOW STATUS of a semi-synchronous replica, as 10.11 names them."""
        relay = self._relay
        return {
            "Rpl_semi_sync_slave_send_ack": str(relay.acknowledged if relay else 0),
            "Rpl_semi_sync_slave_status": "ON" if relay and relay.acknowledges else "OFF",
        }

    def status(self) -> dict[str, Value] | None:
        """Return SHOW REPLICA STATUS by column name, None if no upstream is named."""
        address, config = self._address, self._server.config
        if address is None:
            return None
        relay, running = self._relay, self.is_running
        connected = self.is_connected
        cipher = relay.cipher if relay is not None and connected else ""
        encrypted = bool(cipher) if connected else address.tls.mode != OFF
        error = self.trouble
        code = 0 if error is None else getattr(error, "code", _CLIENT_ERROR)
        position = str(self._store.state().position())
        return status_row(
            Slave_IO_State=self._state(),
            Master_Host=address.host,
            Master_User=address.user,
            Master_Port=address.port,
            Connect_Retry=int(config.master_connect_retry),
            Slave_IO_Running="Yes" if connected else "Connecting" if running else "No",
            Slave_SQL_Running="Yes" if running else "No",
            Last_IO_Errno=code,
            Last_IO_Error="" if error is None else self.told(error),
            Master_Server_Id=0 if relay is None else relay.upstream_id,
            Master_SSL_Allowed="Yes" if encrypted else "No",
            Master_SSL_Cipher=cipher,
            Master_SSL_Verify_Server_Cert="Yes" if address.tls.mode == VERIFY else "No",
            Seconds_Behind_Master=(self.seconds_behind() if running else None),
            Gtid_IO_Pos=position,
            Gtid_Slave_Pos=position,
            Slave_heartbeat_period=f"{config.master_heartbeat_period:.3f}",
            Slave_SQL_Running_State=(
                "Slave has read all relay log; waiting for more updates" if running else ""
            ),
        )
