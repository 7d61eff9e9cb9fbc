"""
A blocking client of a server: log in, ask, and read a dump.

Executors of Spark are blocking, and each reads a connection of its own. What is said on it is what
the relay says to its upstream. Source: dump-protocol 1.2 to 1.5, 2.1, 3.2, 8.
"""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
from typing import TYPE_CHECKING, Final, Self

from ibb.protocol import (
    caching_sha2_password,
    ed25519_password,
    native_password,
    parsec_password,
)
from ibb.protocol import error_codes as codes
from ibb.protocol.authentication import CannotAuthenticate, Channel, proves_certificate
from ibb.protocol.capabilities import CLIENT_CAPABILITIES, Capability, effective
from ibb.protocol.command import BinlogDump, DumpFlag, Query
from ibb.protocol.errors import FormatError, ProtocolError, SqlError
from ibb.protocol.handshake import (
    AuthMoreData,
    AuthSwitchRequest,
    Greeting,
    HandshakeResponse,
    SslRequest,
)
from ibb.protocol.packet import PacketReader, frame, next_seq
from ibb.protocol.reply import is_err, is_ok, parse_err, parse_ok
from ibb.protocol.result_set import ReplyReader, ResultSet
from ibb.protocol.rotate import FIRST_POSITION

from .errors import ServerRefused
from .server_tls import OFF, PREFER, UNVERIFIED, VERIFY, certificate_fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ibb.protocol.authentication import ClientExchange
    from ibb.protocol.gtid import GtidPosition
    from ibb.protocol.reply import Ok

    from .server_address import ServerAddress

CONNECT_SECONDS_MAX: Final = 10
SILENT_SECONDS_MAX: Final = 120  # of a server that owes an answer
READ_BYTES: Final = 256 << 10
PACKET_BYTES_MAX: Final = 1 << 30  # what we say that we take
ANSWER_BYTES_MAX: Final = 64 << 20  # of a packet that is no dump
LOGIN_ROUNDS_MAX: Final = 16  # packets that a server may ask for before it says OK or ERR
MAJOR_MIN: Final = 10  # of the server's version: below, it knows no MariaDB GTIDs
_COLLATION: Final = 45  # utf8mb4_general_ci
_CAPABILITY: Final = 4  # knows GTID events
_CLIENT_NAME: Final = "ibb"  # by which a server of ours knows that we take events as stored
_VERSION: Final = re.compile(r"(?:5\.5\.5-)?([0-9]{1,4})\.")
_FAST_OK: Final = b"\x03"  # of caching_sha2_password: the OK follows
_EXCHANGES: Final[Mapping[str, Callable[[str, bytes, Channel], ClientExchange]]] = {
    method.PLUGIN_NAME: method.client_exchange
    for method in (native_password, ed25519_password, parsec_password, caching_sha2_password)
}


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
        self.query("SET @slave_gtid_strict_mode=0")
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
        greeting = self._greeting()
        capabilities = effective(greeting.capabilities, CLIENT_CAPABILITIES)
        if self._wants_tls(greeting):
            capabilities |= Capability.SSL
            self._send(SslRequest(capabilities, PACKET_BYTES_MAX, _COLLATION).encode())
            if self._packets.detach():
                raise ProtocolError("the server sent something before TLS had begun")
            self._link = address.tls.begin(self._link, address.host)
        exchange = native_password.client_exchange(password, greeting.scramble, Channel())
        response = HandshakeResponse(
            capabilities,
            PACKET_BYTES_MAX,
            _COLLATION,
            address.user,
            next(exchange),
            auth_plugin=native_password.PLUGIN_NAME,
            attributes={"_client_name": _CLIENT_NAME},
        )
        self._send(response.encode(greeting.capabilities))
        done, trust_key = self._prove(exchange, password)
        self._check_trust(done, trust_key, greeting)

    def _greeting(self) -> Greeting:
        payload = self._receive()
        if is_err(payload):
            raise parse_err(payload)
        greeting = Greeting.parse(payload)
        version = _VERSION.match(greeting.server_version)
        if version is None or int(version[1]) < MAJOR_MIN:
            text = f"server {self._address} is too old: {greeting.server_version}"
            raise ServerRefused(text)
        return greeting

    def _wants_tls(self, greeting: Greeting) -> bool:
        mode = self._address.tls.mode
        if mode == OFF:
            return False
        if greeting.capabilities & Capability.SSL:
            return True
        if mode != PREFER:
            raise ServerRefused(f"server {self._address} offers no TLS, which option tls demands")
        return False

    def _prove(self, exchange: ClientExchange, password: str) -> tuple[Ok, bytes]:
        """Answer the server until it says OK; return that, and what only it and we know."""
        private = isinstance(self._link, ssl.SSLSocket)
        trusted = private and self._address.tls.is_checked
        channel = Channel(private=private, trusted=trusted)
        for _ in range(LOGIN_ROUNDS_MAX):
            payload = self._receive()
            if is_err(payload):
                raise parse_err(payload)
            if is_ok(payload):
                return parse_ok(payload), _trust_key(exchange)
            more = AuthMoreData.parse(payload)
            if more is not None and more.data == _FAST_OK:
                continue
            try:
                if more is not None:
                    self._send(exchange.send(more.data))
                    continue
                switch = AuthSwitchRequest.parse(payload)
                if switch is None:
                    raise ProtocolError(f"unexpected answer to the login: {payload[:1].hex()}")
                if switch.plugin not in _EXCHANGES:
                    text = f"server {self._address} wants a login by {switch.plugin}"
                    raise ServerRefused(text)
                exchange = _EXCHANGES[switch.plugin](password, switch.data, channel)
                self._send(next(exchange))
            except StopIteration as end:
                raise ProtocolError("the server asks on after the login's last packet") from end
            except CannotAuthenticate as error:
                raise ServerRefused(f"server {self._address}: {error}") from error
        raise ProtocolError(f"no answer to the login in {LOGIN_ROUNDS_MAX} packets")

    def _check_trust(self, done: Ok, trust_key: bytes, greeting: Greeting) -> None:
        """Refuse a server that may be another where the options say that it must be the right."""
        tls = self._address.tls
        if not isinstance(self._link, ssl.SSLSocket) or tls.is_checked or tls.mode == UNVERIFIED:
            return
        fingerprint = certificate_fingerprint(self._link)
        proven = proves_certificate(done.info, trust_key, greeting.scramble, fingerprint)
        if not proven and tls.mode == VERIFY:
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


def _trust_key(exchange: ClientExchange) -> bytes:
    try:
        exchange.send(b"")
    except StopIteration as end:
        trust_key: bytes = end.value
        return trust_key
    return b""  # it said OK before its method was through
