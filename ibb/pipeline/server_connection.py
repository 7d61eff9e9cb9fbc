"""
A blocking client of a server: log in, ask, and read a dump.

Executors of Spark are blocking, and each reads a connection of its own. What is said on it is what
the relay says to its upstream. Source: dump-protocol 1.2 to 1.5, 2.1, 3.2, 8.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from typing import TYPE_CHECKING, Final, Self

from ibb.certificate_trust import OFF, VERIFY
from ibb.protocol import client_login
from ibb.protocol import error_codes as codes
from ibb.protocol.authentication import Channel
from ibb.protocol.client_login import LoginRefused, log_in_blocking
from ibb.protocol.command import BinlogDump, DumpFlag, Query
from ibb.protocol.errors import FormatError, ProtocolError, SqlError
from ibb.protocol.packet import PacketReader, frame, next_seq
from ibb.protocol.result_set import ReplyReader, ResultSet
from ibb.protocol.rotate import FIRST_POSITION

from .errors import ServerRefused
from .server_tls import begin_tls, peer_fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ibb.protocol.client_login import LoggedIn
    from ibb.protocol.gtid import GtidPosition
    from ibb.protocol.reply import Ok

    from .server_address import ServerAddress

CONNECT_SECONDS_MAX: Final = 10
SILENT_SECONDS_MAX: Final = 120  # of a server that owes an answer
READ_BYTES: Final = 256 << 10
ANSWER_BYTES_MAX: Final = 64 << 20  # of a packet that is no dump
_CAPABILITY: Final = 4  # knows GTID events
_CLIENT_NAME: Final = "ibb"  # by which a server of ours knows that we take events as stored


class ServerConnection:
    """
    One logged-in connection; a context manager that closes it.

    Args:
        address: the server.

    Raises:
        ServerRefused: it is not there, refuses the account, or is not to be trusted.
        OptionError: there is no password where the options say.
    """

    def __init__(self, address: ServerAddress) -> None:
        self._address = address
        self._packets = PacketReader(ANSWER_BYTES_MAX)
        self._seq = 0
        place = (address.host, address.port)
        password = address.password()
        try:
            self._link = socket.create_connection(place, CONNECT_SECONDS_MAX)
        except OSError as error:
            raise ServerRefused(f"server {address} is not there: {error}") from error
        try:
            self._link.settimeout(SILENT_SECONDS_MAX)
            self._log_in(password)
        except (OSError, SqlError, ProtocolError, FormatError) as error:
            self.close()
            raise ServerRefused(f"server {address}: {error}") from error
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Drop the connection."""
        with contextlib.suppress(OSError):
            self._link.close()

    def query(self, sql: str) -> Ok | ResultSet:
        """
        Run one statement.

        Raises:
            SqlError: the server refused it.
            OSError, ProtocolError, FormatError: the connection is of no use any more.
        """
        self._send(Query(sql).encode(), new_command=True)
        replies = ReplyReader()
        while (reply := replies.add(self._receive())) is None:
            pass
        return reply

    def rows(self, sql: str) -> list[tuple[str | None, ...]]:
        """Return the rows that a statement answers, as texts; raises as `query` does."""
        reply = self.query(sql)
        if not isinstance(reply, ResultSet):
            return []
        return [
            tuple(v.decode(errors="replace") if isinstance(v, bytes) else None for v in row)
            for row in reply.rows
        ]

    def dump(self, position: GtidPosition) -> Iterator[bytes]:
        """
        Ask for all groups behind a position that are there now, and yield the bytes of the packets.

        As a tool: without a server id, so that no replica is thrown out, and with an end.

        Raises:
            SqlError: the server refused to say what it is asked before.
            OSError, ProtocolError, FormatError: while iterating: the connection broke.
        """
        try:
            self.query("SET @master_binlog_checksum= @@global.binlog_checksum")
        except SqlError as error:
            if error.code != codes.UNKNOWN_SYSTEM_VARIABLE.code:
                raise
        self.query(f"SET @mariadb_slave_capability={_CAPABILITY}")
        self.query(f"SET @slave_connect_state='{position}'")
        self.query("SET @slave_gtid_strict_mode=1")
        self.query("SET @slave_gtid_ignore_duplicates=0")
        flags = DumpFlag.SEND_ANNOTATE_ROWS | DumpFlag.NON_BLOCK
        self._send(BinlogDump(FIRST_POSITION, flags, 0, "").encode(), new_command=True)
        return self._bytes()

    def _bytes(self) -> Iterator[bytes]:
        data = self._packets.detach()
        while True:
            if data:
                yield data
            data = self._link.recv(READ_BYTES)
            if not data:
                return

    def _log_in(self, password: str) -> None:
        """Log in. Source: dump-protocol 1.2 to 1.5."""
        address = self._address
        login = client_login.log_in(
            address.user, password, _CLIENT_NAME, self._wants_tls, server=f"server {address}"
        )
        try:
            done = log_in_blocking(login, self._send, self._receive, self._start_tls)
        except LoginRefused as error:
            raise ServerRefused(f"server {address}: {error}") from error
        self._check_trust(done)

    def _start_tls(self, request: bytes) -> Channel:
        self._send(request)
        if self._packets.detach():
            raise ProtocolError("the server sent something before TLS had begun")
        tls = self._address.tls
        self._link = begin_tls(self._link, tls, self._address.host)
        return Channel(private=True, trusted=tls.is_checked)

    def _wants_tls(self, offered: bool) -> bool:
        tls = self._address.tls
        if tls.demands_tls and not offered:
            raise ServerRefused(f"server {self._address} offers no TLS, which option tls demands")
        return offered and tls.mode != OFF

    def _check_trust(self, done: LoggedIn) -> None:
        """Refuse a server that may be another where the options say that it must be the right."""
        tls = self._address.tls
        if not isinstance(self._link, ssl.SSLSocket) or tls.is_checked or tls.mode != VERIFY:
            return
        if not done.proof(peer_fingerprint(self._link)):
            raise ServerRefused(
                f"the certificate of server {self._address} could not be verified: set tlsCa or"
                " tlsFingerprint (a server older than 11.4 cannot prove it by the password)"
            )

    def _send(self, payload: bytes, *, new_command: bool = False) -> None:
        seq = 0 if new_command else self._seq
        self._link.sendall(frame(payload, seq))
        chunks = len(payload) // 0xFFFFFF
        self._seq = next_seq(seq + chunks)
        self._packets.expected_seq = self._seq

    def _receive(self) -> bytes:
        while (packet := self._packets.next_packet()) is None:
            data = self._link.recv(READ_BYTES)
            if not data:
                raise ConnectionResetError("the server closed the connection")
            self._packets.feed(data)
        self._seq = next_seq(packet.seq)
        return packet.payload
