"""
Every listed statement, at a real 10.11 and at `ibb`: equal, or different as docs/sql.md says.

Columns with types, lengths and flags, rows, status, warnings, errors; in text and prepared.
"""

import re
from pathlib import Path

import pytest

from .comparison import ask_in_text, ask_prepared
from .statement_list import all_lists

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("twins")]

DOCUMENT = Path(__file__).parents[3] / "docs" / "sql.md"
TABLE = re.compile(r"## Where answers differ on purpose\n(.*?)(?=\n## |\Z)", re.DOTALL)
DIFFERENCES_MAX = 10
STATEMENTS_MIN = 900
LISTS = {found.name: found for found in all_lists()}
# RESET MASTER forgets the history that the other lists look at.
ORDER = sorted(LISTS, key=lambda name: name == "administration")


def documented_differences():
    table = TABLE.search(DOCUMENT.read_text())
    assert table is not None
    return re.findall(r"^\| ([a-z ]+) \|", table[1], re.MULTILINE)[1:]


def check(twins, name, ask):
    """Ask everything of one list, and say all that is wrong at once."""
    listed = LISTS[name]
    with twins.clients(listed.account) as (real, ours):
        pairs = [(one, ask(one, real, ours)) for one in listed.statements]
    wrong = [
        f"{name}.sql:{one.number}: {'equal after all: ' if one.difference else ''}{pair}"
        for one, pair in pairs
        if pair.equal == bool(one.difference)
    ]
    assert wrong == [], "\n".join(wrong)


@pytest.mark.parametrize(
    ("name", "ask"),
    [(name, ask) for name in ORDER for ask in (ask_prepared, ask_in_text)],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_answers_are_equal(twins, name, ask):
    check(twins, name, ask)


def test_the_lists_are_long_and_the_differences_few_and_documented():
    documented = documented_differences()
    statements = [one for found in LISTS.values() for one in found.statements]
    assert len({one.sql for one in statements}) >= STATEMENTS_MIN
    assert {one.difference for one in statements} - {""} == set(documented)
    assert len(documented) <= DIFFERENCES_MAX
