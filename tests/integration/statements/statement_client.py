"""A client that keeps all of an answer that clients look at, from any server, to be compared."""

import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

from ibb.protocol.capabilities import CLIENT_CAPABILITIES, Capability
from ibb.protocol.command import Query
from ibb.protocol.fields import FieldReader
from ibb.protocol.handshake import Greeting, HandshakeResponse
from ibb.protocol.native_password import PLUGIN_NAME, scramble_response
from ibb.protocol.packet import PacketReader, frame
from ibb.protocol.reply import is_eof, is_err, is_ok, parse_eof, parse_err, parse_ok
from ibb.protocol.result_set import Column, parse_row
from ibb.protocol.statement_command import STMT_CLOSE, STMT_EXECUTE, STMT_PREPARE

PACKET_BYTES_MAX = 64 << 20
SECONDS_MAX = 30.0
UTF8MB4_GENERAL_CI = 45
MORE_RESULTS = 0x0008
_NO_CURSOR_ONE_ITERATION = b"\0\1\0\0\0"


class Refused(NamedTuple):
    """An ERR packet."""

    code: int
    sqlstate: str
    message: str


class Done(NamedTuple):
    """An OK packet."""

    affected_rows: int
    status: int
    warnings: int
    info: str


@dataclass(frozen=True)
class Rows:
    """A result set; the rows of a prepared statement are payloads in binary."""

    columns: Sequence[Column]
    rows: Sequence[Any]
    status: int
    warnings: int

    def shape(self) -> "Rows":
        """Return it without what is in the rows."""
        return replace(self, rows=[None] * len(self.rows))


class Prepared(NamedTuple):
    """The answer to COM_STMT_PREPARE."""

    statement_id: int
    parameters: Sequence[Column]
    columns: Sequence[Column]


Answer = Refused | Done | Rows


class StatementClient:
    """
    One blocking connection over TCP on loopback.

    Attributes:
        oldest_file: what a test has put there.
    """

    oldest_file = ""

    def __init__(self, port: int, user: str, password: str, *, several: bool = True) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), SECONDS_MAX)
        self._packets = PacketReader(PACKET_BYTES_MAX)
        greeting = Greeting.parse(self._payload())
        capabilities = CLIENT_CAPABILITIES | Capability.PLUGIN_AUTH
        if several:
            capabilities |= Capability.MULTI_STATEMENTS | Capability.MULTI_RESULTS
        response = HandshakeResponse(
            capabilities,
            1 << 24,
            UTF8MB4_GENERAL_CI,
            user,
            scramble_response(password, greeting.scramble),
            auth_plugin=PLUGIN_NAME,
        )
        self._socket.sendall(frame(response.encode(greeting.capabilities), 1))
        answer = self._payload()
        assert is_ok(answer), parse_err(answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def query(self, sql: str) -> list[Answer]:
        """Return what COM_QUERY answers: one answer a statement."""
        self._send(Query(sql).encode())
        answers = [self._answer(binary=False)]
        while not isinstance(answers[-1], Refused) and answers[-1].status & MORE_RESULTS:
            answers.append(self._answer(binary=False))
        return answers

    def prepare(self, sql: str) -> Refused | Prepared:
        """Return what COM_STMT_PREPARE answers."""
        self._send(bytes([STMT_PREPARE]) + sql.encode())
        payload = self._payload()
        if is_err(payload):
            return _refused(payload)
        reader = FieldReader(payload, what="prepared")
        reader.u8()
        statement_id, columns, parameters = reader.u32(), reader.u16(), reader.u16()
        return Prepared(statement_id, self._definitions(parameters), self._definitions(columns))

    def execute(self, prepared: Prepared, parameters: bytes = b"") -> Answer:
        """Return what COM_STMT_EXECUTE answers; *parameters* as they are on the wire."""
        head = bytes([STMT_EXECUTE]) + prepared.statement_id.to_bytes(4, "little")
        self._send(head + _NO_CURSOR_ONE_ITERATION + parameters)
        return self._answer(binary=True)

    def close_statement(self, prepared: Prepared) -> None:
        """Have the server forget a statement; nothing answers."""
        self._send(bytes([STMT_CLOSE]) + prepared.statement_id.to_bytes(4, "little"))

    def _definitions(self, count: int) -> list[Column]:
        columns = [Column.parse(self._payload()) for _ in range(count)]
        if count:
            assert is_eof(self._payload())
        return columns

    def _answer(self, *, binary: bool) -> Answer:
        payload = self._payload()
        if is_err(payload):
            return _refused(payload)
        if is_ok(payload):
            ok = parse_ok(payload)
            return Done(ok.affected_rows, ok.status, ok.warnings, str(ok.info))
        columns = self._definitions(FieldReader(payload, what="column count").lenenc())
        rows: list[Any] = []
        while not is_eof(payload := self._payload()):
            if is_err(payload):
                return _refused(payload)
            rows.append(payload if binary else parse_row(payload, len(columns)))
        end = parse_eof(payload)
        return Rows(columns, rows, end.status, end.warnings)

    def _send(self, payload: bytes) -> None:
        self._socket.sendall(frame(payload, 0))

    def _payload(self) -> bytes:
        self._packets.expected_seq = None
        while (packet := self._packets.next_packet()) is None:
            data = self._socket.recv(1 << 16)
            if not data:
                raise EOFError("the server has closed the connection")
            self._packets.feed(data)
        return bytes(packet.payload)


def _refused(payload: bytes) -> Refused:
    error = parse_err(payload)
    return Refused(error.code, error.sqlstate, error.message)
