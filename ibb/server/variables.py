"""
System variables that clients ask for or set, and the variables of one session.

The names and values are those of a MariaDB 10.11 primary that writes row events with checksums.
A value is an int, a text or NULL (None); a switch is the text ON or OFF in SHOW VARIABLES and 1 or
0 in SELECT. Source: dump-protocol 2.1, 2.3, 9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from ibb.protocol.error_codes import (
    INCORRECT_GLOBAL_LOCAL_VAR,
    UNKNOWN_SYSTEM_VARIABLE,
    WRONG_TYPE_FOR_VAR,
    WRONG_VALUE_FOR_VAR,
)
from ibb.protocol.errors import SqlError
from ibb.protocol.handshake import STATUS_AUTOCOMMIT

if TYPE_CHECKING:
    from collections.abc import Callable

    from ibb.storage.history import History

    from .config import Config
    from .semi_sync import SemiSync

Value: TypeAlias = int | str | None

USER_VARIABLES_MAX: Final = 256  # of one session; a replica sets about ten
USER_VARIABLE_CHARS_MAX: Final = 4 << 20  # a GTID list with 100,000 domains

LATIN1: Final = 8
UTF8MB3: Final = 33
UTF8MB4: Final = 45
BINARY: Final = 63
# Collation id by character set name: what SET NAMES takes.
CHARSETS: Final = {
    "ascii": 11,
    "binary": BINARY,
    "latin1": LATIN1,
    "utf8": UTF8MB3,
    "utf8mb3": UTF8MB3,
    "utf8mb4": UTF8MB4,
}


class ServerFacts(Protocol):
    """What statements may know of the server."""

    config: Config
    history: History
    server_id: int
    relays: bool  # the history comes from an upstream
    semi_sync: SemiSync

    def now(self) -> float:
        """Return the wall-clock time in seconds since 1970."""

    def port(self) -> int:
        """Return the TCP port that the server listens on, 0 if it listens on none."""

    def host_name(self) -> str:
        """Return the name of this machine."""

    def status(self) -> dict[str, str]:
        """Return the values of SHOW STATUS by their names."""

    def replicas(self) -> list[tuple[int, str, int, int]]:
        """Return server id, host, port and our own id for each registered replica."""


class SystemVariable(NamedTuple):
    """
    One system variable.

    Attributes:
        value: what it is, or how to learn it.
        switch: shown as ON and OFF.
        session: a session may set its own value, which then has no effect unless the session's
            class says so.
    """

    value: Value | Callable[[ServerFacts], Value]
    switch: bool = False
    session: bool = False


def _binlog_position(facts: ServerFacts) -> str:
    return str(facts.history.state().position())


_ON: Final = SystemVariable(1, switch=True)
_OFF: Final = SystemVariable(0, switch=True)
_UTF8: Final = SystemVariable("utf8mb4", session=True)
_COLLATION: Final = SystemVariable("utf8mb4_general_ci", session=True)
_ISOLATION: Final = SystemVariable("REPEATABLE-READ", session=True)

HISTORY_VARIABLES: Final = {
    "gtid_binlog_pos": SystemVariable(_binlog_position),
    "gtid_binlog_state": SystemVariable(lambda facts: str(facts.history.state())),
    "gtid_current_pos": SystemVariable(_binlog_position),
    "gtid_slave_pos": SystemVariable(lambda facts: _binlog_position(facts) if facts.relays else ""),
}

SYSTEM_VARIABLES: Final = {
    "auto_increment_increment": SystemVariable(1, session=True),
    "auto_increment_offset": SystemVariable(1, session=True),
    "autocommit": SystemVariable(1, switch=True, session=True),
    "binlog_annotate_row_events": SystemVariable(1, switch=True, session=True),
    "binlog_checksum": SystemVariable("CRC32"),
    "binlog_format": SystemVariable("ROW", session=True),
    "binlog_row_image": SystemVariable("FULL", session=True),
    "binlog_row_metadata": SystemVariable("NO_LOG"),
    "character_set_client": _UTF8,
    "character_set_connection": _UTF8,
    "character_set_database": _UTF8,
    "character_set_filesystem": SystemVariable("binary", session=True),
    "character_set_results": _UTF8,
    "character_set_server": _UTF8,
    "character_set_system": SystemVariable("utf8mb3"),
    "collation_connection": _COLLATION,
    "collation_database": _COLLATION,
    "collation_server": _COLLATION,
    "connect_timeout": SystemVariable(lambda facts: int(facts.config.connect_timeout)),
    "expire_logs_days": SystemVariable("0.000000"),
    "foreign_key_checks": SystemVariable(1, switch=True, session=True),
    "gtid_domain_id": SystemVariable(0, session=True),
    "gtid_strict_mode": SystemVariable(
        lambda facts: int(facts.config.gtid_strict_mode), switch=True
    ),
    "have_ssl": SystemVariable("DISABLED"),
    "hostname": SystemVariable(lambda facts: facts.host_name()),
    "init_connect": SystemVariable(""),
    "interactive_timeout": SystemVariable(
        lambda facts: int(facts.config.wait_timeout), session=True
    ),
    "license": SystemVariable("Apache-2.0"),
    "log_bin": _ON,
    "log_slave_updates": _ON,
    "lower_case_table_names": SystemVariable(0),
    "max_allowed_packet": SystemVariable(
        lambda facts: facts.config.max_allowed_packet, session=True
    ),
    "max_binlog_size": SystemVariable(lambda facts: facts.config.max_binlog_size),
    "max_connections": SystemVariable(lambda facts: facts.config.max_connections),
    "net_buffer_length": SystemVariable(16384, session=True),
    "net_read_timeout": SystemVariable(30, session=True),
    "net_write_timeout": SystemVariable(
        lambda facts: int(facts.config.net_write_timeout), session=True
    ),
    "performance_schema": _OFF,
    "port": SystemVariable(lambda facts: facts.port()),
    "protocol_version": SystemVariable(10),
    "query_cache_size": SystemVariable(0),
    "query_cache_type": SystemVariable("OFF", session=True),
    "read_only": _ON,
    "rpl_semi_sync_master_enabled": SystemVariable(
        lambda facts: int(facts.semi_sync.enabled), switch=True
    ),
    "rpl_semi_sync_master_timeout": SystemVariable(lambda facts: facts.semi_sync.timeout_ms),
    "rpl_semi_sync_master_wait_no_slave": SystemVariable(
        lambda facts: int(facts.semi_sync.wait_no_slave), switch=True
    ),
    "rpl_semi_sync_master_wait_point": SystemVariable("AFTER_COMMIT"),
    "server_id": SystemVariable(lambda facts: facts.server_id),
    "session_track_schema": SystemVariable(1, switch=True, session=True),
    "session_track_system_variables": SystemVariable(
        "autocommit,character_set_client,character_set_connection,character_set_results,time_zone",
        session=True,
    ),
    "skip_networking": _OFF,
    "skip_replication": SystemVariable(0, switch=True, session=True),
    "slave_net_timeout": SystemVariable(lambda facts: int(facts.config.slave_net_timeout)),
    "socket": SystemVariable(lambda facts: facts.config.socket),
    "sql_auto_is_null": SystemVariable(0, switch=True, session=True),
    "sql_log_bin": SystemVariable(1, switch=True, session=True),
    "sql_mode": SystemVariable(
        "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION",
        session=True,
    ),
    "sql_select_limit": SystemVariable("18446744073709551615", session=True),
    "sync_binlog": SystemVariable(1),
    "system_time_zone": SystemVariable("UTC"),
    "time_zone": SystemVariable("SYSTEM", session=True),
    "transaction_isolation": _ISOLATION,
    "transaction_read_only": SystemVariable(0, switch=True, session=True),
    "tx_isolation": _ISOLATION,
    "tx_read_only": SystemVariable(0, switch=True, session=True),
    "unique_checks": SystemVariable(1, switch=True, session=True),
    "version": SystemVariable(lambda facts: facts.config.server_version),
    "version_comment": SystemVariable("ibb, a replication master over .ibb binlogs"),
    "version_compile_machine": SystemVariable("any"),
    "version_compile_os": SystemVariable("Linux"),
    "wait_timeout": SystemVariable(lambda facts: int(facts.config.wait_timeout), session=True),
    **HISTORY_VARIABLES,
}

_SWITCH_WORDS: Final = {"ON": 1, "TRUE": 1, "1": 1, "OFF": 0, "FALSE": 0, "0": 0}
_CHARSET_VARIABLES: Final = frozenset(
    {"character_set_client", "character_set_connection", "character_set_results"}
)


def global_value(name: str, facts: ServerFacts) -> Value:
    """
    Return the server-wide value of the system variable *name*; a switch is 1 or 0.

    Raises:
        SqlError: 1193, there is no such variable.
    """
    variable = _variable(name)
    return variable.value(facts) if callable(variable.value) else variable.value


def _variable(name: str) -> SystemVariable:
    variable = SYSTEM_VARIABLES.get(name.lower())
    if variable is None:
        raise UNKNOWN_SYSTEM_VARIABLE.error(name)
    return variable


class SessionVariables:
    """
    The variables of one connection: its user variables and its own values of system variables.

    User variables are told apart in upper or lower case alike; one never set is NULL.
    """

    def __init__(self, charset: int) -> None:
        self.charset = charset  # collation id of texts sent to the client
        self._login_charset = charset
        self._user: dict[str, Value] = {}
        self._system: dict[str, Value] = {}

    def user(self, name: str) -> Value:
        """Return the value of `@name`, None if it was never set."""
        return self._user.get(name.lower())

    def set_user(self, name: str, value: Value) -> None:
        """
        Set `@name`.

        Raises:
            SqlError: 1041, more or longer variables than a session may hold.
        """
        name = name.lower()
        crowded = len(self._user) >= USER_VARIABLES_MAX and name not in self._user
        if crowded or (isinstance(value, str) and len(value) > USER_VARIABLE_CHARS_MAX):
            raise SqlError(1041, "HY000", "Out of memory: a session's user variables are bounded")
        self._user[name] = value

    def system(self, name: str, facts: ServerFacts) -> Value:
        """Return the session's value of a system variable; raises SqlError 1193."""
        own = name.lower()
        return self._system[own] if own in self._system else global_value(name, facts)

    def set_system(self, name: str, value: Value) -> None:
        """
        Set the session's value of a system variable.

        Raises:
            SqlError: 1193 unknown, 1238 not a session's to set, 1231 or 1232 a wrong value.
        """
        variable = _variable(name)
        if not variable.session:
            raise INCORRECT_GLOBAL_LOCAL_VAR.error(name, "read only")
        if value == "DEFAULT":
            self._system.pop(name.lower(), None)
            return
        if variable.switch:
            value = _switch(name, value)
        elif isinstance(variable.value, int) and not isinstance(value, int):
            raise WRONG_TYPE_FOR_VAR.error(name)
        name = name.lower()
        if name in _CHARSET_VARIABLES and value is not None:
            self.charset = _collation(name, str(value))
        self._system[name] = value

    def set_names(self, charset: str) -> None:
        """Do SET NAMES; raises SqlError 1115 for a character set that is not known here."""
        collation = CHARSETS.get(charset.lower())
        if collation is None:
            raise SqlError(1115, "42000", f"Unknown character set: '{charset}'")
        self.charset = collation
        self._system.update(dict.fromkeys(_CHARSET_VARIABLES, charset.lower()))

    def reset(self) -> None:
        """Forget every variable, as COM_RESET_CONNECTION does."""
        self._user.clear()
        self._system.clear()
        self.charset = self._login_charset

    @property
    def status(self) -> int:
        """Status flags of the session's OK and EOF packets."""
        return STATUS_AUTOCOMMIT if self._system.get("autocommit", 1) == 1 else 0

    @property
    def skip_replication(self) -> bool:
        """The session wants no events that are marked for skipping."""
        return self._system.get("skip_replication") == 1


def _switch(name: str, value: Value) -> int:
    on = _SWITCH_WORDS.get(str(value).upper())
    if on is None:
        raise WRONG_VALUE_FOR_VAR.error(name, "NULL" if value is None else value)
    return on


def _collation(name: str, charset: str) -> int:
    collation = CHARSETS.get(charset.lower())
    if collation is None:
        raise WRONG_VALUE_FOR_VAR.error(name, charset)
    return collation


def shown_value(name: str, value: Value) -> str | None:
    """Return *value* as SHOW VARIABLES has it: switches as ON and OFF."""
    if value is None:
        return None
    if SYSTEM_VARIABLES[name].switch:
        return "ON" if value else "OFF"
    return str(value)
