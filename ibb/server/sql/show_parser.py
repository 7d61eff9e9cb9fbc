"""SHOW in all its forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .ast import Describe, OnTable, Show, ShowBinlogEvents, ShowFilter, TableName, Unsupported
from .expression_parser import SCOPES, ExpressionParser
from .lexer import Kind

if TYPE_CHECKING:
    from .ast import Statement

# The words behind SHOW, the name they go by, and what may follow:
# F a filter, L a LIMIT, D a database, N the name of a connection, nothing.
_SHOWS: Final[dict[tuple[str, ...], tuple[str, str]]] = {
    ("MASTER", "STATUS"): ("BINLOG STATUS", ""),
    ("BINLOG", "STATUS"): ("BINLOG STATUS", ""),
    ("BINARY", "LOGS"): ("BINARY LOGS", ""),
    ("MASTER", "LOGS"): ("BINARY LOGS", ""),
    ("BINLOG", "READERS"): ("BINLOG READERS", ""),
    ("BINLOG", "LEASES"): ("BINLOG LEASES", ""),
    ("BINLOG", "STORAGE"): ("BINLOG STORAGE", ""),
    ("SLAVE", "HOSTS"): ("REPLICA HOSTS", ""),
    ("REPLICA", "HOSTS"): ("REPLICA HOSTS", ""),
    ("SLAVE", "STATUS"): ("REPLICA STATUS", ""),
    ("REPLICA", "STATUS"): ("REPLICA STATUS", ""),
    ("ALL", "SLAVES", "STATUS"): ("ALL REPLICAS STATUS", ""),
    ("ALL", "REPLICAS", "STATUS"): ("ALL REPLICAS STATUS", ""),
    ("VARIABLES",): ("VARIABLES", "F"),
    ("STATUS",): ("STATUS", "F"),
    ("WARNINGS",): ("WARNINGS", "L"),
    ("ERRORS",): ("ERRORS", "L"),
    ("PROCESSLIST",): ("PROCESSLIST", ""),
    ("DATABASES",): ("DATABASES", "F"),
    ("SCHEMAS",): ("DATABASES", "F"),
    ("TABLES",): ("TABLES", "DF"),
    ("TABLE", "STATUS"): ("TABLE STATUS", "DF"),
    ("OPEN", "TABLES"): ("OPEN TABLES", "DF"),
    ("TRIGGERS",): ("TRIGGERS", "DF"),
    ("EVENTS",): ("EVENTS", "DF"),
    ("PACKAGE", "STATUS"): ("ROUTINES", "F"),
    ("PACKAGE", "BODY", "STATUS"): ("ROUTINES", "F"),
    ("PROCEDURE", "STATUS"): ("ROUTINES", "F"),
    ("FUNCTION", "STATUS"): ("ROUTINES", "F"),
    ("PLUGINS",): ("PLUGINS", ""),
    ("STORAGE", "ENGINES"): ("ENGINES", ""),
    ("ENGINES",): ("ENGINES", ""),
    ("COLLATION",): ("COLLATION", "F"),
    ("CHARACTER", "SET"): ("CHARACTER SET", "F"),
    ("CHARSET",): ("CHARACTER SET", "F"),
    ("PRIVILEGES",): ("PRIVILEGES", ""),
    ("PROFILES",): ("PROFILES", ""),
}
_UNSUPPORTED: Final = (
    *("ENGINE", "AUTHORS", "CONTRIBUTORS", "EXPLAIN", "ANALYZE", "PROFILE"),
    *("USER_STATISTICS", "TABLE_STATISTICS", "INDEX_STATISTICS", "CLIENT_STATISTICS"),
)
_EXPLAINED: Final = (
    *("SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "EXTENDED", "PARTITIONS", "FORMAT", "FOR"),
    *("WITH", "VALUES", "TABLE", "ANALYZE"),
)
# Words after which MariaDB complains about what follows them, not about themselves.
_FIRST_WORDS: Final = frozenset(words[0] for words in _SHOWS if len(words) > 1) | {
    *("BINLOG", "COUNT", "CREATE", "GRANTS", "FULL", "GLOBAL", "SESSION")
}


class ShowParser(ExpressionParser):
    """The parser of SHOW, behind that word."""

    def show(self) -> Statement:
        """Read what is to be shown; raises SqlError 1064."""
        if self.skip_words("BINLOG", "EVENTS"):
            return self._binlog_events()
        if self.skip_word("RELAYLOG"):
            name = self.string() if self.peek().kind is Kind.STRING else ""
            self.expect_word("EVENTS")
            self._binlog_events()
            return Show("RELAYLOG EVENTS", name=name)
        if self.skip_words("COUNT") and self.skip_sign("("):
            self.expect_sign("*")
            self.expect_sign(")")
            return Show(f"COUNT {self.expect_word('WARNINGS', 'ERRORS')}")
        if self.skip_word("GRANTS"):
            return Show("GRANTS", name=self._grantee())
        if self.skip_word("CREATE"):
            return self._create()
        if (described := self._describe()) is not None:
            return described
        scope, full = "", False
        if self.peek().is_word(*SCOPES) and self.peek(1).is_word("VARIABLES", "STATUS"):
            scope = SCOPES[self.take().text.upper()]
        if self.peek().is_word("FULL") and self.peek(1).is_word("PROCESSLIST", "TABLES"):
            self.take()
            full = True
        if self.peek().is_word("SLAVE", "REPLICA") and self.peek(2).is_word("STATUS"):
            self.take()
            name = self.string()
            self.take()
            return Show("REPLICA STATUS", name=name)
        for words, (what, behind) in _SHOWS.items():
            if self.skip_words(*words):
                if what == "REPLICA STATUS" and self.skip_words("FOR", "CHANNEL"):
                    return Show(what, name=self.string())
                return self._behind(what, behind, scope, full=full)
        if self.peek().is_word(*_UNSUPPORTED):
            what = self.take().text.upper()
            self.rest()
            return Unsupported(f"SHOW {what}")
        self.skip_word(*_FIRST_WORDS)
        raise self.error()

    def _describe(self) -> Describe | None:
        """Read COLUMNS or INDEX of a table, if it is one of them."""
        full = self.peek().is_word("FULL") and self.peek(1).is_word("COLUMNS", "FIELDS")
        if full:
            self.take()
        if not self.peek().is_word("COLUMNS", "FIELDS", "INDEX", "INDEXES", "KEYS"):
            return None
        what = "COLUMNS" if self.take().is_word("COLUMNS", "FIELDS") else "INDEX"
        self.expect_word("FROM", "IN")
        table = self.table_name()
        if self.skip_word("FROM", "IN"):
            table = TableName(self.name(), table.name)
        if what == "INDEX" and not self.peek().is_word("WHERE"):
            return Describe(what, table)
        return Describe(what, table, full, self._filter())

    def describe(self) -> Statement:
        """DESC table [column | pattern]; DESC of a statement explains it, which is not here."""
        if self.peek().is_word(*_EXPLAINED):
            self.rest()
            return Unsupported("EXPLAIN")
        table = self.table_name()
        if self.at_end():
            return Describe("COLUMNS", table)
        like = self.string() if self.peek().kind is Kind.STRING else self.name()
        return Describe("COLUMNS", table, filter=ShowFilter(like=like))

    def _behind(self, what: str, behind: str, scope: str, *, full: bool) -> Show:
        database, found, offset, limit = "", ShowFilter(), 0, None
        if "D" in behind and self.skip_word("FROM", "IN"):
            database = self.name()
        if "F" in behind:
            found = self._filter()
        if "L" in behind:
            offset, limit = self.limit()
        return Show(what, scope, full, database, found, offset, limit)

    def _filter(self) -> ShowFilter:
        if self.skip_word("LIKE"):
            return ShowFilter(like=self.string())
        if self.skip_word("WHERE"):
            self.clause = "WHERE"
            return ShowFilter(where=self.expression())
        return ShowFilter()

    def _binlog_events(self) -> ShowBinlogEvents:
        file = self.string() if self.skip_word("IN") else None
        position = self.number() if self.skip_word("FROM") else None
        offset, limit = self.limit()
        return ShowBinlogEvents(file, position, offset, limit)

    def _grantee(self) -> str:
        """Read FOR account; the own one is the empty text."""
        return self._account() if self.skip_word("FOR") else ""

    def _account(self) -> str:
        """Read an account; the own one is the empty text."""
        if self.skip_word("CURRENT_USER"):
            if self.skip_sign("("):
                self.expect_sign(")")
            return ""
        token = self.take()
        user = token.text
        host = self.take().text if self.peek().kind is Kind.USER_VARIABLE else "%"
        if not user:
            raise self.error(token)
        return f"{user}@{host}"

    def _create(self) -> Statement:
        if self.skip_word("DATABASE", "SCHEMA"):
            return Show("CREATE DATABASE", name=self.name())
        if self.skip_word("USER"):
            return Show("CREATE USER", name="" if self.at_end() else self._account())
        verb = self.expect_word("TABLE", "VIEW", "PROCEDURE", "FUNCTION", "TRIGGER", "EVENT")
        if verb in ("TABLE", "VIEW"):
            return Describe(f"CREATE {verb}", self.table_name())
        return OnTable(verb, self.table_name())

    def table_name(self) -> TableName:
        """Read a table's name, perhaps with its database."""
        name = self.name()
        return TableName(name, self.name()) if self.skip_sign(".") else TableName("", name)
