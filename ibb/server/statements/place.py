"""
Where a statement is answered: on the loop, or by which threads.

What replicas begin with never queues behind what may take its time: SHOW BINLOG EVENTS reads
files from end to end, and a few thousand characters of SQL can compute for minutes.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from ibb.server.sql.ast import (
    Assignment,
    CreateLease,
    Describe,
    Do,
    DropLease,
    Execute,
    Flush,
    Kill,
    Prepare,
    Purge,
    ResetMaster,
    Select,
    Set,
    SetNames,
    SetTransaction,
    Show,
    ShowBinlogEvents,
)
from ibb.server.sql.expressions import (
    AssignUser,
    Call,
    Case,
    Cast,
    Interval,
    Literal,
    Operation,
    Placeholder,
    SystemVariableName,
    UserVariable,
)
from ibb.server.sql.functions_text import TEXT_BYTES_MAX
from ibb.server.sql.like import PATTERN_CHARS_MAX, is_like
from ibb.server.sql.system_variables import SYSTEM_VARIABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ibb.server.sql.ast import Statement
    from ibb.server.sql.expressions import Expression

EFFORT_MAX: Final = 1 << 24  # characters that may be gone through before others have their turn
CALL_CHARS: Final = 8  # of the text of a call, at least
_CALL_EFFORT: Final = 1024  # characters that could be gone through in the time of a call
_ROWS: Final = 256  # of a table, about the most
_GIVEN: Final = (UserVariable, Placeholder)
_ADMINISTRATIVE: Final = (Flush, Purge, ResetMaster, CreateLease, DropLease)
_READING_SHOWS: Final = frozenset(
    {"ALL REPLICAS STATUS", "BINARY LOGS", "BINLOG STATUS", "BINLOG STORAGE", "REPLICA STATUS"}
)
_SEARCHING_SHOWS: Final = frozenset({"BINLOG LEASES", "BINLOG READERS"})  # each row in the files
_READING_FUNCTIONS: Final = frozenset({"BINLOG_GTID_POS", "MASTER_GTID_WAIT"})
_WAITING_FUNCTIONS: Final = frozenset({"MASTER_GTID_WAIT", "SLEEP"})
_GROWING_FUNCTIONS: Final = frozenset({"CONCAT_WS", "HEX", "REPLACE"})


class Place(Enum):
    """Where a statement is answered."""

    LOOP = auto()  # it needs no disk, and is done soon
    BRIEF = auto()  # by a thread: it may look at the disk, or at a table
    LONG = auto()  # by one of the threads for what may take its time


def place_of(statement: Statement, chars: int, data_chars: int) -> Place:
    """
    Return where a statement is to be answered.

    Args:
        statement: any; of EXECUTE its own expressions, not what it executes.
        chars: length of its text.
        data_chars: of the values that it may compute with, besides those in its text.
    """
    if isinstance(statement, ShowBinlogEvents):
        return Place.LONG
    if isinstance(statement, Show) and statement.what in _SEARCHING_SHOWS:
        return Place.LONG
    inside = [part for one in _expressions(statement) for part in _parts(one)]
    has_rows = isinstance(statement, Select) and statement.table is not None
    has_rows = has_rows or (isinstance(statement, Show | Describe) and bool(inside))
    if any(not isinstance(part, Literal) for part in inside):
        given = data_chars if any(isinstance(part, _GIVEN) for part in inside) else 0
        given += TEXT_BYTES_MAX if any(map(_grows, inside)) else 0
        rows = _ROWS if has_rows else 1
        attempts = 1 + rows * sum(map(_waits, inside))
        effort = chars // CALL_CHARS * (given + chars + _CALL_EFFORT)
        if effort * rows * attempts > EFFORT_MAX:
            return Place.LONG
    if has_rows or any(map(_reads, inside)) or _parses(statement) or _needs_disk(statement):
        return Place.BRIEF
    return Place.LOOP


def _parses(statement: Statement) -> bool:
    """Tell whether a text has to be cut for it, which may be a long one."""
    return isinstance(statement, Prepare) or (
        isinstance(statement, Execute) and statement.text is not None
    )


def _needs_disk(statement: Statement) -> bool:
    match statement:
        case Show(what="VARIABLES"):
            like = statement.filter.like
            if like is None or len(like) > PATTERN_CHARS_MAX:
                return True
            return any(
                variable.reads_history and is_like(name, like)
                for name, variable in SYSTEM_VARIABLES.items()
            )
        case Show():
            return statement.what in _READING_SHOWS
        case Set():
            return any(map(_is_global, statement.parts))
    return isinstance(statement, _ADMINISTRATIVE)


def _is_global(part: Assignment | SetNames | SetTransaction) -> bool:
    match part:
        case Assignment(target=SystemVariableName(scope="GLOBAL")):
            return True
    return False


def _reads(part: Expression) -> bool:
    """Tell whether to compute *part* itself may need the disk."""
    if isinstance(part, SystemVariableName):
        variable = SYSTEM_VARIABLES.get(part.name.lower())
        return variable is not None and variable.reads_history
    return isinstance(part, Call) and part.name.upper() in _READING_FUNCTIONS


def _waits(part: Expression) -> bool:
    """Tell whether *part* may wait; behind it all is computed again."""
    return isinstance(part, Call) and part.name.upper() in _WAITING_FUNCTIONS


def _grows(part: Expression) -> bool:
    """Tell whether *part* may make a text that is longer than all that it is made of."""
    if isinstance(part, AssignUser):  # which another column may double
        return True
    return isinstance(part, Call) and part.name.upper() in _GROWING_FUNCTIONS


def _expressions(statement: Statement) -> Iterable[Expression]:
    """Return the expressions of a statement, each with others inside."""
    match statement:
        case Select():
            found = [expression for _, expression in statement.columns]
            found += [key for key, _ in statement.order]
            return found if statement.where is None else [*found, statement.where]
        case Set():
            parts = [part for part in statement.parts if isinstance(part, Assignment)]
            return [part.value for part in parts if part.value is not None]
        case Do():
            return statement.expressions
        case Execute():
            return (
                statement.values if statement.text is None else [*statement.values, statement.text]
            )
        case Prepare():
            return [statement.text]
        case Kill() if statement.target is not None:
            return [statement.target]
        case Show() | Describe() if statement.filter.where is not None:
            return [statement.filter.where]
    return []


def _parts(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and all inside it."""
    left = [expression]
    while left:
        one = left.pop()
        yield one
        match one:
            case Call():
                left += one.arguments
            case Operation():
                left += one.operands
            case Case():
                left += [part for branch in one.branches for part in branch]
                left += [] if one.otherwise is None else [one.otherwise]
            case Cast() | Interval() | AssignUser():
                left.append(one.value)
