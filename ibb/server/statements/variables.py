"""
The variables of one session: its user variables and its own values of system variables.

A session begins with the server's values of that moment, which SET GLOBAL does not change later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from ibb.protocol.error_codes import (
    GLOBAL_VARIABLE,
    INCORRECT_GLOBAL_LOCAL_VAR,
    INSIDE_TRANSACTION_PREVENTS_SWITCH_GTID,
    VARIABLE_IS_READONLY,
)
from ibb.protocol.errors import SqlError
from ibb.protocol.handshake import STATUS_AUTOCOMMIT
from ibb.server.sql.system_variables import OF_UPSTREAM, SystemVariable, own_name
from ibb.server.sql.variable_values import checked_value, find_variable

from .session_charsets import SessionCharsets
from .session_memory import value_bytes

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator

    from ibb.protocol.result_set import Value as WireValue
    from ibb.server.automatic_purge import AutomaticPurge
    from ibb.server.config import Config
    from ibb.server.connections.certificate import ServerTls
    from ibb.server.dump.lease_renewals import LeaseRenewals
    from ibb.server.dump.pacing import Pacing
    from ibb.server.dump.readers import LeaseLine, Process, ReaderLine
    from ibb.server.dump.semi_sync import SemiSync
    from ibb.server.login.accounts import AccountBook
    from ibb.server.login.login_guard import LoginGuard
    from ibb.server.sql.context import Context
    from ibb.server.sql.types import SqlValue
    from ibb.server.storage_figures import StorageLine
    from ibb.storage.history import History

    from .session_memory import SessionMemory

USER_VARIABLES_MAX: Final = 256  # of one session; a replica sets about ten
SAVEPOINTS_MAX: Final = 256

_OF_NEXT_GROUP: Final = ("gtid_domain_id", "gtid_seq_no")
STATUS_IN_TRANSACTION: Final = 0x0001
STATUS_IN_READ_ONLY_TRANSACTION: Final = 0x2000
# Which of a session's values are waited by, and may be fractions by configuration.
_TIMEOUTS: Final = ("wait_timeout", "net_read_timeout", "net_write_timeout")


class ServerFacts(Protocol):
    """What statements may know of the server."""

    config: Config
    history: History
    server_id: int
    semi_sync: SemiSync
    pacing: Pacing
    purging: AutomaticPurge
    renewals: LeaseRenewals | None  # of leases, in a store of ours
    place: str  # the directory that is served
    global_values: dict[str, SqlValue]  # what SET GLOBAL has changed
    accounts: AccountBook
    guard: LoginGuard
    tls: ServerTls | None
    resetting: threading.Lock  # held while RESET MASTER looks whether it may, and does it

    @property
    def relay_runs(self) -> bool:
        """Whether the history grows from an upstream."""

    @property
    def relays(self) -> bool:
        """Whether the history comes from an upstream."""

    def now(self) -> float:
        """Return the wall-clock time in seconds since 1970."""

    def port(self) -> int:
        """Return the TCP port that the server listens on, 0 if it listens on none."""

    def host_name(self) -> str:
        """Return the name of this machine."""

    def time_zone(self) -> str:
        """Return the name of the machine's time zone."""

    def status(self) -> dict[str, str]:
        """Return the values of SHOW STATUS by their names."""

    def replicas(self) -> list[tuple[int, str, int, int]]:
        """Return server id, host, port and our own id for each registered replica."""

    def processes(self, context: Context) -> list[Process]:
        """Return the connections that the account may see."""

    def readers(self) -> Iterator[ReaderLine]:
        """Yield who reads, how far behind, and what that holds back."""

    def leases(self) -> Iterator[LeaseLine]:
        """Yield the leases of the store."""

    def storage_line(self) -> StorageLine | None:
        """Return how full the store is; None where another program writes."""

    def has_dumps(self) -> bool:
        """Tell whether somebody reads the binlog."""

    def replica_status(self) -> dict[str, WireValue] | None:
        """Return SHOW REPLICA STATUS by column name, None without an upstream."""

    def check_global(self, name: str, value: SqlValue) -> None:
        """Raise ConfigError if `set_global` would."""

    def set_global(self, name: str, value: SqlValue) -> None:
        """Change a value of the server's, already checked; raises ConfigError."""

    def reset_global(self, name: str) -> None:
        """Change a value of the server's back to what was configured."""


def global_value(name: str, context: Context) -> SqlValue:
    """Return the server's value of a system variable; raises SqlError 1193."""
    variable = find_variable(name)
    changed = context.facts.global_values
    if own_name(name) in changed:
        return changed[own_name(name)]
    return _first_value(variable, context)


def _first_value(variable: SystemVariable, context: Context) -> SqlValue:
    """Return what a variable is that nobody has set."""
    return variable.value(context) if callable(variable.value) else variable.value


def _variable_of_session(name: str) -> SystemVariable:
    """Return a system variable that sessions may set; raises SqlError 1193, 1229, 1238, 1621."""
    variable = find_variable(name)
    if variable.read_only:
        raise INCORRECT_GLOBAL_LOCAL_VAR.error(name, "read only")
    if not variable.session:
        raise GLOBAL_VARIABLE.error(name)
    if name.lower() in ("max_allowed_packet", "net_buffer_length"):
        raise VARIABLE_IS_READONLY.error("SESSION", name, "GLOBAL")
    return variable


def _kept_bytes(user: dict[str, SqlValue]) -> int:
    return sum(map(value_bytes, user)) + sum(map(value_bytes, user.values()))


class SessionVariables:
    """
    The variables of one connection.

    User variables are told apart in upper or lower case alike; one never set is NULL.

    Args:
        charset: collation id of the login.
        interactive: a person types the statements: `interactive_timeout` is for them.
        memory: of the session.

    Attributes:
        charsets: of the client.
        memory: what the session keeps.
        timeouts: `wait_timeout`, `net_read_timeout`, `net_write_timeout` in force, in seconds.
        in_transaction, read_only_transaction: what BEGIN and COMMIT have left.
        savepoints: their names, in lower case.
    """

    def __init__(self, charset: int, memory: SessionMemory, *, interactive: bool = False) -> None:
        self.charsets = SessionCharsets(charset)
        self.memory = memory
        self.timeouts: dict[str, float] = {}
        self.in_transaction = False
        self.read_only_transaction = False
        self.savepoints: list[str] = []
        self._interactive = interactive
        self._user: dict[str, SqlValue] = {}
        self._system: dict[str, SqlValue] = {}
        self._inherited: dict[str, SqlValue] = {}  # what SET GLOBAL had changed at the login

    @property
    def charset(self) -> int:
        """Collation id of texts sent to the client."""
        return self.charsets.results

    @property
    def system_charset(self) -> int:
        """Collation id of texts that the server says of itself."""
        return self.charsets.system

    def begin(self, context: Context) -> None:
        """Take the server's values of now; forget everything else."""
        names = sum(map(value_bytes, self._user))
        self.memory.change(-names - sum(map(value_bytes, self._values())))
        self._user.clear()
        self._system.clear()
        self.end_transaction()
        self.charsets.take_login()
        self._inherited = dict(context.facts.global_values)
        config = context.facts.config
        idle = config.interactive_timeout if self._interactive else config.wait_timeout
        self._system |= {
            "wait_timeout": int(idle),
            "interactive_timeout": int(config.interactive_timeout),
            "net_write_timeout": int(config.net_write_timeout),
            "max_allowed_packet": config.max_allowed_packet,
        }
        reading = self.read("net_read_timeout", "", context)
        assert isinstance(reading, int)
        times = (idle, reading, config.net_write_timeout)
        self.timeouts = dict(zip(_TIMEOUTS, times, strict=True))

    @property
    def packet_bytes_max(self) -> int:
        """Longest command that the session may send."""
        size = self._system["max_allowed_packet"]
        assert isinstance(size, int)
        return size

    def statement_seconds(self, context: Context) -> float:
        """Return how long a statement may take, 0 for any time."""
        return float(str(self.read("max_statement_time", "", context)))

    def rows_max(self, context: Context) -> int:
        """Return how many rows a SELECT without LIMIT may have."""
        return int(str(self.read("sql_select_limit", "", context)))

    def timestamp(self, context: Context) -> float:
        """Return the time as the session's statements see it, in seconds since 1970."""
        said = self._system.get("timestamp")
        return context.facts.now() if said is None else float(str(said))

    def user(self, name: str) -> SqlValue:
        """Return the value of `@name`, None if it was never set."""
        return self._user.get(name.lower())

    def set_user(self, name: str, value: SqlValue) -> None:
        """
        Set `@name`.

        Raises:
            SqlError: 1041, more variables than a session may hold, or as `SessionMemory.change`.
        """
        name = name.lower()
        is_new = name not in self._user
        if is_new and len(self._user) >= USER_VARIABLES_MAX:
            raise SqlError(1041, "HY000", "Out of memory: a session's user variables are bounded")
        grown = value_bytes(value) - value_bytes(self._user.get(name))
        self.memory.change(grown + value_bytes(name) * is_new)
        self._user[name] = value

    def all_user(self) -> dict[str, SqlValue]:
        """Return the user variables as they are now."""
        return self._user.copy()

    def restore_user(self, values: dict[str, SqlValue]) -> None:
        """Go back to what `all_user` returned; raises SqlError as `SessionMemory.change`."""
        self.memory.change(_kept_bytes(values) - _kept_bytes(self._user))
        self._user = values

    def user_chars(self) -> int:
        """Return the length of all texts in user variables."""
        return sum(len(value) for value in self._user.values() if isinstance(value, str | bytes))

    def _values(self) -> Iterator[SqlValue]:
        yield from self._user.values()
        yield from self._system.values()

    def read(self, name: str, scope: str, context: Context) -> SqlValue:
        """
        Return the value of a system variable.

        Args:
            name: of the variable.
            scope: GLOBAL, SESSION, or empty for the session's if it can have one.
            context: of the statement.

        Raises:
            SqlError: 1193 unknown, 1238 it has no value of that scope.
        """
        variable = find_variable(name)
        if scope == "GLOBAL" and not variable.server:
            raise INCORRECT_GLOBAL_LOCAL_VAR.error(name, "SESSION")
        if scope == "SESSION" and not variable.session:
            raise INCORRECT_GLOBAL_LOCAL_VAR.error(name, "GLOBAL")
        own = own_name(name)
        if scope != "GLOBAL" and own in self.charsets.values:
            return self.charsets.values[own]
        if scope != "GLOBAL" and own in self._system:
            return self._system[own]
        if scope == "GLOBAL" or not variable.session or own in OF_UPSTREAM:
            return global_value(name, context)
        if own in self._inherited:
            return self._inherited[own]
        return _first_value(variable, context)

    def checked(self, name: str, value: SqlValue, context: Context) -> SqlValue:
        """
        Return *value* as the session's value of a system variable may be set to it.

        Raises:
            SqlError: 1193 unknown, 1229, 1238 or 1621 not a session's to set, 1953 not in a
                transaction, or a wrong value.
        """
        variable = _variable_of_session(name)
        self._check_transaction(name)
        checked = checked_value(name, variable, value, context)
        self.charsets.check(own_name(name), None if checked is None else str(checked))
        return checked

    def check_default(self, name: str) -> None:
        """Raise SqlError if `set_default` would."""
        _variable_of_session(name)
        self._check_transaction(name)

    def _check_transaction(self, name: str) -> None:
        if self.in_transaction and own_name(name) in _OF_NEXT_GROUP:
            raise INSIDE_TRANSACTION_PREVENTS_SWITCH_GTID.error()

    def set_checked(self, name: str, checked: SqlValue) -> None:
        """Set the session's value of a system variable to what `checked` returned."""
        own = own_name(name)
        if self.charsets.assign(own, None if checked is None else str(checked)):
            return
        if own == "autocommit" and checked == 1:
            self.end_transaction()
        if own in self.timeouts:
            assert isinstance(checked, int)
            self.timeouts[own] = checked
        if own == "timestamp" and not checked:
            self._system.pop(own, None)
            return
        self.memory.change(value_bytes(checked) - value_bytes(self._system.get(own)))
        self._system[own] = checked

    def set_default(self, name: str, context: Context) -> None:
        """
        Set the session's value to the server's.

        Raises:
            SqlError: 1193 unknown, 1229, 1238 or 1621 not a session's to set, 1953.
        """
        variable = _variable_of_session(name)
        self._check_transaction(name)
        if variable.server:
            self.set_checked(name, global_value(name, context))
        else:
            self.memory.change(-value_bytes(self._system.pop(own_name(name), None)))

    def begin_transaction(self, *, read_only: bool = False) -> None:
        """Do BEGIN; what was open before has ended."""
        self.end_transaction()
        self.in_transaction = True
        self.read_only_transaction = read_only

    def add_savepoint(self, name: str) -> None:
        """Do SAVEPOINT; one of the same name before it is gone."""
        if name in self.savepoints:
            self.savepoints.remove(name)
        elif len(self.savepoints) >= SAVEPOINTS_MAX:
            raise SqlError(1041, "HY000", "Out of memory: a session's savepoints are bounded")
        else:
            self.memory.change(value_bytes(name))
        self.savepoints.append(name)

    def drop_savepoints_from(self, name: str, *, keep: bool) -> None:
        """Forget the savepoints behind one that exists, and itself unless *keep*."""
        first = self.savepoints.index(name) + keep
        self.memory.change(-sum(map(value_bytes, self.savepoints[first:])))
        del self.savepoints[first:]

    def end_transaction(self) -> None:
        """Do COMMIT or ROLLBACK."""
        self.in_transaction = self.read_only_transaction = False
        self.memory.change(-sum(map(value_bytes, self.savepoints)))
        self.savepoints = []

    @property
    def status(self) -> int:
        """Status flags of the session's OK and EOF packets."""
        status = STATUS_AUTOCOMMIT if self._system.get("autocommit", 1) == 1 else 0
        if self.in_transaction:
            status |= STATUS_IN_TRANSACTION
        if self.read_only_transaction:
            status |= STATUS_IN_READ_ONLY_TRANSACTION
        return status

    @property
    def skip_replication(self) -> bool:
        """The session wants no events that are marked for skipping."""
        return self._system.get("skip_replication") == 1
