"""Statements about the session: transactions, and statements prepared by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .sql_admin_parser import AdminParser
from .sql_ast import Deallocate, Execute, Prepare, Transaction

if TYPE_CHECKING:
    from .sql_ast import Statement


class SessionParser(AdminParser):
    """The parser of these, each behind its first word."""

    # Transactions

    def begin(self) -> Transaction:
        """BEGIN [WORK]."""
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
        """EXECUTE name [USING values]."""
        name = self.name()
        return Execute(name, self.expressions() if self.skip_word("USING") else ())

    def deallocate(self) -> Deallocate:
        """DEALLOCATE PREPARE name."""
        self.expect_word("PREPARE")
        return Deallocate(self.name())
