"""
From the text of a statement to what it asks for.

Only what replicas, tools and connectors send a primary is known; the rest is MariaDB's syntax
error 1064. Source: dump-protocol 2 and 9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ibb.protocol.error_codes import EMPTY_QUERY

from .sql_ast import (
    Assignment,
    Call,
    Kill,
    Literal,
    NameFilter,
    NoOperation,
    Select,
    Set,
    SetNames,
    Show,
    ShowStatus,
    ShowVariables,
    SystemVariableName,
    UserVariable,
)
from .sql_lexer import Kind, Token, syntax_error, tokens

if TYPE_CHECKING:
    from collections.abc import Callable

    from .sql_ast import Expression, Statement
    from .variables import Value


# SHOW statements without arguments: the words behind SHOW, and the name they go by.
_SHOWS: Final = {
    ("MASTER", "STATUS"): "BINLOG STATUS",
    ("BINLOG", "STATUS"): "BINLOG STATUS",
    ("BINARY", "LOGS"): "BINARY LOGS",
    ("MASTER", "LOGS"): "BINARY LOGS",
    ("SLAVE", "HOSTS"): "REPLICA HOSTS",
    ("REPLICA", "HOSTS"): "REPLICA HOSTS",
    ("SLAVE", "STATUS"): "REPLICA STATUS",
    ("REPLICA", "STATUS"): "REPLICA STATUS",
    ("WARNINGS",): "WARNINGS",
    ("ERRORS",): "WARNINGS",
    ("DATABASES",): "DATABASES",
    ("SCHEMAS",): "DATABASES",
}
_NO_OPERATIONS: Final = frozenset({"BEGIN", "COMMIT", "ROLLBACK", "START", "USE"})
_SCOPES: Final = {"GLOBAL": "GLOBAL", "SESSION": "SESSION", "LOCAL": "SESSION"}
_WORD_VALUES: Final[dict[str, Value]] = {"NULL": None, "TRUE": 1, "FALSE": 0}


def parse_statement(sql: str) -> Statement:
    """
    Return what *sql* asks for.

    Raises:
        SqlError: 1064 not understood, 1065 nothing but blanks and comments.
    """
    parser = _Parser(sql)
    if parser.peek().kind is Kind.END:
        raise EMPTY_QUERY.error()
    statement = parser.statement()
    parser.skip_sign(";")
    if parser.peek().kind is not Kind.END:
        raise parser.error()
    return statement


class _Parser:
    """A cursor over the tokens of one statement, and a method for each thing that may come."""

    def __init__(self, sql: str) -> None:
        self._sql = sql
        self._tokens = tokens(sql)
        self._next = 0

    def peek(self) -> Token:
        return self._tokens[self._next]

    def error(self) -> Exception:
        return syntax_error(self._sql, self.peek().start)

    def take(self) -> Token:
        token = self.peek()
        if token.kind is not Kind.END:
            self._next += 1
        return token

    def skip_word(self, *words: str) -> bool:
        found = self.peek().is_word(*words)
        self._next += found
        return found

    def skip_sign(self, *signs: str) -> bool:
        found = any(map(self.peek().is_sign, signs))
        self._next += found
        return found

    def expect_word(self, *words: str) -> None:
        if not self.skip_word(*words):
            raise self.error()

    def expect_sign(self, *signs: str) -> None:
        if not self.skip_sign(*signs):
            raise self.error()

    def number(self) -> int:
        if self.peek().kind is not Kind.NUMBER or not self.peek().text.isdigit():
            raise self.error()
        return int(self.take().text)

    def statement(self) -> Statement:
        starts: dict[str, Callable[[], Statement]] = {
            "SELECT": self._select,
            "SET": self._set,
            "SHOW": self._show,
            "KILL": self._kill,
        }
        for word, parse in starts.items():
            if self.skip_word(word):
                return parse()
        if self.peek().is_word(*_NO_OPERATIONS):
            return self._no_operation()
        raise self.error()

    def _select(self) -> Select:
        columns = [self._column()]
        while self.skip_sign(","):
            columns.append(self._column())
        if self.skip_word("FROM"):
            self.expect_word("DUAL")
        limit = None
        if self.skip_word("LIMIT"):
            limit = self.number()
            if self.skip_sign(","):
                limit = 0 if limit else self.number()
        return Select(tuple(columns), limit)

    def _column(self) -> tuple[str, Expression]:
        start = self.peek().start
        expression = self._expression()
        name = self._sql[start : self._tokens[self._next - 1].end]
        has_as = self.skip_word("AS")
        if self.peek().kind in (Kind.QUOTED, Kind.STRING) or (
            self.peek().kind is Kind.WORD and not self.peek().is_word("LIMIT", "FROM")
        ):
            name = self.take().text
        elif has_as:
            raise self.error()
        return name, expression

    def _expression(self) -> Expression:
        token = self.peek()
        if token.kind is Kind.NUMBER or token.is_sign("-"):
            return Literal(self._signed_number())
        self._next += token.kind is not Kind.END
        if token.kind is Kind.STRING:
            return Literal(token.text)
        if token.kind is Kind.USER_VARIABLE:
            return UserVariable(token.text)
        if token.kind is Kind.SYSTEM_VARIABLE:
            return self._system_variable(token)
        if token.kind is Kind.WORD:
            if self.skip_sign("("):
                return Call(token.text.upper(), self._arguments())
            if token.text.upper() == "CURRENT_USER":
                return Call("CURRENT_USER", ())
            if token.text.upper() in _WORD_VALUES:
                return Literal(_WORD_VALUES[token.text.upper()])
        raise syntax_error(self._sql, token.start)

    def _arguments(self) -> tuple[Expression, ...]:
        if self.skip_sign(")"):
            return ()
        arguments = [self._expression()]
        while self.skip_sign(","):
            arguments.append(self._expression())
        self.expect_sign(")")
        return tuple(arguments)

    def _signed_number(self) -> Value:
        sign = "-" if self.skip_sign("-") else ""
        if self.peek().kind is not Kind.NUMBER:
            raise self.error()
        text = sign + self.take().text
        return text if "." in text else int(text)

    def _system_variable(self, token: Token) -> SystemVariableName:
        scope, dot, name = token.text.rpartition(".")
        if not dot:
            return SystemVariableName("", token.text)
        known = _SCOPES.get(scope.upper())
        if known is None:
            raise syntax_error(self._sql, token.start)
        return SystemVariableName(known, name)

    def _set(self) -> Set:
        if self.skip_word("TRANSACTION") or (
            self.peek().is_word(*_SCOPES) and self._tokens[self._next + 1].is_word("TRANSACTION")
        ):
            self._rest()
            return Set(())
        parts = [self._set_part()]
        while self.skip_sign(","):
            parts.append(self._set_part())
        return Set(tuple(parts))

    def _set_part(self) -> Assignment | SetNames:
        if self.skip_word("NAMES", "CHARSET"):
            return self._set_names()
        if self.peek().is_word("CHARACTER"):
            self.take()
            self.expect_word("SET")
            return self._set_names()
        target = self._target()
        self.expect_sign("=", ":=")
        return Assignment(target, self._value())

    def _set_names(self) -> SetNames:
        charset = self.take()
        if charset.kind not in (Kind.WORD, Kind.STRING, Kind.QUOTED):
            raise syntax_error(self._sql, charset.start)
        if self.skip_word("COLLATE") and self.take().kind not in (Kind.WORD, Kind.STRING):
            raise self.error()
        return SetNames("utf8mb4" if charset.is_word("DEFAULT") else charset.text)

    def _target(self) -> UserVariable | SystemVariableName:
        token = self.take()
        if token.kind is Kind.USER_VARIABLE:
            return UserVariable(token.text)
        if token.kind is Kind.SYSTEM_VARIABLE:
            return self._system_variable(token)
        if token.is_word(*_SCOPES) and self.peek().kind in (Kind.WORD, Kind.QUOTED):
            return SystemVariableName(_SCOPES[token.text.upper()], self.take().text)
        if token.kind in (Kind.WORD, Kind.QUOTED):
            return SystemVariableName("SESSION", token.text)
        raise syntax_error(self._sql, token.start)

    def _value(self) -> Expression:
        """Read what may stand behind `=` in SET, where a bare word is a text."""
        word, behind = self.peek(), self._tokens[min(self._next + 1, len(self._tokens) - 1)]
        if (
            word.kind is Kind.WORD
            and not behind.is_sign("(")
            and word.text.upper() not in _WORD_VALUES
        ):
            return Literal(self.take().text)
        return self._expression()

    def _show(self) -> Statement:
        is_global = False
        if self.peek().is_word(*_SCOPES):
            is_global = self.take().is_word("GLOBAL")
            if not self.peek().is_word("VARIABLES", "STATUS"):
                raise self.error()
        if self.skip_word("VARIABLES"):
            return ShowVariables(is_global, self._name_filter())
        if self.skip_word("STATUS"):
            return ShowStatus(self._name_filter())
        for words, name in _SHOWS.items():
            following = self._tokens[self._next : self._next + len(words)]
            if len(following) == len(words) and all(
                token.is_word(word) for token, word in zip(following, words, strict=True)
            ):
                self._next += len(words)
                return Show(name)
        # MariaDB complains about the first word that fits no SHOW
        self.skip_word("BINARY", "BINLOG", "MASTER", "SLAVE", "REPLICA")
        raise self.error()

    def _name_filter(self) -> NameFilter:
        if self.skip_word("LIKE"):
            return NameFilter(patterns=(self._string(),))
        if not self.skip_word("WHERE"):
            return NameFilter()
        patterns: list[str] = []
        names: list[str] = []
        while True:
            column = self.take()
            if column.text.lower() != "variable_name":
                raise syntax_error(self._sql, column.start)
            if self.skip_word("LIKE"):
                patterns.append(self._string())
            elif self.skip_sign("="):
                names.append(self._string())
            else:
                self.expect_word("IN")
                self.expect_sign("(")
                names.append(self._string())
                while self.skip_sign(","):
                    names.append(self._string())
                self.expect_sign(")")
            if not self.skip_word("OR"):
                return NameFilter(tuple(patterns), tuple(names))

    def _string(self) -> str:
        if self.peek().kind is not Kind.STRING:
            raise self.error()
        return self.take().text

    def _kill(self) -> Kill:
        self.skip_word("HARD", "SOFT")
        self.skip_word("CONNECTION", "QUERY")
        return Kill(self.number())

    def _no_operation(self) -> NoOperation:
        return NoOperation(self._rest())

    def _rest(self) -> tuple[str, ...]:
        words = []
        while self.peek().kind is not Kind.END and not self.peek().is_sign(";"):
            words.append(self.take().text)
        return tuple(words)
