"""Results of SHOW and their columns, as MariaDB makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ibb.protocol.result_set import Column, ResultSet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ibb.protocol.result_set import Value
    from ibb.server.sql.context import Context


def text_column(context: Context, name: str, characters: int, *, nullable: bool = False) -> Column:
    """Return a column of text, in the character set that the server shows."""
    collation = context.variables.system_charset
    return Column.text(name, characters, collation=collation, nullable=nullable)


def signed_column(name: str, type_: int, digits: int) -> Column:
    """Return a column of numbers that is neither unsigned nor NULL."""
    return Column(name, type_, digits, 0x81)


def result_of(
    context: Context, columns: Sequence[Column], rows: Sequence[Sequence[Value]]
) -> ResultSet:
    """Return rows as the session's answer."""
    return ResultSet(columns, rows, context.variables.status)
