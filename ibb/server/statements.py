"""
The answers to SQL: exactly what a MariaDB 10.11 primary says to replicas, tools and connectors.

Reading may touch the history and so the disk: `answer` is for a thread of the pool whenever
`reads_history` says so. Source: dump-protocol 2.1 to 2.3, 9.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

from ibb.protocol.error_codes import (
    INCORRECT_GLOBAL_LOCAL_VAR,
    NOT_SUPPORTED_YET,
    SPECIFIC_ACCESS_DENIED_ERROR,
)
from ibb.protocol.errors import SqlError
from ibb.protocol.result_set import DECIMALS_NOT_FIXED, Column, ColumnFlag, ColumnType, ResultSet
from ibb.storage.file_name import binlog_name, parse_binlog_name

from .config import STREAM_NAME
from .like import is_like
from .sql_ast import (
    Call,
    Literal,
    NoOperation,
    Select,
    Set,
    SetNames,
    Show,
    ShowStatus,
    ShowVariables,
    SystemVariableName,
    UserVariable,
)
from .variables import (
    HISTORY_VARIABLES,
    SYSTEM_VARIABLES,
    global_value,
    shown_value,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .sql_ast import Assignment, Expression, NameFilter, Statement
    from .variables import ServerFacts, SessionVariables, Value

_LONG_BLOB: Final = ColumnType.LONG_BLOB
_LONGLONG: Final = ColumnType.LONGLONG
_USER_VARIABLE_BYTES: Final = 0xFFFFFF
_GTID_POS_BYTES: Final = 1 << 24
_TIMESTAMP_DIGITS: Final = 17
_NUMBER_DIGITS: Final = 21
_LONG_DIGITS_MAX: Final = 9  # of a literal that a real server gives as LONG
_NAME_CHARS: Final = 64
_VALUE_CHARS: Final = 4096
_FIRST_POSITION: Final = 4

_GTID_POS: Final = "BINLOG_GTID_POS"
_ERROR_UNKNOWN_FUNCTION: Final = 1305


def reads_history(statement: Statement) -> bool:
    """Tell whether answering may have to read the disk."""
    if isinstance(statement, Select):
        return any(_reads_history(expression) for _, expression in statement.columns)
    if isinstance(statement, Set):
        return any(not isinstance(p, SetNames) and _reads_history(p.value) for p in statement.parts)
    return isinstance(statement, Show | ShowVariables)


def _reads_history(expression: Expression) -> bool:
    if isinstance(expression, SystemVariableName):
        return expression.name.lower() in HISTORY_VARIABLES
    return isinstance(expression, Call) and expression.name == _GTID_POS


class Statements:
    """
    Answers the statements of one session.

    Args:
        facts: what may be known of the server.
        variables: of the session.
        connection_id: of the session.
        user: `name@host`, as it logged in.
    """

    def __init__(
        self, facts: ServerFacts, variables: SessionVariables, connection_id: int, user: str
    ) -> None:
        self._facts = facts
        self._variables = variables
        self._connection_id = connection_id
        self._user = user
        self.database: str | None = None

    def answer(self, statement: Statement) -> ResultSet | None:
        """
        Do what *statement* asks; None is OK without a result.

        Raises:
            SqlError: what the client is told instead.
        """
        match statement:
            case Select():
                return self._select(statement)
            case Set():
                for part in statement.parts:
                    self._set(part)
                return None
            case ShowVariables():
                return self._show_variables(statement)
            case ShowStatus():
                status = self._facts.status()
                names = _wanted(list(status), statement.wanted)
                return self._names_and_values(
                    [(name, status[name]) for name in names], "SESSION_STATUS"
                )
            case Show():
                return self._show(statement.what)
            case NoOperation():
                if statement.words[0].upper() == "USE" and len(statement.words) == 2:
                    self.database = statement.words[1]
                return None
        raise AssertionError(statement)  # KILL is the session's

    def _set(self, part: Assignment | SetNames) -> None:
        if isinstance(part, SetNames):
            self._variables.set_names(part.charset)
            return
        value = self._value(part.value)
        if isinstance(part.target, UserVariable):
            self._variables.set_user(part.target.name, value)
        elif part.target.scope == "GLOBAL":
            global_value(part.target.name, self._facts)  # 1193 comes first
            raise SPECIFIC_ACCESS_DENIED_ERROR.error("SUPER")
        else:
            self._variables.set_system(part.target.name, value)

    def _select(self, select: Select) -> ResultSet:
        columns = []
        row = []
        for name, expression in select.columns:
            value = self._value(expression)
            columns.append(self._column(name, expression, value))
            row.append(value)
        return self._result(columns, [] if select.limit == 0 else [row])

    def _value(self, expression: Expression) -> Value:
        match expression:
            case Literal():
                return expression.value
            case UserVariable():
                return self._variables.user(expression.name)
            case SystemVariableName():
                return self._system_value(expression)
            case Call():
                return self._call(expression)

    def _system_value(self, variable: SystemVariableName) -> Value:
        if variable.scope == "GLOBAL":
            return global_value(variable.name, self._facts)
        value = self._variables.system(variable.name, self._facts)
        if variable.scope == "SESSION" and not SYSTEM_VARIABLES[variable.name.lower()].session:
            raise INCORRECT_GLOBAL_LOCAL_VAR.error(variable.name, "GLOBAL")
        return value

    def _call(self, call: Call) -> Value:
        arguments = [self._value(argument) for argument in call.arguments]
        match call.name, arguments:
            case "UNIX_TIMESTAMP", []:
                return int(self._facts.now())
            case "VERSION", []:
                return self._facts.config.server_version
            case "CONNECTION_ID", []:
                return self._connection_id
            case (("DATABASE" | "SCHEMA"), []):
                return self.database
            case (("USER" | "CURRENT_USER" | "SESSION_USER" | "SYSTEM_USER"), []):
                return self._user
            case "CONCAT", [_, *_]:
                return None if None in arguments else "".join(map(str, arguments))
            case "UUID", []:
                return str(uuid.uuid4())
            case "BINLOG_GTID_POS", [name, position]:
                return self._binlog_gtid_pos(name, position)
        raise SqlError(_ERROR_UNKNOWN_FUNCTION, "42000", f"FUNCTION {call.name} does not exist")

    def _binlog_gtid_pos(self, name: Value, position: Value) -> Value:
        """Return the state at the start of the first file, which is all that has a position."""
        at_start = isinstance(position, int) and position <= _FIRST_POSITION
        first = binlog_name(self._facts.history.pages.first_file())
        return "" if at_start and name in ("", STREAM_NAME, first) else None

    def _column(self, name: str, expression: Expression, value: Value) -> Column:
        """Return the definition that a real server gives for *expression*."""
        if isinstance(expression, UserVariable) and not isinstance(value, int):
            return self._blob(name, _USER_VARIABLE_BYTES)
        if isinstance(expression, Call):
            if expression.name == _GTID_POS:
                return self._blob(name, _GTID_POS_BYTES)
            if expression.name == "UNIX_TIMESTAMP":
                flags = ColumnFlag.BINARY_FLAG
                return Column(name, _LONGLONG, _TIMESTAMP_DIGITS, flags)
        if isinstance(value, int) and isinstance(expression, Literal):
            digits = len(str(value))
            type_ = ColumnType.LONG if digits <= _LONG_DIGITS_MAX else _LONGLONG
            return Column(name, type_, digits, ColumnFlag.NOT_NULL_FLAG | ColumnFlag.BINARY_FLAG)
        if isinstance(value, int):
            return Column.longlong(name, _NUMBER_DIGITS, nullable=True)
        nullable = not isinstance(expression, Call | Literal) or value is None
        return self._text(name, len(value or ""), nullable=nullable)

    def _show_variables(self, show: ShowVariables) -> ResultSet:
        rows = []
        for name in _wanted(list(SYSTEM_VARIABLES), show.wanted):
            value = (
                global_value(name, self._facts)
                if show.is_global
                else self._variables.system(name, self._facts)
            )
            rows.append((name, shown_value(name, value)))
        return self._names_and_values(rows, "SESSION_VARIABLES")

    def _names_and_values(self, rows: Sequence[tuple[str, str | None]], table: str) -> ResultSet:
        charset = self._variables.charset
        columns = [
            Column(
                name,
                ColumnType.VAR_STRING,
                Column.text(name, chars, collation=charset).length,
                flags,
                charset,
                0,
                "information_schema",
                table,
                table,
                org_name,
            )
            for name, org_name, chars, flags in (
                ("Variable_name", "VARIABLE_NAME", _NAME_CHARS, _SHOWN_FLAGS),
                ("Value", "VARIABLE_VALUE", _VALUE_CHARS, _SHOWN_FLAGS),
            )
        ]
        return self._result(columns, rows)

    def _show(self, what: str) -> ResultSet:
        text = self._text
        match what:
            case "BINLOG STATUS":
                columns = [
                    text("File", 512),
                    Column.longlong("Position", 20),
                    text("Binlog_Do_DB", 255),
                    text("Binlog_Ignore_DB", 255),
                ]
                file_no, offset = self._facts.history.end()
                return self._result(columns, [(binlog_name(file_no), offset, "", "")])
            case "BINARY LOGS":
                columns = [text("Log_name", 255), Column.longlong("File_size", 20)]
                files = self._facts.history.files()
                return self._result(columns, [(file.name, file.size) for file in files])
            case "REPLICA HOSTS":
                columns = [
                    Column.long("Server_id", 10),
                    text("Host", 20),
                    Column.long("Port", 7),
                    Column.long("Master_id", 10),
                ]
                return self._result(columns, self._facts.replicas())
            case "WARNINGS":
                columns = [text("Level", 7), Column.long("Code", 4), text("Message", 512)]
                return self._result(columns, [])
            case "DATABASES":
                return self._result([text("Database", _NAME_CHARS)], [])
        raise NOT_SUPPORTED_YET.error(f"SHOW {what}")

    def _text(self, name: str, characters: int, *, nullable: bool = False) -> Column:
        charset = self._variables.charset
        return Column.text(name, characters, collation=charset, nullable=nullable)

    def _blob(self, name: str, size: int) -> Column:
        charset = self._variables.charset
        return Column(name, _LONG_BLOB, size, 0, charset, DECIMALS_NOT_FIXED)

    def _result(self, columns: Sequence[Column], rows: Sequence[Sequence[Value]]) -> ResultSet:
        return ResultSet(columns, rows, status=self._variables.status)


_SHOWN_FLAGS: Final = ColumnFlag.NOT_NULL_FLAG | 0x1000  # has no default: columns of a table


def _wanted(names: list[str], wanted: NameFilter) -> list[str]:
    """Return which of *names* were asked for, sorted."""
    if wanted.everything:
        return sorted(names)
    exact = {name.lower() for name in wanted.names}
    return sorted(
        name
        for name in names
        if name.lower() in exact or any(is_like(name, pattern) for pattern in wanted.patterns)
    )


assert parse_binlog_name(STREAM_NAME) is None  # else the name would be ambiguous
