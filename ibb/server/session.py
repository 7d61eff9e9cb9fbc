"""
One client from its connection to its end: greeting, login, commands, perhaps a dump.

Nothing but a login is looked at before a login, and nothing at all behind a failed one.
Source: dump-protocol 1 to 3; 10, traps 10, 17, 20, 30, 31, 42.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, TypeVar

from ibb.protocol import error_codes as codes
from ibb.protocol.capabilities import SERVER_CAPABILITIES, Capability, effective
from ibb.protocol.change_user import CHANGE_USER
from ibb.protocol.character_sets import UTF8MB4
from ibb.protocol.command import (
    BinlogDump,
    BinlogDumpGtid,
    Command,
    FieldList,
    InitDb,
    Ping,
    ProcessKill,
    Query,
    Quit,
    Refresh,
    RegisterSlave,
    ResetConnection,
    SetOption,
    Statistics,
    parse_command,
)
from ibb.protocol.compressed_packet import looks_compressed
from ibb.protocol.errors import FormatError, ProtocolError, SqlError
from ibb.protocol.reply import eof, err_of, ok
from ibb.protocol.statement_command import (
    StmtClose,
    StmtExecute,
    StmtFetch,
    StmtPrepare,
    StmtReset,
    StmtSendLongData,
)

from .config import END_GRACE_SECONDS
from .connections.broken_packets import answer_to_malformed
from .connections.connection import Connection
from .dump.dump_request import make_request
from .dump.dump_service import DumpService
from .dump.readers import HeldUpBy
from .login.login import Login
from .login.privileges import REPLICATION_SLAVE
from .session_end import SessionEnd
from .sql.table_descriptions import field_list
from .statements.killing import kill_connection
from .statements.runner import StatementRunner
from .statements.session_memory import SessionMemory
from .statements.statements import Statements
from .statements.variables import SessionVariables

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from ibb.protocol.packet import Packet

    from .dump.readers import Progress
    from .login.accounts import Account
    from .session_host import SessionHost

T = TypeVar("T")


class Session:
    """
    One client.

    Args:
        host: the server around it.
        connection: the client's.
        connection_id: what KILL takes.

    Attributes:
        registered: what the client said of itself as a replica.
        dump_server_id: server id of the replica whose dump runs, None while none does.
        runner: answers its statements, None while it is not logged in.
        had_login: it has logged in, though it may be about to be another user.
        began_at: when it connected or ended its last command, by the monotonic clock.
    """

    def __init__(self, host: SessionHost, connection: Connection, connection_id: int) -> None:
        self.id = connection_id
        self.account: Account | None = None
        self.had_login = False
        self.registered: RegisterSlave | None = None
        self.dump_server_id: int | None = None
        self._host = host
        self._connection = connection
        self.runner: StatementRunner | None = None
        self.began_at = host.uptime()
        self._login = Login(host, connection, connection_id)
        self._memory = SessionMemory(host.memory)
        self._variables = SessionVariables(UTF8MB4, self._memory)
        self._statements: Statements | None = None
        self._attributes: dict[str, str] = {}
        self._may_compress = False  # the client wants to; we have not offered it
        self._dump: DumpService | None = None
        self._leaving = False
        self._task: asyncio.Task[None] | None = None
        self._end = SessionEnd(host, connection, connection_id)

    async def run(self) -> None:
        """Serve the client until it or the server ends the connection; raises nothing of it."""
        self._task = asyncio.current_task()
        in_order = False
        try:
            await self._log_in()
            await self._serve()
            in_order = True
        except Exception as error:  # noqa: BLE001 - a bug must not take the other sessions along
            in_order = await self._end.by(error, logged_in=self.account is not None)
            error.__traceback__ = None  # its frames may hold what holds the error
        finally:
            self._host.aborted_clients += self.account is not None and not in_order
            self._memory.release()
            await (self._connection.end() if in_order else self._connection.close())
            # What a dump has read and made is to go now, not when garbage is collected.
            self.runner = self._statements = self._dump = None

    @property
    def traffic(self) -> tuple[int, int]:
        """Bytes received and sent."""
        sent_now = self._dump.sent_now if self._dump is not None else 0
        return self._connection.received, self._connection.sent + sent_now

    @property
    def limit_key(self) -> str:
        """What limits by address count by."""
        return self._connection.limit_key

    def end(self, error: SqlError) -> None:
        """End the session from outside; a dump tells its client *error* first."""
        if self._dump is not None:
            self._end_dump(self._dump, error)
        elif self._task is not None:
            self._task.cancel()

    def interrupt(self) -> None:
        """End what the session does, as KILL QUERY does: a dump with EOF, and its connection."""
        if self._dump is not None:
            self._end_dump(self._dump, None)
        elif self.runner is not None:
            self.runner.interrupt()

    def leave(self) -> None:
        """End the session behind the answer to the command that it is about."""
        self._leaving = True

    def _end_dump(self, dump: DumpService, error: SqlError | None) -> None:
        dump.end(error)
        asyncio.get_running_loop().call_later(END_GRACE_SECONDS, self._connection.abort)

    async def unless_gone(self, work: Coroutine[None, None, T]) -> T:
        """Return what *work* does; cancels it and raises PeerGone when the client closes first."""
        return await self._connection.unless_gone(work)

    async def _log_in(self, change: bytes | None = None) -> None:
        """Log the client in, or in again as its COM_CHANGE_USER *change* says."""
        self._become(None)
        self.registered = self.runner = self._statements = None
        async with asyncio.timeout(self._host.config.connect_timeout):
            login = self._login
            done = await (login.run() if change is None else login.change_user(change))
        self._memory.release()
        self._memory = SessionMemory(self._host.memory)
        self._become(done.account)
        response, self.had_login = done.response, True
        self._host.guard.succeeded(self._connection.limit_key, response.user)
        interactive = bool(response.capabilities & Capability.INTERACTIVE)
        collation = response.collation or UTF8MB4
        self._variables = SessionVariables(collation, self._memory, interactive=interactive)
        user = f"{response.user}@{self._connection.hosts[0]}"
        statements = Statements(self._host, self._variables, self.id, user, self.account)
        if response.database:
            statements.connect_with(response.database)
        statements.context.encryption = self._connection.cipher()
        self._statements = statements
        both = effective(SERVER_CAPABILITIES, response.capabilities)
        self.runner = StatementRunner(self._host, self, statements, both)
        self._attributes = dict(response.attributes)
        self._may_compress = bool(response.capabilities & Capability.COMPRESS)
        await self._connection.send([ok(info=done.info)])

    def _become(self, account: Account | None) -> None:
        self._host.sessions.becomes(self, account)
        self.account = account

    # Commands

    async def _serve(self) -> None:
        """Answer commands until the client quits, a dump has ended, or it has killed itself."""
        connection = self._connection
        while not self._leaving:
            packet = await self._next_command()
            self._host.questions += 1
            self.began_at = self._host.uptime()
            if packet.payload[:1] == bytes([CHANGE_USER]):
                await self._log_in(packet.payload)
                continue
            if self._may_compress and looks_compressed(packet.payload):
                raise ProtocolError("the client compresses, which was not offered")
            self._may_compress = False
            charsets = self._variables.charsets
            try:
                command = parse_command(packet.payload, charsets.of_statements)
            except FormatError:
                await connection.send(answer_to_malformed(packet.payload))
                continue
            if isinstance(command, Quit):
                return
            if isinstance(command, BinlogDump | BinlogDumpGtid):
                await self._run_dump(command)
                return
            try:
                answer = await self._answer(command)
            except SqlError as error:
                self._host.access_denied_errors += error.code in codes.DENIALS
                answer = [err_of(error, charsets.of_results)]
            if answer:
                await connection.send(answer)

    async def _next_command(self) -> Packet:
        """Wait for a command as long as the session's variables say; raises TimeoutError."""
        connection, timeouts = self._connection, self._variables.timeouts
        connection.expect(self._variables.packet_bytes_max)
        connection.write_timeout = timeouts["net_write_timeout"]
        try:
            async with asyncio.timeout(timeouts["wait_timeout"]) as idle:
                return await connection.receive(timeouts["net_read_timeout"])
        except TimeoutError as error:
            name = "wait_timeout" if idle.expired() else "net_read_timeout"
            raise TimeoutError(
                f"the client sent nothing for {timeouts[name]:g} s: {name}"
            ) from error

    async def _answer(self, command: Command) -> list[bytes]:
        """Return the payloads that end the answer to *command*; raises SqlError."""
        status = self._variables.status
        runner, statements = self.runner, self._statements
        assert runner is not None
        assert statements is not None
        match command:
            case Query():
                async with aclosing(runner.query(command.sql)) as answers:
                    async for payloads in answers:
                        await self._connection.send(payloads)
                return []
            case StmtPrepare():
                return await runner.prepare(command.sql)
            case StmtExecute():
                return await runner.execute(command)
            case StmtSendLongData():
                runner.send_long_data(command)
                return []
            case StmtClose():
                runner.close_statement(command.statement_id)
                return []
            case StmtFetch():
                runner.fetch(command.statement_id)
            case StmtReset():
                runner.reset_statement(command.statement_id)
                return [ok(status=status)]
            case Ping():
                return [ok(status=status)]
            case InitDb():
                statements.use(command.database)
                return [ok(status=status)]
            case FieldList():
                return field_list(command.table, command.pattern, statements.context)
            case ProcessKill():
                kill_connection(command.connection_id, self._host, self)
                return [ok(status=status)]
            case ResetConnection():
                self.registered = None
                runner.reset()
                return [ok(status=self._variables.status)]
            case SetOption(option=0 | 1):
                runner.allow_several(allowed=command.option == 0)
                return [eof(status=status)]
            case Statistics():
                return [self._host.statistics().encode()]
            case Refresh():
                return await runner.refresh(command.options)
            case RegisterSlave():
                assert self.account is not None
                if not self.account.may(REPLICATION_SLAVE):
                    self._tell_not_a_replica(command.server_id)
                    raise self._login.denied(self.account.user, self.account.host)
                self.registered = command
                return [ok(status=status)]
        raise codes.UNKNOWN_COM_ERROR.error()

    @property
    def user(self) -> str:
        """Name that the client logged in by."""
        return self.account.user if self.account is not None else "unauthenticated user"

    @property
    def host(self) -> str:
        """Where the client is, as SHOW PROCESSLIST has it: name or address, and port."""
        port = self._connection.peer.rpartition(":")[2]
        name = self._connection.hosts[0]
        return f"{name}:{port}" if port.isdigit() else name

    @property
    def database(self) -> str | None:
        """What USE chose."""
        return None if self._statements is None else self._statements.database

    @property
    def is_idle_dump(self) -> bool:
        """Whether everything durable was sent."""
        return self._dump is not None and self._dump.idle

    def progress(self) -> Progress | None:
        """Return how far the session's dump is, None while it has none."""
        return None if self.dump_server_id is None or self._dump is None else self._dump.progress()

    def held_up_by(self) -> HeldUpBy:
        """Return what the session's dump waits for."""
        return HeldUpBy.NOTHING if self._dump is None else self._dump.held_up_by()

    # The dump

    def _tell_not_a_replica(self, server_id: int) -> None:
        """Log that who is logged in may not replicate: a replica shows its own side only."""
        self._host.refusals.tell(
            self.limit_key,
            "replica_refused",
            connection_id=self.id,
            peer=self._connection.peer,
            replica_server_id=server_id,
            reason=f"its account lacks {REPLICATION_SLAVE}",
        )

    async def _run_dump(self, command: BinlogDump | BinlogDumpGtid) -> None:
        """Dump to the end, with EOF; raises SqlError for an end by ERR, PeerGone."""
        account = self.account
        assert account is not None
        if not account.may(REPLICATION_SLAVE):
            self._tell_not_a_replica(command.server_id)
            raise codes.SPECIFIC_ACCESS_DENIED_ERROR.error(REPLICATION_SLAVE)
        request = make_request(command, self._variables, self._attributes)
        pace = self._host.pacing.for_reader(rate=account.dump_rate, delay=account.dump_delay)
        self._dump = DumpService(
            self._host, self._connection, request, self._variables, pace, account
        )
        if command.server_id:
            self._end_namesakes(command.server_id)
        self._host.sessions.begins_dump(self, command.server_id)
        self.dump_server_id = command.server_id
        try:
            await self._host.reset_ended()
            await self._dump.run()
        finally:
            self.dump_server_id = None
            self._host.sessions.ends_dump(self, command.server_id)
        await self._connection.send([eof(status=self._variables.status)])

    def _end_namesakes(self, server_id: int) -> None:
        """End other dumps to the same server id: one replica has come back, or two share an id."""
        for session in self._host.sessions.dumps_of(server_id):
            session.end(codes.SLAVE_SAME_ID.error())
