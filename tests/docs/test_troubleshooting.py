"""The texts that docs/troubleshooting.md explains are those that the program says."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
TEXTS = [text for line in PAGE.splitlines() for text in re.findall(r"^\| `(.+?)` \|", line)]


@cache
def sayings() -> str:
    """Return all string literals of the program, those that are split joined."""
    sources = "\n".join(path.read_text() for path in sorted((ROOT / "ibb").rglob("*.py")))
    return re.sub(r"\"\s*\n?\s*f?\"", "", sources)


def test_there_is_something_to_look_up():
    assert len(TEXTS) > 25


@pytest.mark.parametrize("text", TEXTS)
def test_the_program_says_so(text):
    for part in text.split("..."):
        assert part in sayings()
