"""
The commands of one session that ask something: statements as text, and prepared ones.

Here statements meet the event loop: what may use the disk goes to the pool, what takes its time
waits without a thread, and what concerns other sessions or the relay is done on the loop.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from ibb.protocol import error_codes as codes
from ibb.protocol.capabilities import Capability
from ibb.protocol.command import RefreshOption
from ibb.protocol.errors import SqlError
from ibb.protocol.prepared_statement import (
    binary_payloads,
    prepared_payloads,
)
from ibb.protocol.reply import ok
from ibb.protocol.result_set import ResultSet
from ibb.protocol.statement_command import LAST_PREPARED
from ibb.server.sql.ast import (
    ChangeMaster,
    Deallocate,
    Describe,
    Execute,
    Kill,
    Prepare,
    ReplicaCommand,
    Select,
    Show,
    ShowBinlogEvents,
)
from ibb.server.sql.parameter_values import typed_parameter
from ibb.server.sql.parser import Parsed, parse_prepared, parse_statements
from ibb.server.sql.types import Kind, SqlType, Typed
from ibb.server.sql.wait import StatementWaits

from .killing import kill
from .place import Place
from .prepared_statements import tells_columns_late
from .privileges_needed import require
from .shown_text import shown_text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator
    from concurrent.futures import Future

    from ibb.protocol.statement_command import StmtExecute, StmtSendLongData
    from ibb.server.session import Session
    from ibb.server.session_host import SessionHost

    from .prepared_statements import Prepared
    from .session_charsets import SessionCharsets
    from .statements import Statements

T = TypeVar("T")
_REFRESHED: Final = {
    RefreshOption.LOG: "FLUSH LOGS",
    RefreshOption.HOSTS: "FLUSH HOSTS",
    RefreshOption.SLAVE: "RESET SLAVE",
    RefreshOption.MASTER: "RESET MASTER",
}
CUT_CHARS_MAX: Final = 64 << 10  # of a text that is cut into tokens on the loop
ANSWER_CHARS_MAX: Final = 32 << 20  # of all values of a result; the encoded ones come on top
STATUS_MORE_RESULTS: Final = 0x0008


class StatementRunner:
    """
    Runs what one session asks.

    Args:
        host: the server around the session.
        session: whose commands these are.
        statements: answers them.
        capabilities: those in effect.

    Attributes:
        running: the text that is being answered, without passwords; None between statements.
        command: what SHOW PROCESSLIST calls that.
    """

    def __init__(
        self,
        host: SessionHost,
        session: Session,
        statements: Statements,
        capabilities: Capability,
    ) -> None:
        self.running: str | None = None
        self.command = "Query"
        self._waiting: asyncio.Task[None] | Future[Any] | None = None
        self._host = host
        self._session = session
        self._statements = statements
        self._multi = bool(capabilities & Capability.MULTI_STATEMENTS)
        self._prepared = statements.prepared
        self._last_id = 0

    def allow_several(self, *, allowed: bool) -> None:
        """Take several statements in one text, or no longer (COM_SET_OPTION)."""
        self._multi = allowed

    def reset(self) -> None:
        """Forget everything, as COM_RESET_CONNECTION does."""
        self._statements.reset()

    async def query(self, sql: str) -> AsyncGenerator[list[bytes], None]:
        """Yield what answers COM_QUERY, statement by statement; raises SqlError."""
        with self._command():
            statements = parse_statements(sql, several=self._multi)
            parse = partial(next, statements, None)
            while (parsed := await self._parsed(sql, parse)) is not None:
                info = b"Statement prepared" if isinstance(parsed.statement, Prepare) else b""
                yield await self._run(parsed, partial(self._text, more=parsed.more, info=info))
                if parsed.more:  # else the answer is whole, and no place for an error
                    await asyncio.sleep(0)  # a turn of the loop for others
                    self._statements.context.stop_if_interrupted()
                self._statements.begin()

    async def _parsed(self, sql: str, parse: Callable[[], T]) -> T:
        """Return what *parse* does, in a thread where a long text takes it long."""
        if len(sql) <= CUT_CHARS_MAX:
            return parse()
        return await asyncio.get_running_loop().run_in_executor(self._host.pools.statements, parse)

    @contextmanager
    def _command(self) -> Iterator[None]:
        """Begin a command that can be interrupted; have SHOW WARNINGS show what it raises."""
        self._statements.context.interrupted = False
        self._statements.begin()
        try:
            yield
        except SqlError as error:
            self._statements.note(error)
            raise

    def _text(
        self, result: ResultSet | None, *, more: bool = False, info: bytes = b""
    ) -> list[bytes]:
        """Return what answers a statement that came as text."""
        status = self._statements.context.variables.status | (STATUS_MORE_RESULTS if more else 0)
        if result is None:
            return [ok(status=status, warnings=self._warnings(), info=info)]
        return list(self._whole(result, result.status | status).packets())

    @property
    def _charsets(self) -> SessionCharsets:
        return self._statements.context.variables.charsets

    def _whole(self, result: ResultSet, status: int) -> ResultSet:
        values = (value for row in result.rows for value in row)
        if sum(len(value) for value in values if isinstance(value, str | bytes)) > ANSWER_CHARS_MAX:
            raise codes.NET_PACKET_TOO_LARGE.error()
        charset = self._charsets.of_results
        return ResultSet(result.columns, result.rows, status, self._warnings(), charset)

    def _warnings(self) -> int:
        return self._statements.context.diagnostics.new

    async def _run(self, parsed: Parsed, encode: Callable[[ResultSet | None], T]) -> T:
        """Return what *encode* makes of a statement's result, having waited for what it waits."""
        execute = parsed.statement
        with self._in_time():
            self.running = shown_text(parsed)
            if not isinstance(execute, Execute):
                return await self._done(parsed, encode)
            try:
                inner = await self._awaited(parsed, lambda: self._statements.executed(execute))
                self.running = shown_text(inner)
                return await self._done(inner, encode)
            finally:
                self._statements.context.values = ()

    async def _done(self, parsed: Parsed, encode: Callable[[ResultSet | None], T]) -> T:
        statement = parsed.statement
        match statement:
            case Kill():
                wanted = await self._awaited(parsed, lambda: self._statements.wanted(statement))
                kill(statement, wanted, self._host, self._session)
                return encode(None)
            case ReplicaCommand() | ChangeMaster():
                await self._upstream(statement)
                return encode(None)
        return await self._awaited(parsed, lambda: encode(self._statements.answer(statement)))

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        """End a statement that takes longer than `max_statement_time` with error 1969."""
        context, late = self._statements.context, False

        def end() -> None:
            nonlocal late
            late = True
            self.interrupt()

        seconds = context.variables.statement_seconds(context)
        timer = asyncio.get_running_loop().call_later(seconds, end) if seconds else None
        try:
            yield
        except SqlError as error:
            if late and error.code == codes.QUERY_INTERRUPTED.code:
                raise codes.STATEMENT_TIMEOUT.error() from error
            raise
        finally:
            self.running = None
            if timer is not None:
                timer.cancel()
            if late:
                context.interrupted = False  # the next statement of the text has its own time

    async def _awaited(self, parsed: Parsed, answer: Callable[[], T]) -> T:
        """Return what *answer* does for a statement, again when a wait of its has ended."""
        try:
            while True:
                try:
                    return await self._answered(parsed, answer)
                except StatementWaits as wait:
                    await self._session.unless_gone(self._wait(wait))
        finally:
            self._statements.context.waited.clear()  # the next statement waits for itself

    async def _answered(self, parsed: Parsed, answer: Callable[[], T]) -> T:
        match self._statements.place(parsed):
            case Place.LOOP:
                return answer()
            case Place.BRIEF:
                pool = self._host.pools.statements
                return await asyncio.get_running_loop().run_in_executor(pool, answer)
        return await self._session.unless_gone(self._long(answer))

    async def _long(self, answer: Callable[[], T]) -> T:
        """Return what *answer* does in its thread, which is told when nobody waits for it."""
        self._waiting = job = self._host.pools.long_statements.submit(answer)
        try:
            return await asyncio.wrap_future(job)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            assert task is not None
            if not task.cancelling():  # killed before its turn came
                raise codes.QUERY_INTERRUPTED.error() from None
            self._statements.context.interrupted = True
            raise
        finally:
            self._waiting = None

    async def _wait(self, wait: StatementWaits) -> None:
        """Return when the wait has ended, with how it ended in the context."""
        self._statements.context.stop_if_interrupted()  # while a thread found that it has to wait
        self._waiting = waiting = asyncio.create_task(self._until_ready(wait))
        try:
            await asyncio.wait([waiting])
            if waiting.cancelled():
                raise codes.QUERY_INTERRUPTED.error()
            waiting.result()
        finally:
            waiting.cancel()
            self._waiting = None

    def interrupt(self) -> None:
        """End the command that runs, if one does, with error 1317, as KILL QUERY does."""
        self._statements.context.interrupted = True
        if self._waiting is not None:
            self._waiting.cancel()  # a thread goes on until it looks

    async def _until_ready(self, wait: StatementWaits) -> None:
        came = False
        if wait.gtids is not None:
            came = await self._host.gtid_waits.wait(wait.gtids, wait.seconds)
        else:
            assert wait.seconds is not None
            await asyncio.sleep(wait.seconds)
        self._statements.context.waited[wait.key] = came

    # Other sessions, and the relay

    async def refresh(self, options: int) -> list[bytes]:
        """Return what answers COM_REFRESH; raises SqlError."""
        with self._command():
            for sql in ("FLUSH TABLES", *(_REFRESHED[bit] for bit in _REFRESHED if options & bit)):
                await self._run(parse_prepared(sql), self._text)
        return self._text(None)

    async def _upstream(self, statement: ReplicaCommand | ChangeMaster) -> None:
        context = self._statements.context
        self._statements.begin()
        if isinstance(statement, ChangeMaster):
            require("CHANGE MASTER", context)
        elif statement.action == "RESET":
            require("RESET", context)
            context.variables.end_transaction()
        elif self._host.relays or not statement.every:
            require(f"{statement.action} SLAVE", context)
            if statement.action == "STOP" and context.variables.in_transaction:
                raise codes.LOCK_OR_ACTIVE_TRANSACTION.error()
        if statement.connection:
            raise codes.NO_MASTER_CONNECTION.error(statement.connection)
        for note in await self._host.upstream_command(statement):
            context.diagnostics.add(*note)

    # Prepared statements

    async def prepare(self, sql: str) -> list[bytes]:
        """Return what answers COM_STMT_PREPARE."""
        with self._command():
            return await self._prepare(await self._parsed(sql, partial(parse_prepared, sql)))

    async def _prepare(self, parsed: Parsed) -> list[bytes]:
        if isinstance(parsed.statement, Prepare | Execute | Deallocate):
            raise codes.UNSUPPORTED_PS.error()
        context = self._statements.context
        columns = []
        if isinstance(parsed.statement, Select | Show | Describe | ShowBinlogEvents):
            unknown = Typed(None, SqlType(Kind.NULL, 0, nullable=True))
            context.values = [unknown] * parsed.placeholders
            context.probing = True
            try:
                result = await self._run(parsed, lambda result: result)
            finally:
                context.values, context.probing = (), False
            if result is not None and not tells_columns_late(parsed.statement):
                columns = list(result.columns)
        self._prepared.add(self._last_id + 1, parsed)
        self._last_id += 1
        return prepared_payloads(
            self._last_id,
            columns,
            parsed.placeholders,
            status=context.variables.status,
            charset=self._charsets.of_results,
        )

    def _found(self, statement_id: int, verb: str) -> Prepared:
        if statement_id == LAST_PREPARED:
            statement_id = self._last_id
        prepared = self._prepared.get(statement_id)
        if prepared is None:
            raise codes.UNKNOWN_STMT_HANDLER.error(statement_id, verb)
        return prepared

    async def execute(self, command: StmtExecute) -> list[bytes]:
        """Return what answers COM_STMT_EXECUTE."""
        prepared = self._found(command.statement_id, "mysqld_stmt_execute")
        values = prepared.parameters.read(
            command.parameters, prepared.take_long_data(), self._charsets.of_statements
        )
        context = self._statements.context
        context.values = [typed_parameter(value) for value in values]
        self.command = "Execute"
        try:
            with self._command():
                return await self._run(prepared.parsed, self._binary)
        finally:
            context.values = ()
            self.command = "Query"

    def _binary(self, result: ResultSet | None) -> list[bytes]:
        """Return what answers a prepared statement."""
        if result is None:
            return self._text(None)
        return list(binary_payloads(self._whole(result, result.status)))

    def send_long_data(self, command: StmtSendLongData) -> None:
        """Keep a piece of a parameter; one that is too long ends in an error at execution."""
        prepared = self._prepared.get(command.statement_id)
        if prepared is not None:
            with suppress(SqlError):  # which has no answer: executing it tells
                prepared.add_long_data(command.parameter, command.data)

    def fetch(self, statement_id: int) -> NoReturn:
        """Refuse to fetch rows: a statement's are all sent when it is executed."""
        self._found(statement_id, "mysqld_stmt_fetch")
        raise codes.STMT_HAS_NO_OPEN_CURSOR.error(statement_id)

    def reset_statement(self, statement_id: int) -> None:
        """Forget the long parameters; raises SqlError 1243."""
        self._found(statement_id, "mysqld_stmt_reset").drop_long_data()

    def close_statement(self, statement_id: int) -> None:
        """Forget a statement, if there is one."""
        self._prepared.drop(statement_id)
