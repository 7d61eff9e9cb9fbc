"""
What a server says of itself by SQL, gathered for `ibb status`: over a connection of its own.

The names are those that SQL answers with, as on the dashboard. It asks nothing that a MariaDB
server does not know, or lives with the refusal.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeAlias

from ibb.protocol.errors import SqlError
from ibb.protocol.result_set import ColumnType, ResultSet

from .relay.upstream import Upstream

if TYPE_CHECKING:
    from ibb.protocol.result_set import Column

    from .relay.upstream import UpstreamAddress

REPORT_SECONDS_MAX: Final = 30.0  # for all of it
ROWS_MAX: Final = 100_000  # of one statement
Value: TypeAlias = str | int | None
Row: TypeAlias = dict[str, Value]

# A section's name, and what it asks.
SECTIONS: Final[dict[str, str]] = {
    "server": (
        "SELECT @@hostname AS Host, @@port AS Port, @@server_id AS Server_id, "
        "@@version AS Version, @@gtid_binlog_pos AS Gtid_binlog_pos"
    ),
    "binlog": "SHOW BINLOG STATUS",
    "upstream": "SHOW REPLICA STATUS",
    "readers": "SHOW BINLOG READERS",
    "leases": "SHOW BINLOG LEASES",
    "storage": "SHOW BINLOG STORAGE",
    "files": "SHOW BINARY LOGS",
}
_NUMBERS: Final = frozenset({ColumnType.LONG, ColumnType.LONGLONG})


class Report(dict[str, list[Row] | str]):
    """By section its rows, or the text of the error that the server answered with."""


async def read_report(address: UpstreamAddress) -> Report:
    """
    Ask a server for all `SECTIONS`.

    Raises:
        SqlError: it refuses the login.
        IbbError: it cannot be trusted, or speaks something else.
        OSError: it is not there, or took longer than `REPORT_SECONDS_MAX`.
    """
    report = Report()
    try:
        async with asyncio.timeout(REPORT_SECONDS_MAX):
            client = await Upstream.connect(address)
            try:
                for section, sql in SECTIONS.items():
                    report[section] = await _rows(client, sql)
            finally:
                await client.close()
    except TimeoutError as error:
        where = f"{address}: no answer in {REPORT_SECONDS_MAX:g} s"
        raise TimeoutError(where) from error
    return report


async def _rows(client: Upstream, sql: str) -> list[Row] | str:
    try:
        reply = await client.query(sql)
    except SqlError as error:  # a privilege is missing, or a server of another kind
        return f"ERROR {error.code} ({error.sqlstate}): {error.message}"
    if not isinstance(reply, ResultSet):
        return []
    columns = list(reply.columns)
    return [
        {column.name: _value(column, cell) for column, cell in zip(columns, row, strict=True)}
        for row in list(reply.rows)[:ROWS_MAX]
    ]


def _value(column: Column, cell: object) -> Value:
    if cell is None:
        return None
    text = cell.decode(errors="replace") if isinstance(cell, bytes) else str(cell)
    is_number = column.type in _NUMBERS and text.removeprefix("-").isdecimal()
    return int(text) if is_number else text
