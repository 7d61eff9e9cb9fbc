"""The tokens of a statement, as the server that wrote it saw them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.pipeline.tables.errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Iterator

STATEMENT_CHARACTERS_MAX: Final = 16 << 20

_TOKEN: Final = re.compile(
    r"""
    (?P<space>\s+|--(?=\s|$)[^\n]*|\#[^\n]*)
  | (?P<open>/\*M?!\d*)
  | (?P<close>\*/)
  | (?P<comment>/\*.*?\*/)
  | (?P<name>`(?:[^`]|``)*`)
  | (?P<text>[nN]?'(?:[^'\\]|''|\\.)*')
  | (?P<double>"(?:[^"\\]|""|\\.)*")
  | (?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?(?![\w$]))
  | (?P<word>[\w$]+|@+[\w$.]*)
  | (?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(.)|''|\"\"", re.DOTALL)
_ESCAPED: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


class Token(NamedTuple):
    """
    One token.

    Args:
        kind: "word", "name" (quoted), "text", "number" or "sign".
        value: without quotes and escapes; words as they are written.
    """

    kind: str
    value: str

    @property
    def word(self) -> str:
        """The word in capitals; empty for what is no plain word."""
        return self.value.upper() if self.kind == "word" else ""

    @property
    def is_identifier(self) -> bool:
        """Whether it can be a name."""
        return self.kind in ("word", "name")


def tokens_of(sql: str, *, ansi_quotes: bool = False) -> list[Token]:
    """
    Cut *sql* into tokens; comments are left out, but for those that a server executes.

    Args:
        sql: one statement.
        ansi_quotes: whether `"x"` is a name, by the sql_mode of the statement.

    Raises:
        PipelineError: it is longer than `STATEMENT_CHARACTERS_MAX`.
    """
    if len(sql) > STATEMENT_CHARACTERS_MAX:
        raise PipelineError(f"a statement of {len(sql)} characters is too long to be followed")
    return list(_tokens(sql, ansi_quotes))


def _tokens(sql: str, ansi_quotes: bool) -> Iterator[Token]:
    for match in _TOKEN.finditer(sql):
        kind, text = match.lastgroup or "", match[0]
        if kind in ("space", "open", "close", "comment"):
            continue
        if kind == "name":
            yield Token(kind, text[1:-1].replace("``", "`"))
        elif kind == "double" and ansi_quotes:
            yield Token("name", text[1:-1].replace('""', '"'))
        elif kind in ("text", "double"):
            yield Token("text", _ESCAPE.sub(_unescaped, text.lstrip("nN")[1:-1]))
        else:
            yield Token(kind, text)


def _unescaped(match: re.Match[str]) -> str:
    if match[1] is None:
        return match[0][0]
    if match[1] in "%_":
        return match[0]  # for LIKE; the server leaves the backslash in any text
    return _ESCAPED.get(match[1], match[1])
