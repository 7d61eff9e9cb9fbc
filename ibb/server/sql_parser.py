"""
From the text of a statement to what it asks for.

What replicas, tools, connectors and administrators send a primary is known. What else MariaDB knows
is error 1235, as far as its first words tell; the rest is the syntax error 1064, quoting the place
where MariaDB would stop. Source: dump-protocol 2 and 9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.error_codes import EMPTY_QUERY, NOT_SUPPORTED_YET

from .sql_ast import (
    Assignment,
    ColumnName,
    Do,
    Literal,
    Nothing,
    OnTable,
    Select,
    Set,
    SetNames,
    SetTransaction,
    Star,
    SystemVariableName,
    TableName,
    Transaction,
    Unsupported,
    Use,
    UserVariable,
)
from .sql_expression_parser import SCOPES
from .sql_lexer import Kind, uncommented
from .sql_session_parser import SessionParser
from .sql_types import Typed, text_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from .sql_ast import Expression, Statement

_BEHIND_COLUMNS: Final = (
    *("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "INTO", "FOR", "PROCEDURE"),
    *("EXCEPT", "INTERSECT", "LOCK"),
)
_NO_SETS: Final = ("STATEMENT", "PASSWORD", "ROLE", "DEFAULT")
_NAME_BYTES_MAX: Final = 255
_FIRST_OF_FOUR_BYTES: Final = "\U00010000"
_LEVELS: Final = ("READ COMMITTED", "READ UNCOMMITTED", "REPEATABLE READ", "SERIALIZABLE")
_WORD_VALUES: Final = frozenset({"NULL", "TRUE", "FALSE", "CASE", "CAST", "CONVERT", "NOT"})
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
    ("DESCRIBE",),
    ("DESC",),
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
    "EXPLAIN",
    "HELP",
    "VALUES",
    "BINLOG",
    "SIGNAL",
    "RESIGNAL",
    "GET",
    "MERGE",
)
# Parts of SELECT that need tables.
_JOINS: Final = ("JOIN", "INNER", "LEFT", "RIGHT", "CROSS", "NATURAL", "STRAIGHT_JOIN")
_NO_CLAUSES: Final = (
    *("GROUP", "HAVING", "UNION", "EXCEPT", "INTERSECT", "INTO", "PROCEDURE", "WINDOW", "LOCK"),
    *_JOINS,
)


class Parsed(NamedTuple):
    """A statement, the number of its placeholders, and the text behind its semicolon."""

    statement: Statement
    placeholders: int
    rest: str


def parse_statement(sql: str) -> Statement:
    """
    Return what *sql* asks for, one statement without placeholders.

    Raises:
        SqlError: 1064 not understood, 1065 nothing but blanks.
    """
    parsed = parse_next(sql)
    if parsed.rest or parsed.placeholders:
        raise _Parser(sql).misplaced(parsed)
    return parsed.statement


def parse_next(sql: str) -> Parsed:
    """
    Return the first statement of *sql*.

    Raises:
        SqlError: 1064 not understood, 1065 nothing but blanks.
    """
    text = uncommented(sql)
    parser = _Parser(text)
    if parser.peek().kind is Kind.END or (
        parser.peek().is_sign(";") and parser.peek(1).kind is Kind.END
    ):
        if parser.peek().kind is Kind.END and text.strip():
            return Parsed(Nothing(), 0, "")  # a comment
        raise EMPTY_QUERY.error()
    try:
        statement = parser.statement()
    except RecursionError:
        raise parser.error() from None
    rest = ""
    if parser.skip_sign(";"):
        rest = text[parser.peek().start :]
        rest = rest if rest.strip("; \t\r\n") else ""
    elif parser.peek().kind is not Kind.END:
        raise parser.error()
    return Parsed(statement, parser.placeholders, rest)


class _Parser(SessionParser):
    """The parser of one statement."""

    def misplaced(self, parsed: Parsed) -> Exception:
        """Return error 1064 at the second statement, or at the first placeholder."""
        for token in self._tokens:
            if parsed.placeholders and token.is_sign("?"):
                return self.error(token)
            if parsed.rest and self.sql[token.start :] == parsed.rest:
                return self.error(token)
        return self.error()

    def statement(self) -> Statement:
        starts: dict[str, Callable[[], Statement]] = {
            "SELECT": self._select,
            "SET": self._set,
            "SHOW": self.show,
            "KILL": self.kill,
            "USE": lambda: Use(self.name()),
            "DO": lambda: Do(self.expressions()),
            "FLUSH": self.flush,
            "PURGE": self.purge,
            "RESET": self.reset,
            "CHANGE": self.change_master,
            "BEGIN": self.begin,
            "START": self.start,
            "STOP": lambda: self.replica_command("STOP"),
            "COMMIT": self.end,
            "ROLLBACK": self.rollback,
            "SAVEPOINT": lambda: Transaction("SAVEPOINT", self.name()),
            "RELEASE": self.release,
            "PREPARE": self.prepare,
            "EXECUTE": self.execute,
            "DEALLOCATE": self.deallocate,
        }
        for word, parse in starts.items():
            if self.skip_word(word):
                return parse()
        if self.skip_words("UNLOCK", "TABLES"):
            return Nothing()
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
        if not token.is_word(*_NO_PLACE):
            raise self.error()
        self.rest()
        return Unsupported(token.text.upper())

    # SELECT

    def _select(self) -> Select:
        distinct = self.skip_word("DISTINCT")
        self.skip_word("SQL_NO_CACHE", "SQL_CACHE", "ALL", "STRAIGHT_JOIN", "SQL_CALC_FOUND_ROWS")
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
        if self.skip_word("FOR"):
            self.expect_word("UPDATE")
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
            name = str(expression.typed.value)
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

    # SET

    def _set(self) -> Statement:
        if self.peek().is_word(*_NO_SETS):
            what = self.take().text.upper()
            if what == "ROLE" and self.skip_word("NONE"):
                return Nothing()
            self.rest()
            return Unsupported(f"SET {what}")
        self.clause = "SET"
        parts = [self._set_part()]
        while self.skip_sign(","):
            parts.append(self._set_part())
        return Set(tuple(parts))

    def _set_part(self) -> Assignment | SetNames | SetTransaction:
        if self.peek().is_word("TRANSACTION") or (
            self.peek().is_word(*SCOPES) and self.peek(1).is_word("TRANSACTION")
        ):
            return self._set_transaction()
        if self.skip_word("NAMES", "CHARSET") or self.skip_words("CHARACTER", "SET"):
            return self._set_names()
        target = self._target()
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
        charset = self.take()
        if charset.kind not in (Kind.WORD, Kind.STRING, Kind.QUOTED):
            raise self.error(charset)
        collation = ""
        if self.skip_word("COLLATE"):
            token = self.take()
            if token.kind not in (Kind.WORD, Kind.STRING, Kind.QUOTED):
                raise self.error(token)
            collation = token.text
        return SetNames("" if charset.is_word("DEFAULT") else charset.text, collation)

    def _target(self) -> UserVariable | SystemVariableName:
        token = self.take()
        if token.kind is Kind.USER_VARIABLE:
            return UserVariable(token.text)
        if token.kind is Kind.SYSTEM_VARIABLE:
            return self.system_variable(token)
        if token.is_word(*SCOPES) and self.peek().kind in (Kind.WORD, Kind.QUOTED):
            return SystemVariableName(SCOPES[token.text.upper()], self.take().text)
        if token.kind in (Kind.WORD, Kind.QUOTED):
            return SystemVariableName("SESSION", token.text)
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


def _shown(name: str) -> str:
    """Return a column's name as MariaDB keeps it: in utf8mb3, cut off where it is too long."""
    plain = "".join(char if char < _FIRST_OF_FOUR_BYTES else "?" for char in name)
    return plain.encode()[:_NAME_BYTES_MAX].decode(errors="ignore")
