"""A place among the tokens of a statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ibb.pipeline.tables.row_changes import TableName

from .tokens import Token

if TYPE_CHECKING:
    from collections.abc import Sequence

_END = Token("end", "")


class UnclearError(Exception):
    """What a statement does to a table is not known for certain; the text says what of it."""


class Cursor:
    """
    Goes over *tokens*; a look never fails, a demand raises `UnclearError`.

    Args:
        tokens: of one statement or a part of it.
    """

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._next = 0

    @property
    def at_end(self) -> bool:
        """Whether nothing is left."""
        return self._next >= len(self._tokens)

    def peek(self, ahead: int = 0) -> Token:
        """Return the token that comes, or one of kind "end"."""
        index = self._next + ahead
        return self._tokens[index] if index < len(self._tokens) else _END

    def ahead(self) -> Sequence[Token]:
        """Return the tokens that come, all of them."""
        return self._tokens[self._next :]

    def take(self) -> Token:
        """Return the next token and go on."""
        token = self.peek()
        self._next += 1
        return token

    def words(self, *words: str) -> bool:
        """Pass *words* if they come, all of them."""
        if any(self.peek(ahead).word != word for ahead, word in enumerate(words)):
            return False
        self._next += len(words)
        return True

    def any_of(self, *words: str) -> str:
        """Pass one of *words* if it comes, and return it; else an empty text."""
        word = self.peek().word
        if word and word in words:
            self._next += 1
            return word
        return ""

    def sign(self, sign: str) -> bool:
        """Pass *sign* if it comes."""
        if self.peek() != Token("sign", sign):
            return False
        self._next += 1
        return True

    def name(self) -> str:
        """Take a name."""
        token = self.take()
        if not token.is_identifier:
            raise UnclearError(f"a name should stand where {token.value or 'it ends'}")
        return token.value

    def table_name(self, database: str) -> TableName:
        """Take a name of a table, of *database* where it names none."""
        first = self.name()
        if self.sign("."):
            return TableName(first, self.name())
        return TableName(database, first)

    def group(self) -> list[Token]:
        """Take what stands in the brackets that begin here, without them."""
        if not self.sign("("):
            raise UnclearError(f"( should stand where {self.peek().value or 'it ends'}")
        depth, start = 1, self._next
        while depth:
            if self.at_end:
                raise UnclearError("a ( is not closed")
            token = self.take()
            if token.kind == "sign":
                depth += {"(": 1, ")": -1}.get(token.value, 0)
        return list(self._tokens[start : self._next - 1])

    def rest(self) -> list[Token]:
        """Take everything that is left."""
        left = list(self._tokens[self._next :])
        self._next = len(self._tokens)
        return left


def split(tokens: Sequence[Token]) -> list[list[Token]]:
    """Cut *tokens* at the commas that are in no brackets."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        if token.kind == "sign":
            depth += {"(": 1, ")": -1}.get(token.value, 0)
            if token.value == "," and not depth:
                parts.append([])
                continue
        parts[-1].append(token)
    return parts
