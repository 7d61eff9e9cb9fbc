"""
The variables of one session: its user variables and its own values of system variables.

Setting follows MariaDB's rules: numbers out of bounds are cut with a warning, words are checked,
a switch takes ON, OFF, 1 and 0.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Final, Protocol

from ibb.protocol.error_codes import (
    GLOBAL_VARIABLE,
    INCORRECT_GLOBAL_LOCAL_VAR,
    UNKNOWN_SYSTEM_VARIABLE,
    UNKNOWN_TIME_ZONE,
    WRONG_TYPE_FOR_VAR,
    WRONG_VALUE_FOR_VAR,
)
from ibb.protocol.errors import SqlError
from ibb.protocol.handshake import STATUS_AUTOCOMMIT
from ibb.protocol.result_set import ColumnType

from .session_charsets import SessionCharsets
from .sql_types import Kind, SqlType, as_text, text_type
from .system_variables import SQL_MODES, SYSTEM_VARIABLES, SystemVariable, VariableKind

if TYPE_CHECKING:
    from ibb.protocol.result_set import Value as WireValue
    from ibb.storage.history import History

    from .accounts import AccountBook
    from .automatic_purge import AutomaticPurge
    from .certificate import ServerTls
    from .config import Config
    from .login_guard import LoginGuard
    from .pacing import Pacing
    from .readers import LeaseLine, Process, ReaderLine
    from .semi_sync import SemiSync
    from .sql_context import Context
    from .sql_types import SqlValue


USER_VARIABLES_MAX: Final = 256  # of one session; a replica sets about ten
SAVEPOINTS_MAX: Final = 256
USER_VARIABLE_CHARS_MAX: Final = 4 << 20  # a GTID list with 100,000 domains

STATUS_IN_TRANSACTION: Final = 0x0001
STATUS_IN_READ_ONLY_TRANSACTION: Final = 0x2000
_TIME_ZONE: Final = re.compile(r"SYSTEM|UTC|[+-](0?\d|1[0-4]):[0-5]\d", re.IGNORECASE)
_USER_TEXT_CHARS: Final = 0xFFFFFF
_VARIABLE_DIGITS: Final = 21
_SWITCH_WORDS: Final = {"ON": 1, "TRUE": 1, "1": 1, "OFF": 0, "FALSE": 0, "0": 0}


class ServerFacts(Protocol):
    """What statements may know of the server."""

    config: Config
    history: History
    server_id: int
    semi_sync: SemiSync
    pacing: Pacing
    purging: AutomaticPurge
    place: str  # the directory that is served
    global_values: dict[str, SqlValue]  # what SET GLOBAL has changed
    accounts: AccountBook
    guard: LoginGuard
    tls: ServerTls | None

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

    def readers(self) -> list[ReaderLine]:
        """Return who reads, how far behind, and what that holds back."""

    def leases(self) -> list[LeaseLine]:
        """Return the leases of the store."""

    def has_dumps(self) -> bool:
        """Tell whether somebody reads the binlog."""

    def replica_status(self) -> dict[str, WireValue] | None:
        """Return SHOW REPLICA STATUS by column name, None without an upstream."""

    def set_global(self, name: str, value: SqlValue) -> None:
        """Change a value of the server's, already checked, for all who ask from now on."""


def find_variable(name: str) -> SystemVariable:
    """Return a system variable; raises SqlError 1193."""
    variable = SYSTEM_VARIABLES.get(name.lower())
    if variable is None:
        raise UNKNOWN_SYSTEM_VARIABLE.error(name)
    return variable


def global_value(name: str, context: Context) -> SqlValue:
    """Return the server's value of a system variable; raises SqlError 1193."""
    variable = find_variable(name)
    changed = context.facts.global_values
    if name.lower() in changed:
        return changed[name.lower()]
    return variable.value(context) if callable(variable.value) else variable.value


def system_variable_type(name: str, value: SqlValue) -> SqlType:
    """Return the type that SELECT declares for a system variable."""
    match find_variable(name).kind:
        case VariableKind.SWITCH:
            return SqlType(Kind.INTEGER, 1, nullable=True, wire=ColumnType.LONGLONG)
        case VariableKind.NUMBER:
            return SqlType(Kind.INTEGER, _VARIABLE_DIGITS, nullable=True, unsigned=True)
        case VariableKind.SECONDS:
            return SqlType(Kind.DOUBLE, _VARIABLE_DIGITS, 6, nullable=True)
    return text_type(len(as_text(value) or ""))


def user_variable_type(value: SqlValue) -> SqlType:
    """Return the type that SELECT declares for a user variable."""
    if isinstance(value, int):
        return SqlType(Kind.INTEGER, _VARIABLE_DIGITS - 1, nullable=True, wire=ColumnType.LONGLONG)
    if isinstance(value, Decimal):
        return SqlType(Kind.DECIMAL, 83, 38, nullable=True)
    if isinstance(value, float):
        return SqlType(Kind.DOUBLE, 23, 31, nullable=True)
    if value is None:
        return SqlType(
            Kind.BINARY, _USER_TEXT_CHARS + 1, 39, nullable=True, wire=ColumnType.LONG_BLOB
        )
    return SqlType(Kind.TEXT, _USER_TEXT_CHARS, nullable=True, wire=ColumnType.LONG_BLOB)


def shown_value(name: str, value: SqlValue) -> str:
    """Return *value* as SHOW VARIABLES has it: switches as ON and OFF, NULL as nothing."""
    if SYSTEM_VARIABLES[name].kind is VariableKind.SWITCH:
        return "ON" if value else "OFF"
    return as_text(value) or ""


class SessionVariables:
    """
    The variables of one connection.

    User variables are told apart in upper or lower case alike; one never set is NULL.

    Attributes:
        charsets: of the client.
        in_transaction, read_only_transaction: what BEGIN and COMMIT have left.
        savepoints: their names, in lower case.
    """

    def __init__(self, charset: int) -> None:
        self.charsets = SessionCharsets(charset)
        self.in_transaction = False
        self.read_only_transaction = False
        self.savepoints: list[str] = []
        self._user: dict[str, SqlValue] = {}
        self._system: dict[str, SqlValue] = {}

    @property
    def charset(self) -> int:
        """Collation id of texts sent to the client."""
        return self.charsets.results

    def user(self, name: str) -> SqlValue:
        """Return the value of `@name`, None if it was never set."""
        return self._user.get(name.lower())

    def set_user(self, name: str, value: SqlValue) -> None:
        """
        Set `@name`.

        Raises:
            SqlError: 1041, more or longer variables than a session may hold.
        """
        name = name.lower()
        crowded = len(self._user) >= USER_VARIABLES_MAX and name not in self._user
        if crowded or (isinstance(value, str | bytes) and len(value) > USER_VARIABLE_CHARS_MAX):
            raise SqlError(1041, "HY000", "Out of memory: a session's user variables are bounded")
        self._user[name] = value

    def user_chars(self) -> int:
        """Return the length of all texts in user variables."""
        return sum(len(value) for value in self._user.values() if isinstance(value, str | bytes))

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
        own = name.lower()
        if scope != "GLOBAL" and own in self.charsets.values:
            return self.charsets.values[own]
        if scope != "GLOBAL" and own in self._system:
            return self._system[own]
        return global_value(name, context)

    def set_system(self, name: str, value: SqlValue, context: Context) -> None:
        """
        Set the session's value of a system variable.

        Raises:
            SqlError: 1193 unknown, 1229 or 1238 not a session's to set, 1231 or 1232 a wrong value.
        """
        variable = find_variable(name)
        if variable.read_only:
            raise INCORRECT_GLOBAL_LOCAL_VAR.error(name, "read only")
        if not variable.session:
            raise GLOBAL_VARIABLE.error(name)
        own = name.lower().replace("transaction_", "tx_")
        checked = checked_value(name, variable, value, context)
        if self.charsets.assign(own, None if checked is None else str(checked)):
            return
        if own == "time_zone" and not _TIME_ZONE.fullmatch(str(checked)):
            raise UNKNOWN_TIME_ZONE.error(checked)
        if own == "autocommit" and checked == 1:
            self.end_transaction()
        self._system[own] = checked
        if own.startswith("tx_"):
            self._system[own.replace("tx_", "transaction_")] = checked

    def set_default(self, name: str) -> None:
        """Set the session's value back to the server's; raises SqlError 1193."""
        find_variable(name)
        self._system.pop(name.lower(), None)

    def begin_transaction(self, *, read_only: bool = False) -> None:
        """Do BEGIN; what was open before has ended."""
        self.end_transaction()
        self.in_transaction = True
        self.read_only_transaction = read_only

    def add_savepoint(self, name: str) -> None:
        """Do SAVEPOINT; one of the same name before it is gone."""
        if name in self.savepoints:
            self.savepoints.remove(name)
        if len(self.savepoints) >= SAVEPOINTS_MAX:
            raise SqlError(1041, "HY000", "Out of memory: a session's savepoints are bounded")
        self.savepoints.append(name)

    def drop_savepoints_from(self, name: str, *, keep: bool) -> None:
        """Forget the savepoints behind one that exists, and itself unless *keep*."""
        del self.savepoints[self.savepoints.index(name) + keep :]

    def end_transaction(self) -> None:
        """Do COMMIT or ROLLBACK."""
        self.in_transaction = self.read_only_transaction = False
        self.savepoints = []

    def reset(self) -> None:
        """Forget every variable, as COM_RESET_CONNECTION does."""
        self._user.clear()
        self._system.clear()
        self.end_transaction()
        self.charsets.take_login()

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


def checked_value(
    name: str, variable: SystemVariable, value: SqlValue, context: Context
) -> SqlValue:
    """
    Return *value* as the variable takes it.

    Raises:
        SqlError: 1231 or 1232, it does not.
    """
    shown = "NULL" if value is None else as_text(value)
    match variable.kind:
        case VariableKind.SWITCH:
            on = _SWITCH_WORDS.get(str(shown).upper())
            if on is None:
                raise WRONG_VALUE_FOR_VAR.error(name, shown)
            return on
        case VariableKind.NUMBER:
            if not isinstance(value, int):
                raise WRONG_TYPE_FOR_VAR.error(name)
            bounded = max(variable.least, min(value, variable.most))
            if bounded != value:
                text = f"Truncated incorrect {name} value: '{value}'"
                context.diagnostics.add("Warning", 1292, text)
            return bounded
        case VariableKind.SECONDS:
            if not isinstance(value, int | float | Decimal):
                raise WRONG_TYPE_FOR_VAR.error(name)
            return Decimal(str(value))
        case VariableKind.CHOICE:
            words = {word.upper(): word for word in variable.words}
            if isinstance(value, int) and 0 <= value < len(variable.words):
                return variable.words[value]
            if str(shown).upper() not in words:
                raise WRONG_VALUE_FOR_VAR.error(name, shown)
            return words[str(shown).upper()]
    if name.lower() == "sql_mode":
        modes = [word for word in str(shown).upper().split(",") if word]
        wrong = [mode for mode in modes if mode not in SQL_MODES]
        if wrong:
            raise WRONG_VALUE_FOR_VAR.error(name, wrong[0])
        return ",".join(dict.fromkeys(modes))
    return None if value is None else as_text(value)
