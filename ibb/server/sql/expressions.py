"""Expressions, as the parser finds them and the evaluator computes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from .types import Typed

COUNT_DISTINCT: Final = "COUNT DISTINCT"  # what COUNT(DISTINCT ...) calls


@dataclass(frozen=True, slots=True)
class Literal:
    """A value as written."""

    typed: Typed


@dataclass(frozen=True, slots=True)
class Placeholder:
    """`?` of a prepared statement: the value of this number, from 0."""

    number: int


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
class ColumnName:
    """A column, perhaps with its table; *clause* is where it stands, for an error."""

    table: str
    name: str
    clause: str


@dataclass(frozen=True, slots=True)
class Star:
    """`*` in a list of columns, or in COUNT(*)."""


@dataclass(frozen=True, slots=True)
class Call:
    """A function as written, and its arguments."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator by its name in upper case and what it applies to."""

    operator: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """CASE: conditions with their results, and what holds if none does."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None


@dataclass(frozen=True, slots=True)
class Cast:
    """CAST(value AS target); *sizes* are those in parentheses."""

    value: Expression
    target: str
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Interval:
    """INTERVAL value unit."""

    value: Expression
    unit: str


@dataclass(frozen=True, slots=True)
class AssignUser:
    """`@name := value`."""

    name: str
    value: Expression


Expression: TypeAlias = (
    Literal
    | Placeholder
    | UserVariable
    | SystemVariableName
    | ColumnName
    | Star
    | Call
    | Operation
    | Case
    | Cast
    | Interval
    | AssignUser
)
