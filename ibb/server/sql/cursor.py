"""A cursor over the tokens of statements: what every parser of SQL here is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lexer import Kind, Token, syntax_error, tokens

if TYPE_CHECKING:
    from ibb.protocol.errors import SqlError

NESTING_MAX = 32  # expressions inside each other
OPERATIONS_MAX = 200  # in one expression: a chain of them is as deep a tree


class TokenCursor:
    """
    Tokens one after the other.

    Args:
        sql: one statement or several, version comments resolved.
        prepares: `?` may stand for a value.

    Raises:
        SqlError: 1064, there is something in it that is no token.
    """

    def __init__(self, sql: str, *, prepares: bool = False) -> None:
        self.sql = sql
        self.placeholders = 0  # `?` met so far
        self._prepares = prepares
        self._begin = 0  # of the statement that is read
        self._tokens = tokens(sql)
        self._next = 0

    def peek(self, ahead: int = 0) -> Token:
        """Return the next token, or one behind it; at the end always END."""
        return self._tokens[min(self._next + ahead, len(self._tokens) - 1)]

    def take(self) -> Token:
        """Return the next token and go on behind it."""
        token = self.peek()
        if token.kind is not Kind.END:
            self._next += 1
        return token

    def error(self, token: Token | None = None) -> SqlError:
        """Return error 1064 at the next token, or at *token*."""
        return syntax_error(self.sql, (token or self.peek()).start, self._begin)

    def text_since(self, token: Token) -> str:
        """Return the statement's text from *token* to behind the last one taken."""
        return self.sql[token.start : self._tokens[self._next - 1].end]

    def at_end(self) -> bool:
        """Tell whether nothing is left but perhaps a semicolon."""
        token = self.peek()
        return token.kind is Kind.END or token.is_sign(";")

    def rest(self) -> None:
        """Go to the end of the statement."""
        while not self.at_end():
            self.take()

    def skip_word(self, *words: str) -> bool:
        """Go behind the next token if it is one of these keywords."""
        found = self.peek().is_word(*words)
        self._next += found
        return found

    def skip_words(self, *words: str) -> bool:
        """Go behind a row of keywords if all of them are next."""
        found = all(self.peek(ahead).is_word(word) for ahead, word in enumerate(words))
        self._next += len(words) * found
        return found

    def skip_sign(self, *signs: str) -> bool:
        """Go behind the next token if it is one of these signs."""
        found = any(map(self.peek().is_sign, signs))
        self._next += found
        return found

    def expect_word(self, *words: str) -> str:
        """Go behind one of these keywords and return it in upper case; raises 1064."""
        if not self.peek().is_word(*words):
            raise self.error()
        return self.take().text.upper()

    def expect_sign(self, *signs: str) -> None:
        """Go behind one of these signs; raises 1064."""
        if not self.skip_sign(*signs):
            raise self.error()

    def number(self) -> int:
        """Return a whole number; raises 1064."""
        token = self.peek()
        if token.kind is not Kind.NUMBER or not token.text.isdigit() or len(token.text) > 20:
            raise self.error()
        return int(self.take().text)

    def string(self) -> str:
        """Return a text between quotes; raises 1064."""
        if self.peek().kind is not Kind.STRING:
            raise self.error()
        return self.take().text

    def name(self) -> str:
        """Return a name, quoted or not; raises 1064."""
        if self.peek().kind not in (Kind.WORD, Kind.QUOTED):
            raise self.error()
        return self.take().text

    def limit(self) -> tuple[int, int | None]:
        """Return offset and limit of a LIMIT that may come; (0, None) without one."""
        if self.peek().is_word("OFFSET", "FETCH"):
            return self._standard_limit()
        if not self.skip_word("LIMIT"):
            return 0, None
        if self.skip_words("ROWS", "EXAMINED"):
            self.number()
            return 0, None
        first = self.number()
        if self.skip_sign(","):
            return first, self.number()
        if self.skip_word("OFFSET"):
            return self.number(), first
        return 0, first

    def _standard_limit(self) -> tuple[int, int | None]:
        """Read what standard SQL has for LIMIT: [OFFSET n ROWS] [FETCH FIRST n ROWS ONLY]."""
        offset, limit = 0, None
        if self.skip_word("OFFSET"):
            offset = self.number()
            self.expect_word("ROW", "ROWS")
        if self.skip_word("FETCH"):
            self.expect_word("FIRST", "NEXT")
            limit = 1 if self.peek().is_word("ROW", "ROWS") else self.number()
            self.expect_word("ROW", "ROWS")
            self.expect_word("ONLY")
        return offset, limit
