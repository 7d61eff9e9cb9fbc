"""FLUSH, behind that word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .ast import Flush, OnTable, Unsupported
from .show_parser import ShowParser

if TYPE_CHECKING:
    from .ast import Statement, TableName

# What may stand in a list; there is something to do only for HOSTS, LOGS and BINARY LOGS.
_FLUSHED: Final[tuple[tuple[str, ...], ...]] = (
    *(("BINARY", "LOGS"), ("ENGINE", "LOGS"), ("ERROR", "LOGS"), ("GENERAL", "LOGS")),
    *(("RELAY", "LOGS"), ("SLOW", "LOGS"), ("QUERY", "CACHE"), ("LOGS",), ("HOSTS",)),
    *(("PRIVILEGES",), ("STATUS",), ("SSL",), ("THREADS",), ("USER_RESOURCES",)),
    *(("DES_KEY_FILE",), ("USER_STATISTICS",), ("TABLE_STATISTICS",), ("INDEX_STATISTICS",)),
    ("CLIENT_STATISTICS",),
)
_BEFORE_LOGS: Final = frozenset(words[0] for words in _FLUSHED if len(words) > 1)


class FlushParser(ShowParser):
    """The parser of FLUSH."""

    def flush(self) -> Statement:
        """FLUSH [LOCAL | NO_WRITE_TO_BINLOG] TABLES ... | what, what, ..."""
        self.skip_word("LOCAL", "NO_WRITE_TO_BINLOG")
        if self.skip_word("TABLES", "TABLE"):
            return self._flush_tables()
        if self.peek().is_word("MASTER", "SLAVE", "REPLICA"):
            word = self.take().text.upper()
            return Unsupported(f"FLUSH {word}")
        found: list[str] = []
        domains: tuple[int, ...] | None = None
        while True:
            found.append(self._flushed())
            if found[-1] == "BINARY LOGS" and self.skip_word("DELETE_DOMAIN_ID"):
                self.expect_sign("=")
                domains = self.domains()
            if not self.skip_sign(","):
                return Flush(tuple(found), domains)

    def _flushed(self) -> str:
        for words in _FLUSHED:
            if self.skip_words(*words):
                return " ".join(words)
        self.skip_word(*_BEFORE_LOGS)
        raise self.error()

    def _flush_tables(self) -> Statement:
        tables: list[TableName] = []
        if not self.at_end() and not self.peek().is_word("WITH"):
            tables.append(self.table_name())
            while self.skip_sign(","):
                tables.append(self.table_name())
        if self.at_end():
            return OnTable("FLUSH", tables[0]) if tables else Flush(("TABLES",))
        if self.skip_word("FOR"):
            self.expect_word("EXPORT")
        else:
            for word in ("WITH", "READ", "LOCK"):
                self.expect_word(word)
        return OnTable("LOCK", tables[0]) if tables else Unsupported("FLUSH TABLES WITH READ LOCK")

    def domains(self) -> tuple[int, ...]:
        """Read numbers in parentheses, perhaps none."""
        self.expect_sign("(")
        if self.skip_sign(")"):
            return ()
        domains = [self.number()]
        while self.skip_sign(","):
            domains.append(self.number())
        self.expect_sign(")")
        return tuple(domains)
