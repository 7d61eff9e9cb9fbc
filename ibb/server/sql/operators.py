"""Operators of expressions by how tightly they bind, and words that are no names."""

from __future__ import annotations

from typing import Final

# Binary operators from the loosest to the tightest; words and signs that mean the same.
LOGICAL: Final[tuple[dict[str, str], ...]] = (
    {"OR": "OR", "||": "OR"},
    {"XOR": "XOR"},
    {"AND": "AND", "&&": "AND"},
)
COMPARISONS: Final = {
    "=": "=",
    "<=>": "<=>",
    ">=": ">=",
    ">": ">",
    "<=": "<=",
    "<": "<",
    "<>": "<>",
    "!=": "<>",
}
ARITHMETIC: Final[tuple[dict[str, str], ...]] = (
    {"|": "|"},
    {"&": "&"},
    {"<<": "<<", ">>": ">>"},
    {"+": "+", "-": "-"},
    {"*": "*", "/": "/", "DIV": "DIV", "%": "%", "MOD": "%"},
    {"^": "^"},
)
CONSTANTS: Final = frozenset(
    {
        *("CURRENT_USER", "CURRENT_ROLE", "CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME"),
        *("LOCALTIME", "LOCALTIMESTAMP", "UTC_TIMESTAMP", "UTC_DATE", "UTC_TIME"),
    }
)
RESERVED: Final = frozenset(
    {
        *("SELECT", "FROM", "WHERE", "ORDER", "GROUP", "LIMIT", "HAVING", "UNION", "INTO", "FOR"),
        *("AND", "OR", "XOR", "NOT", "LIKE", "IN", "IS", "BETWEEN", "DIV", "MOD", "AS", "BY"),
        *("THEN", "ELSE", "WHEN", "ON", "JOIN", "SET", "TABLE", "UPDATE", "DELETE", "INSERT"),
        *("RELEASE", "DESC", "ASC", "USING", "VALUES", "REGEXP", "RLIKE"),
    }
)
UNITS: Final = frozenset(
    {"MICROSECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"}
)
