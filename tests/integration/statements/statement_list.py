"""
Lists of statements, each run in one session, one statement a line.

    SELECT 1            the answers are equal in everything
    ~ SELECT NOW()      the rows differ from moment to moment: equal but for what is in them
    ? SHOW PLUGINS      equal columns; each server has rows of its own
    [name] USE mysql    a deliberate difference, under this name in docs/sql.md
    # a note            also tells which account runs the list: # account: poor
"""

import re
from pathlib import Path
from typing import NamedTuple

LISTS = Path(__file__).parents[2] / "data" / "statements"
_LINE = re.compile(r"(?:(?P<mark>[~?])|\[(?P<difference>[a-z ]+)\])? ?(?P<sql>.*)", re.DOTALL)
_ACCOUNT = re.compile(r"# account: (\w+)")


class Listed(NamedTuple):
    """One statement; *mark* is one of the above or empty, *difference* a name or empty."""

    number: int  # of the line
    sql: str
    mark: str
    difference: str


class StatementList(NamedTuple):
    """One session's statements."""

    name: str
    account: str
    statements: list[Listed]


def read_list(path: Path) -> StatementList:
    """Read one list."""
    text = path.read_text()
    account = _ACCOUNT.search(text)
    statements = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        found = _LINE.fullmatch(line)
        assert found is not None
        statements.append(
            Listed(number, found["sql"], found["mark"] or "", found["difference"] or "")
        )
    return StatementList(path.stem, account[1] if account else "dba", statements)


def all_lists() -> list[StatementList]:
    """Read all lists, by name."""
    return [read_list(path) for path in sorted(LISTS.glob("*.sql"))]
