"""SIGHUP: settings, accounts and certificates are read again; what is broken changes nothing."""

from __future__ import annotations

import asyncio
from dataclasses import fields
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from .automatic_purge import PURGE_VARIABLES
from .background_task import BackgroundTask
from .config import Config, ConfigError
from .log import get_log, set_up_log
from .login.accounts import AccountBook
from .statements.live_settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from .server import Server
    from .systemd import Systemd

# Settings that a running server takes; all others wait for a restart.
RELOADED: Final = frozenset(
    {
        *SETTINGS.values(),
        *PURGE_VARIABLES,
        *("accounts", "ssl_cert", "ssl_key", "ssl_ca", "tls_version", "metrics_open"),
        *("log_level", "log_format", "master_connect_retry", "master_heartbeat_period"),
        *("max_connections_per_address", "max_logins_per_address", "skip_incidents"),
    }
)


class Reloading:
    """
    Reads again what one server was configured with.

    What SET GLOBAL changed stays, unless its setting has changed where it is written.

    Args:
        server: it runs.
        read: returns the settings as they are written now; None: they cannot change.
    """

    def __init__(self, server: Server, read: Callable[[], Config] | None = None) -> None:
        self._server = server
        self._read = read
        self._begun_with = self._written = server.config
        self._at_work = asyncio.Lock()

    async def reload(self) -> bool:
        """Take what has changed; return whether that was possible. Log what happened."""
        async with self._at_work:
            try:
                written = self._written if self._read is None else self._read()
                changed = _differences(self._written, written)
                taken = {name: value for name, value in changed.items() if name in RELOADED}
                await self._take(taken, written)
            except Exception as error:  # noqa: BLE001 - the server goes on, whatever it is
                kept = "what was in force before"
                get_log().error("reload_failed", error=str(error) or repr(error), kept=kept)
                return False
            self._written = written
            waiting = sorted(_differences(self._begun_with, written).keys() - RELOADED)
            if waiting:
                get_log().warning("settings_need_restart", settings=waiting)
            accounts = len(self._server.accounts)
            get_log().info("reloaded", accounts=accounts, settings=sorted(taken))
            return True

    async def _take(self, changed: dict[str, Any], written: Config) -> None:
        server = self._server
        direct = {name: value for name, value in changed.items() if name not in PURGE_VARIABLES}
        before = {name: getattr(server.config, name) for name in direct}
        path = direct.get("accounts", server.config.accounts)
        accounts = AccountBook.load(path) if path else None
        server.settings.change(**direct)
        try:
            server.reload(accounts)
        except ConfigError:
            server.settings.change(**before)
            raise
        server.settings.configure(**direct)
        if {"log_level", "log_format"} & direct.keys():
            set_up_log(level=written.log_level, shape=written.log_format)
        for name in (name for name in PURGE_VARIABLES if name in changed):
            await asyncio.get_running_loop().run_in_executor(
                server.pools.statements, server.purging.configure, name, _number(changed[name])
            )


class Hangups:
    """
    What SIGHUP asks for, one after the other; how many came meanwhile does not matter.

    Args:
        reloading: does it.
        systemd: is told.
        status: returns a line for it.
    """

    def __init__(self, reloading: Reloading, systemd: Systemd, status: Callable[[], str]) -> None:
        self._reloading = reloading
        self._systemd = systemd
        self._status = status
        self._wanted = asyncio.Event()
        self._working = BackgroundTask("reloads")

    def note(self) -> None:
        """Reload as soon as that may be; before the start as well, when nobody does it yet."""
        self._wanted.set()

    def begin(self) -> None:
        """Say that the service is ready, and do what was asked for."""
        self._systemd.ready(self._status())
        self._working.start(self._run())

    async def close(self) -> None:
        """Do nothing more."""
        await self._working.stop()

    async def _run(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            self._systemd.reloading()
            await self._reloading.reload()
            self._systemd.ready(self._status())


def _differences(before: Config, now: Config) -> dict[str, Any]:
    """Return the settings of *now* that were other ones."""
    names = [setting.name for setting in fields(Config)]
    return {
        name: getattr(now, name) for name in names if getattr(now, name) != getattr(before, name)
    }


def _number(value: float) -> int | Decimal:
    return Decimal(str(value)) if isinstance(value, float) else value
