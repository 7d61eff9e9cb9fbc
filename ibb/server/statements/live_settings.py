"""What SET GLOBAL changes while the server runs, and what DEFAULT goes back to."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ibb.server.automatic_purge import PURGE_VARIABLES

if TYPE_CHECKING:
    from ibb.server.config import Config
    from ibb.server.server import Server
    from ibb.server.sql.types import SqlValue

# System variables that stand for a setting, with its name.
SETTINGS: Final[dict[str, str]] = {
    "require_secure_transport": "require_tls",
    **{
        name: name
        for name in (
            *("connect_timeout", "wait_timeout", "interactive_timeout", "net_write_timeout"),
            *("slave_net_timeout", "gtid_strict_mode", "rpl_semi_sync_slave_enabled"),
            *("max_allowed_packet", "max_connections", "max_user_connections"),
            *("max_connect_errors", "dump_lease", "dump_rate", "dump_rate_total", "dump_delay"),
            *("rpl_semi_sync_master_enabled", "rpl_semi_sync_master_timeout"),
            "rpl_semi_sync_master_wait_no_slave",
        )
    },
}
# Settings that a part of the server holds: which part, and its attribute.
_HELD: Final[dict[str, tuple[str, str]]] = {
    "rpl_semi_sync_master_enabled": ("semi_sync", "enabled"),
    "rpl_semi_sync_master_timeout": ("semi_sync", "timeout_ms"),
    "rpl_semi_sync_master_wait_no_slave": ("semi_sync", "wait_no_slave"),
    "dump_rate": ("pacing", "rate"),
    "dump_rate_total": ("pacing", "total_rate"),
    "dump_delay": ("pacing", "delay"),
    "max_connect_errors": ("guard", "failures_max"),
}


class LiveSettings:
    """
    The settings of one running server.

    Calls come from any thread.

    Args:
        server: whose settings they are; its configuration now is what DEFAULT means.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._configured: Config = server.config
        self._mutex = threading.Lock()

    def check(self, name: str, value: SqlValue) -> None:
        """Raise ConfigError if no setting may have a value that a system variable may."""
        if name in SETTINGS:
            _changed(self._server.config, self._setting(name, value))

    def _setting(self, name: str, value: SqlValue) -> dict[str, Any]:
        setting = SETTINGS[name]
        return {setting: type(getattr(self._configured, setting))(value)}

    def set(self, name: str, value: SqlValue) -> None:
        """
        Give a system variable a value, already checked, for all who ask from now on.

        Raises:
            ConfigError: no setting may have it.
            SqlError: 1290, files are not ours to purge.
        """
        if name in PURGE_VARIABLES:
            self._server.purging.set(name, value)
            return
        if name not in SETTINGS:
            self._server.global_values[name] = value
            return
        self.change(**self._setting(name, value))

    def reset(self, name: str) -> None:
        """Give a system variable the value that it was configured with."""
        if name in PURGE_VARIABLES:
            self._server.purging.reset(name)
            return
        if name not in SETTINGS:
            self._server.global_values.pop(name, None)
            return
        setting = SETTINGS[name]
        self.change(**{setting: getattr(self._configured, setting)})

    def configure(self, **settings: Any) -> None:
        """Have DEFAULT mean what *settings* say from now on; they are in force already."""
        with self._mutex:
            self._configured = replace(self._configured, **settings)

    def change(self, **settings: Any) -> None:
        """
        Change settings, each in the type that `Config` has for it.

        An upstream that is to be silent for no longer than the heartbeat period is asked for
        heartbeats twice as often as that.

        Raises:
            ConfigError: a value is outside its bounds; nothing has changed.
        """
        server = self._server
        with self._mutex:
            server.config = _changed(server.config, settings)
            for setting in settings.keys() & _HELD.keys():
                part, attribute = _HELD[setting]
                setattr(getattr(server, part), attribute, settings[setting])
        if server.upstream is not None:
            server.upstream.take_settings()


def _changed(old: Config, settings: dict[str, Any]) -> Config:
    """Return a configuration with other settings; raises ConfigError."""
    timeout = settings.get("slave_net_timeout", old.slave_net_timeout)
    period = settings.get("master_heartbeat_period", old.master_heartbeat_period)
    if period >= timeout:
        settings = settings | {"master_heartbeat_period": timeout / 2}
    return replace(old, **settings)
