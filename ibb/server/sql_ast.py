"""What a statement asks for, as `sql_parser` finds it and `statements` answers it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from .variables import Value


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, a string or NULL; a bare word such as ON is a string."""

    value: Value


@dataclass(frozen=True, slots=True)
class UserVariable:
    """`@name`."""

    name: str


@dataclass(frozen=True, slots=True)
class SystemVariableName:
    """`@@name`, `@@global.name` or `@@session.name`; *scope* is GLOBAL, SESSION or empty."""

    scope: str
    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function, its name in upper case, and its arguments."""

    name: str
    arguments: tuple[Expression, ...]


Expression: TypeAlias = Literal | UserVariable | SystemVariableName | Call


@dataclass(frozen=True, slots=True)
class Select:
    """SELECT of expressions, each with the name of its column."""

    columns: tuple[tuple[str, Expression], ...]
    limit: int | None  # rows


@dataclass(frozen=True, slots=True)
class Assignment:
    """`target = value` of a SET."""

    target: UserVariable | SystemVariableName
    value: Expression


@dataclass(frozen=True, slots=True)
class SetNames:
    """SET NAMES, SET CHARACTER SET."""

    charset: str


@dataclass(frozen=True, slots=True)
class Set:
    """SET with its parts in order; none for what is accepted without effect."""

    parts: tuple[Assignment | SetNames, ...]


@dataclass(frozen=True, slots=True)
class NameFilter:
    """LIKE patterns and exact names that SHOW VARIABLES and SHOW STATUS are asked for; any fits."""

    patterns: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def everything(self) -> bool:
        """Nothing was asked for in particular."""
        return not self.patterns and not self.names


@dataclass(frozen=True, slots=True)
class ShowVariables:
    """SHOW [GLOBAL | SESSION] VARIABLES."""

    is_global: bool
    wanted: NameFilter


@dataclass(frozen=True, slots=True)
class ShowStatus:
    """SHOW [GLOBAL | SESSION] STATUS."""

    wanted: NameFilter


@dataclass(frozen=True, slots=True)
class Show:
    """A SHOW without arguments, by its MariaDB name: BINLOG STATUS, BINARY LOGS, ..."""

    what: str


@dataclass(frozen=True, slots=True)
class Kill:
    """KILL [HARD | SOFT] [CONNECTION | QUERY] id: to stop the query of a dump ends it as well."""

    connection_id: int


@dataclass(frozen=True, slots=True)
class NoOperation:
    """Something that needs no more than OK: USE, COMMIT, ..."""

    words: tuple[str, ...] = field(default=())


Statement: TypeAlias = Select | Set | ShowVariables | ShowStatus | Show | Kill | NoOperation
