r"""SQL's LIKE: `%` any characters, `_` exactly one, `\` before a character for itself."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

PATTERN_CHARS_MAX: Final = 4096
_ANY: Final = "%"
_ONE: Final = "_"


def is_like(text: str, pattern: str) -> bool:
    """
    Tell whether the whole of *text* matches *pattern*, in upper or lower case.

    Takes at most len(text) * len(pattern) steps: patterns come from clients, who are told when
    one is longer than `PATTERN_CHARS_MAX`.
    """
    assert len(pattern) <= PATTERN_CHARS_MAX
    parts = _parts(pattern.lower())
    text = text.lower()
    at = part_no = 0
    retry: tuple[int, int] | None = None  # behind the last %: its place, where to try it next
    while at < len(text):
        part = parts[part_no] if part_no < len(parts) else None
        if part is not None and part == (True, _ANY):
            part_no += 1
            retry = (part_no, at)
        elif part is not None and part in ((True, _ONE), (False, text[at])):
            part_no += 1
            at += 1
        elif retry is not None:
            part_no, at = retry[0], retry[1] + 1
            retry = (part_no, at)
        else:
            return False
    return all(part == (True, _ANY) for part in parts[part_no:])


@lru_cache(maxsize=8)
def _parts(pattern: str) -> list[tuple[bool, str]]:
    """Return the characters of *pattern*, each with whether it is a wildcard."""
    parts = []
    escaped = False
    for char in pattern:
        if char == "\\" and not escaped:
            escaped = True
            continue
        parts.append((not escaped and char in (_ANY, _ONE), char))
        escaped = False
    if escaped:
        parts.append((False, "\\"))
    return parts
