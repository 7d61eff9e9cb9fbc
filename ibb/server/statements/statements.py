"""
The answers to statements: what a MariaDB 10.11 primary says to replicas, tools and connectors.

Answering may touch the history and so the disk, or take its time: `place` tells which thread is to
call `answer`. Source: dump-protocol 2.1 to 2.3, 9.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from ibb.protocol.error_codes import (
    BAD_DB_ERROR,
    DATA_OUT_OF_RANGE,
    DBACCESS_DENIED_ERROR,
    NO_DB_ERROR,
    NO_SUCH_TABLE,
    NOT_SUPPORTED_YET,
    SP_DOES_NOT_EXIST,
    UNKNOWN_STMT_HANDLER,
    UNKNOWN_TABLE,
    UNSUPPORTED_PS,
)
from ibb.protocol.errors import SqlError
from ibb.server.sql.ast import (
    Assignment,
    CreateLease,
    Deallocate,
    Describe,
    Do,
    DropLease,
    Execute,
    Flush,
    Nothing,
    OnTable,
    Prepare,
    Purge,
    ResetMaster,
    Select,
    Set,
    SetNames,
    SetTransaction,
    Show,
    ShowBinlogEvents,
    Transaction,
    Unsupported,
    Use,
)
from ibb.server.sql.context import Context
from ibb.server.sql.evaluator import evaluate
from ibb.server.sql.expressions import UserVariable
from ibb.server.sql.parser import parse_prepared
from ibb.server.sql.select import select
from ibb.server.sql.show_views import VIEWS
from ibb.server.sql.table_descriptions import describe
from ibb.server.sql.tables import INFORMATION_SCHEMA
from ibb.server.sql.types import as_text
from ibb.server.sql.wait import StatementWaits

from .admin import administer, global_assignment
from .events import show_binlog_events
from .killing import thread_id
from .place import Place, place_of
from .prepared_statements import PreparedStatements
from .privileges_needed import require_for_variable
from .show import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ibb.protocol.result_set import ResultSet
    from ibb.server.login.accounts import Account
    from ibb.server.sql.ast import Kill, Statement
    from ibb.server.sql.expressions import Expression
    from ibb.server.sql.parser import Parsed
    from ibb.server.sql.types import SqlValue, Typed

    from .variables import ServerFacts, SessionVariables

_WRITING: Final = frozenset(
    {"CREATE", "INSERT", "REPLACE", "UPDATE", "DELETE", "DROP", "ALTER", "TRUNCATE", "FLUSH"}
)
_OF_TABLES: Final = frozenset({"VARIABLES", "STATUS", "DATABASES", "TABLES", "OPEN TABLES"})


def _chars(typed: Typed) -> int:
    return len(typed.value) if isinstance(typed.value, str | bytes) else 0


def _looks_at_table(statement: Statement) -> bool:
    """Tell whether this forgets what earlier statements were warned of, as MariaDB has it."""
    match statement:
        case Select():
            return statement.table is not None
        case Show():
            return statement.what in VIEWS or statement.what in _OF_TABLES
    return isinstance(statement, Describe)


class Statements:
    """
    Answers the statements of one session.

    Args:
        facts: what may be known of the server.
        variables: of the session.
        connection_id: of the session.
        user: `name@host`, as it logged in.
        account: whose privileges count; None may everything.

    Attributes:
        context: what the session's statements share.
        prepared: the prepared ones, by number or name.
    """

    def __init__(
        self,
        facts: ServerFacts,
        variables: SessionVariables,
        connection_id: int,
        user: str,
        account: Account | None = None,
    ) -> None:
        self.context = Context(facts, variables, connection_id, user, account)
        variables.begin(self.context)
        self._variables = variables
        self.prepared = PreparedStatements(self.context)

    @property
    def database(self) -> str | None:
        """What USE chose."""
        return self.context.database

    def connect_with(self, database: str) -> None:
        """Take the database that a login names: readers name the one that they follow."""
        self.context.database = database

    def use(self, database: str) -> None:
        """Do USE; raises SqlError 1049: there is but one database, and what the login named."""
        if not database:
            raise NO_DB_ERROR.error()
        if database == self.context.database:
            return
        if database.lower() != INFORMATION_SCHEMA:
            raise BAD_DB_ERROR.error(database)
        self.context.database = INFORMATION_SCHEMA

    def reset(self) -> None:
        """Forget what the session has set, as COM_RESET_CONNECTION does."""
        self._variables.begin(self.context)
        self.prepared.clear()
        self.context.diagnostics.clear()

    def begin(self) -> None:
        """Begin a statement that is not for `answer`."""
        self.context.diagnostics.begin()

    def place(self, parsed: Parsed) -> Place:
        """Return where a statement is to be answered."""
        context = self.context
        data = self._variables.user_chars() + sum(map(_chars, context.values))
        return place_of(parsed.statement, len(parsed.text), data)

    def answer(self, statement: Statement) -> ResultSet | None:
        """
        Do what *statement* asks; None is OK without a result.

        Raises:
            SqlError: what the client is told instead.
            StatementWaits: it takes its time; answer again when the wait has ended.
        """
        context = self.context
        if isinstance(statement, Flush | ResetMaster):
            self._variables.end_transaction()
        with self._computing():
            if _looks_at_table(statement):
                context.diagnostics.clear()
            result = self._answer(statement)
        context.row_count = 0 if result is None else -1
        if result is not None:
            context.found_rows = len(result.rows)
        return result

    @contextmanager
    def _computing(self) -> Iterator[None]:
        """
        Begin to compute for a statement; numbers that are out of range are an error of SQL.

        What is computed again when a wait has ended finds user variables as they were.
        """
        context, user = self.context, self._variables.all_user()
        context.now = self._variables.timestamp(context)
        context.row = None
        context.waits = 0
        context.user_types.clear()
        context.diagnostics.begin()
        try:
            yield
        except StatementWaits:
            self._variables.restore_user(user)
            raise
        except SqlError:
            context.row_count = -1
            raise
        except ArithmeticError as error:
            context.row_count = -1
            raise DATA_OUT_OF_RANGE.error("DECIMAL", "the statement") from error

    def wanted(self, statement: Kill) -> int:
        """Return which connection KILL names, 0 for none; raises as `answer`."""
        if statement.target is None:
            return 0
        with self._computing():
            return thread_id(evaluate(statement.target, self.context).value)

    def note(self, error: SqlError) -> None:
        """Have SHOW WARNINGS show an error that the client was told."""
        self.context.diagnostics.add("Error", error.code, error.message)

    def _answer(self, statement: Statement) -> ResultSet | None:
        context = self.context
        match statement:
            case Select():
                return select(statement, context)
            case Show():
                return show(statement, context)
            case Describe():
                return describe(statement, context)
            case ShowBinlogEvents():
                return show_binlog_events(statement, context)
            case Set():
                for assign in [self._prepared_part(part) for part in statement.parts]:
                    assign()
            case Do():
                for expression in statement.expressions:
                    evaluate(expression, context)
            case Use():
                self.use(statement.database)
            case Transaction():
                self._transaction(statement)
            case Flush() | Purge() | ResetMaster() | CreateLease() | DropLease():
                administer(statement, context)
            case Prepare():
                self._prepare(statement)
            case Deallocate():
                self._named(statement.name, "DEALLOCATE PREPARE")
                self.prepared.drop(statement.name.lower())
            case OnTable():
                error = self._no_table(statement)
                if error is not None:
                    raise error
                administer(Flush(("TABLES",)), context)
            case Unsupported():
                raise NOT_SUPPORTED_YET.error(statement.what)
            case Nothing():
                pass
            case _:
                raise AssertionError(statement)  # KILL, EXECUTE and the relay's are the runner's
        return None

    # SET

    def _prepared_part(self, part: Assignment | SetNames | SetTransaction) -> Callable[[], None]:
        """
        Return what does a part of SET, whose value is known and checked before any part is done.

        Raises:
            SqlError: it cannot be done, and so nothing of the statement is.
        """
        variables, context = self._variables, self.context
        if isinstance(part, SetNames):
            collation = variables.charsets.collation_of(part.charset, part.collation)
            return partial(variables.charsets.take, collation, literals=part.literals)
        if isinstance(part, SetTransaction):
            return self._prepared_transaction(part)
        target = part.target
        typed = None if part.value is None else evaluate(part.value, context)
        if isinstance(target, UserVariable):
            assert typed is not None
            return partial(variables.set_user, target.name, typed.value)
        if target.scope == "GLOBAL":
            return global_assignment(target.name, typed, context)
        require_for_variable(target.name, context, is_global=False)
        if typed is None:
            variables.check_default(target.name)
            return partial(variables.set_default, target.name, context)
        checked = variables.checked(target.name, typed.value, context)
        return partial(variables.set_checked, target.name, checked)

    def _prepared_transaction(self, part: SetTransaction) -> Callable[[], None]:
        variables, context = self._variables, self.context
        values: dict[str, SqlValue] = {
            name: int(text) if text.isdigit() else text for name, text in part.values
        }
        set_value: Callable[[str, SqlValue], None]
        if part.scope == "GLOBAL":
            for name in values:
                require_for_variable(name, context, is_global=True)
            set_value = context.facts.set_global
        else:
            values = {
                name: variables.checked(name, value, context) for name, value in values.items()
            }
            set_value = variables.set_checked

        def assign() -> None:
            for name, value in values.items():
                set_value(name, value)

        return assign

    # Transactions, in which nothing happens

    def _transaction(self, statement: Transaction) -> None:
        variables = self._variables
        name = statement.name.lower()
        if statement.action == "BEGIN":
            variables.begin_transaction(read_only=statement.read_only)
        elif statement.action == "END":
            read_only = variables.read_only_transaction
            variables.end_transaction()
            if statement.chain:
                variables.begin_transaction(read_only=read_only)
        elif statement.action == "SAVEPOINT":
            if variables.in_transaction:
                variables.add_savepoint(name)
        else:
            if name not in variables.savepoints:
                raise SP_DOES_NOT_EXIST.error("SAVEPOINT", statement.name)
            variables.drop_savepoints_from(name, keep=statement.action == "ROLLBACK TO")

    # Prepared statements by name

    def _prepare(self, statement: Prepare) -> None:
        parsed = self._parsed(statement.text)
        name = statement.name.lower()
        self.prepared.drop(name)
        self.prepared.add(name, parsed)

    def _parsed(self, text: Expression) -> Parsed:
        """Return the statement of a text that an expression gives; raises SqlError."""
        value = as_text(evaluate(text, self.context).value)
        parsed = parse_prepared("NULL" if value is None else value)
        if isinstance(parsed.statement, Prepare | Execute | Deallocate):
            raise UNSUPPORTED_PS.error()
        return parsed

    def _named(self, name: str, verb: str) -> Parsed:
        prepared = self.prepared.get(name.lower())
        if prepared is None:
            raise UNKNOWN_STMT_HANDLER.error(name, verb)
        return prepared.parsed

    def executed(self, statement: Execute) -> Parsed:
        """
        Return what EXECUTE executes, with the values of its placeholders in the context.

        Raises:
            SqlError: 1243 there is none of that name, 1210 other placeholders, and as a parser.
            StatementWaits: a value is not known yet.
        """
        context = self.context
        with self._computing():
            if statement.text is None:
                parsed = self._named(statement.name, "EXECUTE")
            else:
                parsed = self._parsed(statement.text)
            if parsed.placeholders != len(statement.values):
                raise SqlError(1210, "HY000", "Incorrect arguments to EXECUTE")
            context.values = [evaluate(value, context) for value in statement.values]
        return parsed

    def _no_table(self, statement: OnTable) -> SqlError | None:
        """Return the error of a statement on a table; there is none for FLUSH."""
        table = statement.table
        database = table.database or self.context.database
        if database is None:
            return NO_DB_ERROR.error()
        if statement.verb in ("CALL", "PROCEDURE", "FUNCTION"):
            return SP_DOES_NOT_EXIST.error("PROCEDURE", f"{database}.{table.name}")
        if database.lower() == INFORMATION_SCHEMA and statement.verb in _WRITING:
            account = self.context.account
            user, host = ("", "") if account is None else (account.user, account.host)
            return DBACCESS_DENIED_ERROR.error(user, host, INFORMATION_SCHEMA)
        if database.lower() == INFORMATION_SCHEMA:
            return UNKNOWN_TABLE.error(table.name, INFORMATION_SCHEMA)
        if statement.verb == "FLUSH":
            return None
        if statement.verb == "DROP":
            return SqlError(1051, "42S02", f"Unknown table '{database}.{table.name}'")
        if statement.verb == "CREATE":
            return BAD_DB_ERROR.error(database)
        return NO_SUCH_TABLE.error(database, table.name)
