"""Statements that administer the binlog, its readers, and the relay's upstream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .ast import (
    ChangeMaster,
    CreateLease,
    DropLease,
    Flush,
    Kill,
    Purge,
    ReplicaCommand,
    ResetMaster,
)
from .flush_parser import FlushParser
from .lexer import Kind

if TYPE_CHECKING:
    from .ast import Statement

_NUMBERS: Final = frozenset(
    {
        *("MASTER_PORT", "MASTER_CONNECT_RETRY", "MASTER_LOG_POS", "RELAY_LOG_POS"),
        *("MASTER_DELAY", "MASTER_SSL", "MASTER_SSL_VERIFY_SERVER_CERT"),
        *("MASTER_DEMOTE_TO_SLAVE",),
    }
)
_TEXTS: Final = frozenset(
    {
        *("MASTER_HOST", "MASTER_USER", "MASTER_PASSWORD", "MASTER_LOG_FILE", "RELAY_LOG_FILE"),
        *("MASTER_SSL_CA", "MASTER_SSL_CAPATH", "MASTER_SSL_CERT", "MASTER_SSL_CIPHER"),
        *("MASTER_SSL_KEY", "MASTER_SSL_CRL", "MASTER_SSL_CRLPATH", "MASTER_HEARTBEAT_PERIOD"),
    }
)
_GTID_MODES: Final = ("NO", "SLAVE_POS", "REPLICA_POS", "CURRENT_POS")


class AdminParser(FlushParser):
    """The parser of administrative statements, each behind its first word."""

    def kill(self) -> Kill:
        """KILL [HARD | SOFT] [CONNECTION | QUERY [ID]] id, or USER name."""
        self.skip_word("HARD", "SOFT")
        query_only = self.skip_word("QUERY")
        if not query_only:
            self.skip_word("CONNECTION")
        if self.skip_word("USER"):
            user = self.take()
            if user.kind not in (Kind.WORD, Kind.STRING, Kind.QUOTED):
                raise self.error(user)
            if self.peek().kind is Kind.USER_VARIABLE:
                self.take()
            return Kill(query_only, None, user=user.text)
        query_id = query_only and self.skip_word("ID")
        self.clause = "KILL"
        return Kill(query_only, self.expression(), query_id=query_id)

    def purge(self) -> Purge:
        """PURGE BINARY LOGS TO name | BEFORE moment."""
        self.expect_word("BINARY", "MASTER")
        self.expect_word("LOGS")
        if self.expect_word("TO", "BEFORE") == "TO":
            return Purge(to=self.string())
        self.clause = "PURGE LOGS"
        return Purge(before=self.expression())

    def reset(self) -> Statement:
        """RESET MASTER [TO n] | SLAVE [name] [ALL] | QUERY CACHE."""
        if self.skip_words("QUERY", "CACHE"):
            return Flush(("QUERY CACHE",))
        if self.expect_word("MASTER", "SLAVE", "REPLICA") == "MASTER":
            return ResetMaster(self.number() if self.skip_word("TO") else None)
        name = self.string() if self.peek().kind is Kind.STRING else ""
        return ReplicaCommand("RESET", name, self.skip_word("ALL"))

    def replica_command(self, action: str) -> ReplicaCommand:
        """START or STOP of SLAVE, behind that word."""
        if self.skip_word("ALL"):
            self.expect_word("SLAVES", "REPLICAS")
            return ReplicaCommand(action, every=True)
        self.expect_word("SLAVE", "REPLICA")
        name = self.string() if self.peek().kind is Kind.STRING else ""
        while self.skip_word("IO_THREAD", "SQL_THREAD") and self.skip_sign(","):
            pass
        until = None
        if action == "START" and self.skip_word("UNTIL"):
            self.expect_word("MASTER_GTID_POS")
            self.expect_sign("=")
            until = self.string()
        if self.skip_words("FOR", "CHANNEL"):
            name = self.string()
        return ReplicaCommand(action, name, until=until)

    def change_master(self) -> ChangeMaster:
        """CHANGE MASTER [name] TO option = value, ..."""
        self.expect_word("MASTER")
        name = self.string() if self.peek().kind is Kind.STRING else ""
        self.expect_word("TO")
        options = [self._master_option()]
        while self.skip_sign(","):
            options.append(self._master_option())
        return ChangeMaster(tuple(options), name)

    def _master_option(self) -> tuple[str, str | int]:
        name = self.expect_word(
            *_NUMBERS, *_TEXTS, "MASTER_USE_GTID", "IGNORE_SERVER_IDS", "IGNORE_DOMAIN_IDS"
        )
        self.expect_sign("=")
        if name == "MASTER_USE_GTID":
            return name, self.expect_word(*_GTID_MODES)
        if name.startswith("IGNORE_"):
            return name, ",".join(map(str, self.domains()))
        if name in _NUMBERS:
            return name, self.number()
        if name == "MASTER_HEARTBEAT_PERIOD":
            number = self.take()
            if number.kind is not Kind.NUMBER:
                raise self.error(number)
            return name, number.text
        return name, self.string()

    def create_lease(self, *, replace: bool) -> CreateLease:
        """CREATE [OR REPLACE] BINLOG LEASE, behind those words."""
        name = self._lease_name()
        self.expect_word("FOR")
        position = self.expression()
        if not self.skip_word("EXPIRE"):
            return CreateLease(name, position, replace)
        if self.skip_word("NEVER"):
            return CreateLease(name, position, replace, never=True)
        return CreateLease(name, position, replace, age_limit=self.expression())

    def drop_lease(self) -> DropLease:
        """DROP BINLOG LEASE, behind those words."""
        if_exists = self.skip_word("IF")
        if if_exists:
            self.expect_word("EXISTS")
        return DropLease(self._lease_name(), if_exists)

    def _lease_name(self) -> str:
        return self.string() if self.peek().kind is Kind.STRING else self.name()
