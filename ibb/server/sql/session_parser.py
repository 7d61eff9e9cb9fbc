"""Statements about the session: SET, transactions, and statements prepared by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ibb.protocol.error_codes import NOT_SUPPORTED_YET

from .admin_parser import AdminParser
from .ast import (
    Assignment,
    Deallocate,
    Execute,
    Nothing,
    Prepare,
    Set,
    SetNames,
    SetTransaction,
    Transaction,
    Unsupported,
)
from .expression_parser import SCOPES
from .expressions import Literal, SystemVariableName, UserVariable
from .lexer import Kind
from .types import Typed, text_type

if TYPE_CHECKING:
    from .ast import Statement
    from .expressions import Expression

_NO_SETS: Final = ("STATEMENT", "PASSWORD", "ROLE", "DEFAULT")
_LEVELS: Final = ("READ COMMITTED", "READ UNCOMMITTED", "REPEATABLE READ", "SERIALIZABLE")
_WORD_VALUES: Final = frozenset({"NULL", "TRUE", "FALSE", "CASE", "CAST", "CONVERT", "NOT"})


class SessionParser(AdminParser):
    """The parser of these, each behind its first word."""

    # SET

    def set(self) -> Statement:
        """SET of variables, of the character set, or of the next transaction."""
        if self.peek().is_word(*_NO_SETS):
            what = self.take().text.upper()
            if what == "ROLE" and self.skip_word("NONE"):
                return Nothing()
            self.rest()
            return Unsupported(f"SET {what}")
        self.clause = "SET"
        parts, scope = [], "SESSION"
        while True:
            if self.peek().is_word(*SCOPES) and self.peek(1).kind in (Kind.WORD, Kind.QUOTED):
                scope = SCOPES[self.peek().text.upper()]  # also for those behind it without one
            parts.append(self._set_part(scope))
            if not self.skip_sign(","):
                return Set(tuple(parts))

    def _set_part(self, scope: str) -> Assignment | SetNames | SetTransaction:
        if self.peek().is_word("TRANSACTION") or (
            self.peek().is_word(*SCOPES) and self.peek(1).is_word("TRANSACTION")
        ):
            return self._set_transaction()
        if self.skip_word("NAMES"):
            return self._set_names()
        if self.skip_word("CHARSET") or self.skip_words("CHARACTER", "SET"):
            return SetNames(self._charset(), literals=False)
        target = self._target(scope)
        self.expect_sign("=", ":=")
        return Assignment(target, self._set_value())

    def _set_transaction(self) -> SetTransaction:
        scope = "" if self.peek().is_word("TRANSACTION") else SCOPES[self.take().text.upper()]
        self.take()
        values = []
        while True:
            if self.skip_words("ISOLATION", "LEVEL"):
                level = next((one for one in _LEVELS if self.skip_words(*one.split())), None)
                if level is None:
                    raise self.error()
                values.append(("tx_isolation", level.replace(" ", "-")))
            else:
                self.expect_word("READ")
                read_only = self.expect_word("ONLY", "WRITE") == "ONLY"
                values.append(("tx_read_only", str(int(read_only))))
            if not self.skip_sign(","):
                return SetTransaction(scope, tuple(values))

    def _set_names(self) -> SetNames:
        charset = self._charset()
        collation = ""
        if self.skip_word("COLLATE"):
            token = self.take()
            if token.kind not in (Kind.WORD, Kind.STRING, Kind.QUOTED):
                raise self.error(token)
            collation = token.text
        return SetNames(charset, collation)

    def _charset(self) -> str:
        """Return the name of a character set, empty for DEFAULT."""
        token = self.take()
        if token.kind not in (Kind.WORD, Kind.STRING, Kind.QUOTED):
            raise self.error(token)
        return "" if token.is_word("DEFAULT") else token.text

    def _target(self, scope: str) -> UserVariable | SystemVariableName:
        token = self.take()
        if token.kind is Kind.USER_VARIABLE:
            return UserVariable(token.text)
        if token.kind is Kind.SYSTEM_VARIABLE:
            return self.system_variable(token)
        if token.is_word(*SCOPES) and self.peek().kind in (Kind.WORD, Kind.QUOTED):
            return SystemVariableName(scope, self.take().text)
        if token.kind in (Kind.WORD, Kind.QUOTED):
            return SystemVariableName(scope, token.text)
        raise self.error(token)

    def _set_value(self) -> Expression | None:
        """Read what may stand behind `=`, where a bare word is a text."""
        word, behind = self.peek(), self.peek(1)
        if word.is_word("DEFAULT"):
            self.take()
            return None
        bare = word.kind is Kind.WORD and (
            behind.kind is Kind.END or behind.is_sign(",") or behind.is_sign(";")
        )
        if bare and word.text.upper() not in _WORD_VALUES:
            text = self.take().text
            return Literal(Typed(text, text_type(len(text), nullable=False)))
        return self.expression()

    # Transactions

    def begin(self) -> Transaction:
        """BEGIN [WORK]; a block of statements is not here."""
        if self.skip_words("NOT", "ATOMIC"):
            raise NOT_SUPPORTED_YET.error("BEGIN NOT ATOMIC")
        self.skip_word("WORK")
        return Transaction("BEGIN")

    def start(self) -> Statement:
        """START TRANSACTION, or START SLAVE."""
        if not self.skip_word("TRANSACTION"):
            return self.replica_command("START")
        read_only = False
        if not self.at_end():
            while True:
                if self.skip_word("READ"):
                    read_only = self.expect_word("ONLY", "WRITE") == "ONLY"
                else:
                    for word in ("WITH", "CONSISTENT", "SNAPSHOT"):
                        self.expect_word(word)
                if not self.skip_sign(","):
                    break
        return Transaction("BEGIN", read_only=read_only)

    def end(self) -> Transaction:
        """The rest of COMMIT or ROLLBACK."""
        self.skip_word("WORK")
        chain = False
        if self.skip_word("AND"):
            chain = not self.skip_word("NO")
            self.expect_word("CHAIN")
        if self.skip_word("NO"):
            self.expect_word("RELEASE")
        return Transaction("END", chain=chain)

    def rollback(self) -> Transaction:
        """ROLLBACK, perhaps TO a savepoint."""
        self.skip_word("WORK")
        if self.skip_word("TO"):
            self.skip_word("SAVEPOINT")
            return Transaction("ROLLBACK TO", self.name())
        return self.end()

    def release(self) -> Transaction:
        """RELEASE SAVEPOINT."""
        self.expect_word("SAVEPOINT")
        return Transaction("RELEASE", self.name())

    # Prepared statements by name

    def prepare(self) -> Prepare:
        """PREPARE name FROM text."""
        name = self.name()
        self.expect_word("FROM")
        return Prepare(name, self.expression())

    def execute(self) -> Execute:
        """EXECUTE name | IMMEDIATE text [USING values]."""
        text = None
        name = self.name()
        if name.upper() == "IMMEDIATE" and not (self.at_end() or self.peek().is_word("USING")):
            text = self.expression()
        return Execute(name, self.expressions() if self.skip_word("USING") else (), text)

    def deallocate(self) -> Deallocate:
        """DEALLOCATE PREPARE name."""
        self.expect_word("PREPARE")
        return Deallocate(self.name())
