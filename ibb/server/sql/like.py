r"""SQL's LIKE: `%` any characters, `_` exactly one, `\` before a character for itself."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

PATTERN_CHARS_MAX: Final = 4096
_ANY: Final = "%"
_ONE: Final = "_"
_ESCAPE: Final = "\\"


class _Piece(NamedTuple):
    """What stands between two `%`: its length, and what finds the next place where it fits."""

    length: int
    find: Callable[[str, int], int]


def is_like(text: str, pattern: str, *, exact: bool = False) -> bool:
    """
    Tell whether the whole of *text* matches *pattern*, in upper or lower case unless *exact*.

    Takes at most len(text) * len(pattern) steps: patterns come from clients, who are told when
    one is longer than `PATTERN_CHARS_MAX`.
    """
    assert len(pattern) <= PATTERN_CHARS_MAX
    first, *others = _pieces(pattern if exact else pattern.lower())
    text = text if exact else text.lower()
    if first.find(text, 0) != 0:
        return False
    at = first.length
    if not others:
        return at == len(text)
    *middle, last = others
    for piece in middle:  # where each fits first leaves most to those behind it
        found = piece.find(text, at)
        if found < 0:
            return False
        at = found + piece.length
    end = len(text) - last.length
    return end >= at and last.find(text, end) == end


@lru_cache(maxsize=8)
def _pieces(pattern: str) -> list[_Piece]:
    """Return what *pattern* has before, between and behind its `%`."""
    pieces: list[list[str | None]] = [[]]  # None: any character
    chars = iter(pattern)
    for char in chars:
        if char == _ANY:
            pieces.append([])
        else:
            literal = next(chars, _ESCAPE) if char == _ESCAPE else char
            pieces[-1].append(None if char == _ONE else literal)
    return [_piece(chars) for chars in pieces]


def _piece(chars: list[str | None]) -> _Piece:
    literal = "".join(char for char in chars if char is not None)
    if len(literal) == len(chars):
        return _Piece(len(chars), lambda text, at: text.find(literal, at))
    sought = "".join("." if char is None else re.escape(char) for char in chars)
    expression = re.compile(sought, re.DOTALL)

    def find(text: str, at: int) -> int:
        match = expression.search(text, at)
        return -1 if match is None else match.start()

    return _Piece(len(chars), find)
