"""
The rows of a statement, as the dashboard's own session gets them.

What the dashboard shows has the names that SQL has, since it is what SQL answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ibb.protocol.character_sets import UTF8MB4
from ibb.server.sql.parser import parse_statement
from ibb.server.statements.session_memory import SessionMemory
from ibb.server.statements.statements import Statements
from ibb.server.statements.variables import SessionVariables

if TYPE_CHECKING:
    from ibb.server.login.accounts import Account
    from ibb.server.server import Server

Value = str | int | float | None
Row = dict[str, Value]
_NO_CONNECTION: Final = 0
_USER: Final = "dashboard@localhost"


def statement_rows(server: Server, sql: str, account: Account | None = None) -> list[Row]:
    """
    Return the rows of a statement by column name; blocking.

    Args:
        server: answers it.
        sql: a SHOW or SELECT.
        account: whose privileges count; None may everything.

    Raises:
        SqlError: as for any client.
    """
    memory = SessionMemory(server.memory)
    variables = SessionVariables(UTF8MB4, memory)
    statements = Statements(server, variables, _NO_CONNECTION, _USER, account)
    try:
        result = statements.answer(parse_statement(sql))
    finally:
        memory.release()
    assert result is not None
    names = [column.name for column in result.columns]
    return [dict(zip(names, map(_plain, row), strict=True)) for row in result.rows]


def _plain(value: str | bytes | float | None) -> Value:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
