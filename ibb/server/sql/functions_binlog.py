"""Functions of the binlog: BINLOG_GTID_POS, MASTER_GTID_WAIT, MASTER_POS_WAIT."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final, TypeAlias

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.error_codes import (
    ERROR_WHEN_EXECUTING_COMMAND,
    ILLEGAL_PARAMETER_DATA_TYPE,
    INCORRECT_GTID_STATE,
)
from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid, parse_gtid_list
from ibb.protocol.result_set import ColumnType
from ibb.server.config import STREAM_NAME
from ibb.storage.errors import DiskError
from ibb.storage.file_name import parse_binlog_name
from ibb.storage.gtid_search import find_oldest
from ibb.storage.state_scan import read_state

from .types import Kind, SqlType, Typed, as_number, as_text
from .wait import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .context import Context

_Arguments: TypeAlias = "Sequence[Typed]"
_FIRST_POSITION: Final = 4
_GTID_CHARS: Final = (64 << 20) // 4  # of a LONG_BLOB with four bytes a character
_NOT_REACHED: Final = -1


def _binlog_gtid_pos(context: Context, arguments: _Arguments) -> Typed:
    """Return the position before a file's first group; no place inside a file has a position."""
    type_ = SqlType(Kind.TEXT, _GTID_CHARS, nullable=True, wire=ColumnType.LONG_BLOB)
    name, position = as_text(arguments[0].value), _number(context, arguments[1])
    if name is None or not isinstance(position, int) or position > _FIRST_POSITION:
        return Typed(None, type_)
    pages = context.facts.history.pages
    try:
        is_oldest = name in ("", STREAM_NAME)
        file_no = find_oldest(pages).file_no if is_oldest else parse_binlog_name(name)
        if file_no is None or not pages.first_file() <= file_no <= pages.last_file():
            return Typed("" if is_oldest else None, type_)
        before = read_state(pages, file_no, 1)
    except (FormatError, DiskError) as error:
        raise ERROR_WHEN_EXECUTING_COMMAND.error("BINLOG_GTID_POS", error) from error
    entries = () if before is None else before.entries
    return Typed(str(BinlogState(entries).position()), type_)


def _gtid_wait(context: Context, arguments: _Arguments) -> Typed:
    """Return 0 when everything named is stored here, -1 after the time; less than 0 is for ever."""
    _check_text(arguments[0].type, "master_gtid_wait")
    nullable = any(argument.type.nullable for argument in arguments)
    type_ = SqlType(Kind.INTEGER, 2, nullable=nullable)
    text = as_text(arguments[0].value)
    if text is None:
        return Typed(None, type_)
    wanted = _awaited(text)
    seconds = _number(context, arguments[1]) if len(arguments) > 1 else None
    limit = None if seconds is None or seconds < 0 else float(seconds)
    came = wait_for(context, ("MASTER_GTID_WAIT", text), wanted, limit)
    return Typed(0 if came else _NOT_REACHED, type_)


def _awaited(text: str) -> list[Gtid]:
    """Return the GTIDs of a list with blanks before them at most; a domain may come twice."""
    entries = text.split(",")
    if text and any(entry != entry.rstrip() or not entry for entry in entries):
        raise INCORRECT_GTID_STATE.error()
    return parse_gtid_list(text)


def _number(context: Context, argument: Typed) -> int | float | Decimal | None:
    """Return a number; a text that is none is warned of."""
    if argument.type.kind is Kind.TEXT:
        return context.number(argument.value)
    return as_number(argument.value)


def _check_text(type_: SqlType, operation: str) -> None:
    """Refuse what is no text, under the name that MariaDB has for its type."""
    if type_.kind in (Kind.TEXT, Kind.BINARY, Kind.NULL):
        return
    name = type_.kind.name.lower()
    if type_.kind is Kind.INTEGER:
        name = "bigint" if type_.column("", 0).type == ColumnType.LONGLONG else "int"
    raise ILLEGAL_PARAMETER_DATA_TYPE.error(name, operation)


def _pos_wait(_: Context, arguments: _Arguments) -> Typed:
    """Return NULL: positions are no measure here, as on a server that is no replica."""
    _check_text(arguments[0].type, "master_pos_wait")
    return Typed(None, SqlType(Kind.INTEGER, 21, nullable=True))


BINLOG_FUNCTIONS: Final[dict[str, tuple[int, int, Callable[[Context, _Arguments], Typed]]]] = {
    "BINLOG_GTID_POS": (2, 2, _binlog_gtid_pos),
    "MASTER_GTID_WAIT": (1, 2, _gtid_wait),
    "MASTER_POS_WAIT": (2, 4, _pos_wait),
}

assert parse_binlog_name(STREAM_NAME) is None  # else the name would be ambiguous
