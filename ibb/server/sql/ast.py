"""What a statement asks for, as the parsers find it and `statements` answers it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from .expressions import Expression, SystemVariableName, UserVariable


@dataclass(frozen=True, slots=True)
class TableName:
    """A table as written; *database* is empty where it was left out."""

    database: str
    name: str
    alias: str = ""


@dataclass(frozen=True, slots=True)
class Select:
    """
    SELECT.

    Attributes:
        columns: expressions, each with the name of its column.
        order: expressions to sort by, and whether downwards.
        offset, limit: rows to leave out, and at most so many; None is no limit.
    """

    columns: tuple[tuple[str, Expression], ...]
    table: TableName | None = None
    where: Expression | None = None
    order: tuple[tuple[Expression, bool], ...] = ()
    offset: int = 0
    limit: int | None = None
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class Assignment:
    """`target = value` of a SET; a value of None is DEFAULT."""

    target: UserVariable | SystemVariableName
    value: Expression | None


@dataclass(frozen=True, slots=True)
class SetNames:
    """SET NAMES; SET CHARACTER SET without *literals*; an empty *charset* is DEFAULT."""

    charset: str
    collation: str = ""
    literals: bool = True


@dataclass(frozen=True, slots=True)
class SetTransaction:
    """SET [GLOBAL | SESSION] TRANSACTION: new values of system variables."""

    scope: str
    values: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Set:
    """SET with its parts in order."""

    parts: tuple[Assignment | SetNames | SetTransaction, ...]


@dataclass(frozen=True, slots=True)
class ShowFilter:
    """What is behind a SHOW: LIKE, or WHERE."""

    like: str | None = None
    where: Expression | None = None


@dataclass(frozen=True, slots=True)
class Show:
    """
    A SHOW, by its MariaDB name: BINLOG STATUS, BINARY LOGS, VARIABLES, ...

    Attributes:
        scope: GLOBAL, SESSION or empty.
        full: SHOW FULL.
        name: of what is shown, where it needs one: a database, a connection, an account.
    """

    what: str
    scope: str = ""
    full: bool = False
    name: str = ""
    filter: ShowFilter = ShowFilter()
    offset: int = 0
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Describe:
    """
    What a table looks like.

    Attributes:
        what: COLUMNS (DESC, too), INDEX, CREATE TABLE or CREATE VIEW.
        full: SHOW FULL COLUMNS.
    """

    what: str
    table: TableName
    full: bool = False
    filter: ShowFilter = ShowFilter()


@dataclass(frozen=True, slots=True)
class ShowBinlogEvents:
    """SHOW BINLOG EVENTS [IN file] [FROM position] [LIMIT [offset,] limit]."""

    file: str | None
    position: int | None
    offset: int
    limit: int | None


@dataclass(frozen=True, slots=True)
class Kill:
    """KILL [CONNECTION | QUERY] [ID] id, or KILL ... USER name."""

    query_only: bool
    target: Expression | None
    query_id: bool = False
    user: str | None = None


@dataclass(frozen=True, slots=True)
class Use:
    """USE database."""

    database: str


@dataclass(frozen=True, slots=True)
class Transaction:
    """
    BEGIN, COMMIT, ROLLBACK, SAVEPOINT and their like.

    Attributes:
        action: BEGIN, END, SAVEPOINT, ROLLBACK TO or RELEASE.
        name: of a savepoint.
        read_only: of a BEGIN.
        chain: an END that begins the next one at once.
    """

    action: str
    name: str = ""
    read_only: bool = False
    chain: bool = False


@dataclass(frozen=True, slots=True)
class Do:
    """DO: expressions without a result."""

    expressions: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Flush:
    """FLUSH of what the words say; *domains* of BINARY LOGS DELETE_DOMAIN_ID, else None."""

    what: tuple[str, ...]
    domains: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Purge:
    """PURGE BINARY LOGS TO a name, or BEFORE a moment."""

    to: str | None = None
    before: Expression | None = None


@dataclass(frozen=True, slots=True)
class ResetMaster:
    """RESET MASTER [TO number]."""

    number: int | None


@dataclass(frozen=True, slots=True)
class ReplicaCommand:
    """
    START, STOP or RESET SLAVE.

    Attributes:
        action: START, STOP or RESET.
        connection: name of the connection, empty for the default one.
        every: START or STOP ALL SLAVES, RESET SLAVE ALL.
        until: GTID position of START SLAVE UNTIL.
    """

    action: str
    connection: str = ""
    every: bool = False
    until: str | None = None


@dataclass(frozen=True, slots=True)
class ChangeMaster:
    """CHANGE MASTER TO: the options with their values, names in upper case."""

    options: tuple[tuple[str, str | int], ...]
    connection: str = ""


@dataclass(frozen=True, slots=True)
class CreateLease:
    """CREATE [OR REPLACE] BINLOG LEASE name FOR position [EXPIRE seconds | EXPIRE NEVER]."""

    name: str
    position: Expression
    replace: bool
    age_limit: Expression | None = None
    never: bool = False


@dataclass(frozen=True, slots=True)
class DropLease:
    """DROP BINLOG LEASE [IF EXISTS] name."""

    name: str
    if_exists: bool


@dataclass(frozen=True, slots=True)
class Prepare:
    """PREPARE name FROM text."""

    name: str
    text: Expression


@dataclass(frozen=True, slots=True)
class Execute:
    """EXECUTE name [USING values], or EXECUTE IMMEDIATE *text*."""

    name: str
    values: tuple[Expression, ...]
    text: Expression | None = None


@dataclass(frozen=True, slots=True)
class Deallocate:
    """DEALLOCATE PREPARE name."""

    name: str


@dataclass(frozen=True, slots=True)
class OnTable:
    """A statement on a table or routine; there are none here. *verb* says which, for the error."""

    verb: str
    table: TableName


@dataclass(frozen=True, slots=True)
class Nothing:
    """A statement that has nothing to do here."""


@dataclass(frozen=True, slots=True)
class Unsupported:
    """Correct SQL that has no place here; *what* names it."""

    what: str


Statement: TypeAlias = (
    Select
    | Set
    | Show
    | Describe
    | ShowBinlogEvents
    | Kill
    | Use
    | Transaction
    | Do
    | Flush
    | Purge
    | ResetMaster
    | ReplicaCommand
    | ChangeMaster
    | CreateLease
    | DropLease
    | Prepare
    | Execute
    | Deallocate
    | OnTable
    | Nothing
    | Unsupported
)
