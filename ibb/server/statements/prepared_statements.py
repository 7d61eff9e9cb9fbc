"""The prepared statements of one session: by number for the protocol, by name for SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ibb.protocol.error_codes import MAX_PREPARED_STMT_COUNT_REACHED, OUT_OF_RESOURCES
from ibb.protocol.prepared_statement import PARAMETERS_MAX, Parameters
from ibb.server.sql.ast import Show

from .session_memory import statement_bytes
from .variables import global_value

if TYPE_CHECKING:
    from ibb.server.sql.ast import Statement
    from ibb.server.sql.context import Context
    from ibb.server.sql.parser import Parsed

    from .session_memory import SessionMemory

PREPARED_MAX: Final = 1024  # statements of one session
LONG_DATA_BYTES_MAX: Final = 1 << 20  # of one statement's parameters
_PARAMETER_BYTES: Final = 64  # that a parameter takes without a value
_LATE_COLUMNS: Final = frozenset(
    {
        *("REPLICA HOSTS", "PROCESSLIST", "WARNINGS", "ERRORS", "PLUGINS", "ENGINES"),
        *("PRIVILEGES", "PROFILES"),
    }
)


class Prepared:
    """A prepared statement: what it asks, its parameters, and the long ones sent ahead."""

    def __init__(self, parsed: Parsed, memory: SessionMemory) -> None:
        self.parsed = parsed
        self.parameters = Parameters(parsed.placeholders)
        self.size = statement_bytes(parsed) + parsed.placeholders * _PARAMETER_BYTES
        self._memory = memory
        self._long_data: dict[int, bytearray] = {}
        self._long_bytes = 0
        self._overflows = False

    def add_long_data(self, parameter: int, data: bytes) -> None:
        """Keep a piece of a parameter; raises SqlError if that is more than may be kept."""
        if parameter >= self.parsed.placeholders or self._overflows:
            return
        self._overflows = True
        if self._long_bytes + len(data) > LONG_DATA_BYTES_MAX:
            raise OUT_OF_RESOURCES.error()
        self._memory.change(len(data))
        self._overflows = False
        self._long_bytes += len(data)
        self._long_data.setdefault(parameter, bytearray()).extend(data)

    def take_long_data(self) -> dict[int, bytes]:
        """Return the long parameters and forget them; raises SqlError 1041, some was lost."""
        found = {parameter: bytes(data) for parameter, data in self._long_data.items()}
        overflows = self._overflows
        self.drop_long_data()
        if overflows:
            raise OUT_OF_RESOURCES.error()
        return found

    def drop_long_data(self) -> None:
        """Forget the long parameters."""
        self._memory.change(-self._long_bytes)
        self._long_data, self._long_bytes, self._overflows = {}, 0, False


class PreparedStatements:
    """
    Those of one session.

    Args:
        context: of its statements.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._memory = context.variables.memory
        self._statements: dict[int | str, Prepared] = {}

    def add(self, key: int | str, parsed: Parsed) -> None:
        """
        Keep a statement under a number, or a name in lower case that none has.

        Raises:
            SqlError: 1461 there are too many, here or of all sessions; 1290, 1041 too large.
        """
        assert key not in self._statements
        most = global_value("max_prepared_stmt_count", self._context)
        assert isinstance(most, int)
        if len(self._statements) >= PREPARED_MAX or parsed.placeholders > PARAMETERS_MAX:
            raise MAX_PREPARED_STMT_COUNT_REACHED.error(PREPARED_MAX)
        prepared = Prepared(parsed, self._memory)
        self._memory.add_statement(prepared.size, most)
        self._statements[key] = prepared

    def get(self, key: int | str) -> Prepared | None:
        """Return a statement, or None."""
        return self._statements.get(key)

    def drop(self, key: int | str) -> None:
        """Forget a statement, if there is one."""
        prepared = self._statements.pop(key, None)
        if prepared is not None:
            prepared.drop_long_data()
            self._memory.drop_statement(prepared.size)

    def clear(self) -> None:
        """Forget all of them."""
        for key in list(self._statements):
            self.drop(key)


def tells_columns_late(statement: Statement) -> bool:
    """Tell whether MariaDB describes the columns only when the statement is executed."""
    return isinstance(statement, Show) and statement.what in _LATE_COLUMNS
