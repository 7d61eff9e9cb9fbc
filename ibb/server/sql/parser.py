"""
From the text of a statement to what it asks for.

What replicas, tools, connectors and administrators send a primary is known. What else MariaDB knows
is error 1235, as far as its first words tell; the rest is the syntax error 1064, quoting the place
where MariaDB would stop. Source: dump-protocol 2 and 9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.character_sets import BYTE_OF_NONE, readable
from ibb.protocol.error_codes import EMPTY_QUERY, NOT_SUPPORTED_YET

from .ast import Do, Nothing, OnTable, Select, TableName, Transaction, Unsupported, Use
from .expressions import ColumnName, Literal, Star
from .lexer import NULL_SIGN, Kind, uncommented
from .session_parser import SessionParser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .ast import Statement
    from .expressions import Expression

_BEHIND_COLUMNS: Final = (
    *("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "INTO", "FOR", "PROCEDURE"),
    *("EXCEPT", "INTERSECT", "LOCK", "OFFSET", "FETCH"),
)
_NAME_BYTES_MAX: Final = 255
_FIRST_OF_FOUR_BYTES: Final = "\U00010000"
# Statements on tables: the words that lead to the table's name.
_TABLE_STATEMENTS: Final[tuple[tuple[str, ...], ...]] = (
    ("INSERT", "INTO"),
    ("INSERT", "IGNORE", "INTO"),
    ("REPLACE", "INTO"),
    ("UPDATE",),
    ("DELETE", "FROM"),
    ("TRUNCATE", "TABLE"),
    ("TRUNCATE",),
    ("ALTER", "TABLE"),
    ("DROP", "TABLE"),
    ("CREATE", "TABLE"),
    ("LOCK", "TABLES"),
    ("CALL",),
)
_DATA_DEFINITION: Final = (
    "CREATE",
    "DROP",
    "ALTER",
    "RENAME",
    "GRANT",
    "REVOKE",
    "LOAD",
    "OPTIMIZE",
)
_NO_PLACE: Final = (
    *_DATA_DEFINITION,
    "ANALYZE",
    "CHECK",
    "CHECKSUM",
    "REPAIR",
    "XA",
    "INSTALL",
    "UNINSTALL",
    "HANDLER",
    "SHUTDOWN",
    "BACKUP",
    "WITH",
    "HELP",
    "VALUES",
    "BINLOG",
    "SIGNAL",
    "RESIGNAL",
    "GET",
    "MERGE",
)
# Words behind SELECT that change nothing here.
_MODIFIERS: Final = (
    *("SQL_NO_CACHE", "SQL_CACHE", "ALL", "STRAIGHT_JOIN", "SQL_CALC_FOUND_ROWS"),
    *("HIGH_PRIORITY", "SQL_BUFFER_RESULT", "SQL_SMALL_RESULT", "SQL_BIG_RESULT"),
)
# Parts of SELECT that need tables.
_JOINS: Final = ("JOIN", "INNER", "LEFT", "RIGHT", "CROSS", "NATURAL", "STRAIGHT_JOIN")
_NO_CLAUSES: Final = (
    *("GROUP", "HAVING", "UNION", "EXCEPT", "INTERSECT", "INTO", "PROCEDURE", "WINDOW", "LOCK"),
    *_JOINS,
)


class Parsed(NamedTuple):
    """
    A statement.

    Attributes:
        statement: what it asks for.
        text: its part of the text, without the semicolon.
        tokens: how many it has.
        placeholders: how many it has.
        more: another one follows.
    """

    statement: Statement
    text: str
    tokens: int
    placeholders: int
    more: bool


def parse_statement(sql: str) -> Statement:
    """
    Return what *sql* asks for, one statement without placeholders.

    Raises:
        SqlError: 1064 not understood, 1065 nothing but blanks.
    """
    return _Parser(uncommented(sql)).whole(several=False).statement


def parse_prepared(sql: str) -> Parsed:
    """Return what *sql* asks for, one statement with or without placeholders; raises as above."""
    return _Parser(uncommented(sql), prepares=True).whole(several=False)


def parse_statements(sql: str, *, several: bool) -> Iterator[Parsed]:
    """
    Yield what *sql* asks for, each statement read when it is wanted, and the text cut but once.

    Raises:
        SqlError: 1064 not understood, or a second statement without *several*; 1065 nothing but
            blanks.
    """
    parser = _Parser(uncommented(sql))
    while True:
        parsed = parser.whole(several=several)
        yield parsed
        if not parsed.more:
            return


class _Parser(SessionParser):
    """The parser of statements, one behind the other."""

    def whole(self, *, several: bool) -> Parsed:
        """Read the next statement and its semicolon."""
        first = self.peek()
        if first.kind is Kind.END and self.sql.strip():
            return Parsed(Nothing(), self.sql, 0, 0, more=False)  # a comment
        if first.kind is Kind.END or (first.is_sign(";") and self.peek(1).kind is Kind.END):
            raise EMPTY_QUERY.error()
        self.clause = SessionParser.clause
        before = self._next
        try:
            statement = self._statement()
        except RecursionError:
            raise self.error() from None
        if not self.at_end():
            raise self.error()
        text = self.sql[self._begin : self.peek().start].rstrip()
        count = self._next - before
        more = self.skip_sign(";") and self._more()
        if more and not several:
            raise self.error()
        self._begin = self.peek().start
        return Parsed(statement, text, count, self.placeholders, more)

    def _more(self) -> bool:
        """Tell whether something follows that is no blank or semicolon."""
        token = self.peek()
        if not token.is_sign(";"):
            return token.kind is not Kind.END
        return bool(self.sql[token.start :].strip("; \t\r\n"))

    def _statement(self) -> Statement:
        first = self.peek()
        parse = _STARTS.get(first.text.upper()) if first.kind is Kind.WORD else None
        if parse is not None:
            self.take()
            return parse(self)
        if self.skip_words("UNLOCK", "TABLES"):
            return Nothing()
        if first.is_word("DROP") and self.peek(1).is_word("PREPARE"):
            self.take()
            return self.deallocate()
        return self._lease() or self._on_table() or self._no_place()

    def _lease(self) -> Statement | None:
        """Read a statement about a lease, if it is one."""
        if self.skip_words("CREATE", "BINLOG", "LEASE"):
            return self.create_lease(replace=False)
        if self.skip_words("CREATE", "OR", "REPLACE", "BINLOG", "LEASE"):
            return self.create_lease(replace=True)
        return self.drop_lease() if self.skip_words("DROP", "BINLOG", "LEASE") else None

    def _on_table(self) -> Statement | None:
        """Read a statement about a table as far as the table's name, if it is one."""
        for words in _TABLE_STATEMENTS:
            if not self.skip_words(*words):
                continue
            if self.skip_words("IF", "EXISTS"):
                self.rest()
                return Unsupported(" ".join((*words, "IF EXISTS")))
            self.skip_words("IF", "NOT", "EXISTS")
            table = self.table_name()
            if not self.at_end() or words[0] not in ("INSERT", "UPDATE", "ALTER", "CREATE"):
                self.rest()
                return OnTable(words[0], table)
            raise self.error()
        return None

    def _no_place(self) -> Unsupported:
        token = self.peek()
        if token.is_sign("(") and self.peek(1).is_word("SELECT"):
            raise NOT_SUPPORTED_YET.error("(SELECT ...)")
        if not token.is_word(*_NO_PLACE):
            raise self.error()
        self.rest()
        return Unsupported(token.text.upper())

    # SELECT

    def select(self) -> Select:
        """SELECT, of a table or without one."""
        distinct = self.skip_word("DISTINCT", "DISTINCTROW")
        while self.skip_word(*_MODIFIERS):
            pass
        columns = [self._column_or_star()]
        while self.skip_sign(","):
            columns.append(self._column_or_star())
        table, where, order = None, None, []
        if self.skip_word("FROM") and not self.skip_word("DUAL"):
            table = self._source()
        if self.skip_word("WHERE"):
            self.clause = "WHERE"
            where = self.expression()
        if self.skip_word("ORDER"):
            self.expect_word("BY")
            self.clause = "ORDER BY"
            order = [self._order()]
            while self.skip_sign(","):
                order.append(self._order())
        offset, limit = self.limit()
        if self.skip_words("FOR", "UPDATE") or self.skip_words("LOCK", "IN", "SHARE", "MODE"):
            self.skip_word("NOWAIT")
        if self.peek().is_word(*_NO_CLAUSES):
            raise NOT_SUPPORTED_YET.error(f"SELECT ... {self.peek().text.upper()}")
        return Select(tuple(columns), table, where, tuple(order), offset, limit, distinct)

    def _order(self) -> tuple[Expression, bool]:
        key = self.expression()
        down = self.skip_word("DESC")
        if not down:
            self.skip_word("ASC")
        return key, down

    def _source(self) -> TableName:
        if self.peek().is_sign("("):
            raise NOT_SUPPORTED_YET.error("subqueries")
        table = self.table_name()
        alias = ""
        if self.skip_word("AS") or (
            self.peek().kind in (Kind.WORD, Kind.QUOTED)
            and not self.peek().is_word(*_BEHIND_COLUMNS, *_JOINS)
        ):
            alias = self.name()
        return TableName(table.database, table.name, alias)

    def _column_or_star(self) -> tuple[str, Expression]:
        if self.skip_sign("*"):
            return "*", Star()
        start = self.peek()
        expression = self.expression()
        name = self.text_since(start)
        if start.kind is Kind.STRING and isinstance(expression, Literal):
            name = BYTE_OF_NONE.sub("?", str(expression.typed.value))
        elif name == NULL_SIGN:
            name = "NULL"
        elif isinstance(expression, ColumnName):
            name = expression.name
        has_as = self.skip_word("AS")
        if self.peek().kind in (Kind.QUOTED, Kind.STRING) or (
            self.peek().kind is Kind.WORD and not self.peek().is_word(*_BEHIND_COLUMNS)
        ):
            name = self.take().text
        elif has_as:
            raise self.error()
        return _shown(name), expression


# What is behind the first word of a statement.
_STARTS: Final[dict[str, Callable[[_Parser], Statement]]] = {
    "BEGIN": _Parser.begin,
    "CHANGE": _Parser.change_master,
    "COMMIT": _Parser.end,
    "DEALLOCATE": _Parser.deallocate,
    "DESC": _Parser.describe,
    "DESCRIBE": _Parser.describe,
    "DO": lambda parser: Do(parser.expressions()),
    "EXECUTE": _Parser.execute,
    "EXPLAIN": _Parser.describe,
    "FLUSH": _Parser.flush,
    "KILL": _Parser.kill,
    "PREPARE": _Parser.prepare,
    "PURGE": _Parser.purge,
    "RELEASE": _Parser.release,
    "RESET": _Parser.reset,
    "ROLLBACK": _Parser.rollback,
    "SAVEPOINT": lambda parser: Transaction("SAVEPOINT", parser.name()),
    "SELECT": _Parser.select,
    "SET": _Parser.set,
    "SHOW": _Parser.show,
    "START": _Parser.start,
    "STOP": lambda parser: parser.replica_command("STOP"),
    "USE": lambda parser: Use(parser.name()),
}


def _shown(name: str) -> str:
    """Return a column's name as MariaDB keeps it: in utf8mb3, cut off where it is too long."""
    plain = "".join(char if char < _FIRST_OF_FOUR_BYTES else "?" for char in readable(name))
    return plain.encode()[:_NAME_BYTES_MAX].decode(errors="ignore")
