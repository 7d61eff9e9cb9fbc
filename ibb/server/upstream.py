"""
The client side of replication: log in to a primary and ask it for a dump, as a replica does.

Source: dump-protocol 1, 2.1, 8.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from ibb.protocol import error_codes as codes
from ibb.protocol import native_password
from ibb.protocol.capabilities import CLIENT_CAPABILITIES, effective
from ibb.protocol.command import BinlogDump, DumpFlag, Query, RegisterSlave
from ibb.protocol.errors import IbbError, ProtocolError, SqlError
from ibb.protocol.handshake import AuthSwitchRequest, Greeting, HandshakeResponse
from ibb.protocol.packet import PacketReader, frame
from ibb.protocol.reply import is_err, is_ok, parse_err
from ibb.protocol.result_set import ReplyReader, ResultSet
from ibb.protocol.rotate import FIRST_POSITION

from .config import READ_BYTES, ConfigError

if TYPE_CHECKING:
    from ibb.protocol.gtid import GtidPosition
    from ibb.protocol.reply import Ok

UPSTREAM_PORT_DEFAULT: Final = 3306
REPLY_PACKET_BYTES_MAX: Final = 1 << 20  # of an answer to one of our statements
MAJOR_MIN: Final = 10  # of the primary's version: below, it knows no MariaDB GTIDs
CLIENT_PACKET_BYTES_MAX: Final = 1 << 30  # what we say that we take
_COLLATION: Final = 45  # utf8mb4_general_ci
_CAPABILITY: Final = 4  # knows GTID events
_VERSION: Final = re.compile(r"(?:5\.5\.5-)?([0-9]{1,4})\.")


class UpstreamRefused(IbbError):  # noqa: N818 - a state of the world
    """This primary cannot be relayed from, now or later, until somebody changes something."""


@dataclass(frozen=True, slots=True)
class UpstreamAddress:
    """Where the primary is and who we are there."""

    host: str
    port: int
    user: str
    password: str

    @classmethod
    def parse(cls, url: str, password: str) -> UpstreamAddress:
        """
        Read `mariadb://USER@HOST:PORT`.

        Raises:
            ConfigError: it is anything else, or it holds a password, which `ps` would show.
        """
        try:
            parts = urlsplit(url)
            port = parts.port or UPSTREAM_PORT_DEFAULT
        except ValueError as error:
            raise ConfigError(f"upstream: {error}") from error
        if parts.scheme not in ("mariadb", "mysql") or not parts.hostname or not parts.username:
            raise ConfigError("upstream must be mariadb://USER@HOST:PORT")
        if parts.password is not None:
            raise ConfigError("upstream: put the password into upstream_password_file")
        return cls(parts.hostname, port, unquote(parts.username), password)

    def __str__(self) -> str:
        return f"{self.user}@{self.host}:{self.port}"


class Upstream:
    """One connection to a primary; made by `connect`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._packets = PacketReader(REPLY_PACKET_BYTES_MAX)
        self.server_version = ""

    @classmethod
    async def connect(cls, address: UpstreamAddress) -> Upstream:
        """
        Connect and log in.

        Raises:
            SqlError: the primary refuses, e.g. 1045.
            UpstreamRefused: it is too old, or wants another kind of login.
            OSError, ProtocolError, FormatError: it is not there, or no MariaDB.
        """
        reader, writer = await asyncio.open_connection(address.host, address.port, limit=READ_BYTES)
        upstream = cls(reader, writer)
        try:
            await upstream._log_in(address)
        except BaseException:
            await upstream.close()
            raise
        return upstream

    async def query(self, sql: str) -> Ok | ResultSet:
        """Run one statement; raises SqlError when the primary refuses it."""
        self._send(Query(sql).encode(), 0)
        self._packets.expected_seq = 1
        replies = ReplyReader()
        while True:
            reply = replies.add(await self._receive())
            if reply is not None:
                return reply

    async def value(self, sql: str, column: int = 0) -> str | None:
        """Return a value of the first row that *sql* answers; None: NULL, or no row."""
        reply = await self.query(sql)
        if not isinstance(reply, ResultSet) or not reply.rows or len(reply.columns) <= column:
            return None
        value = reply.rows[0][column]
        return value.decode(errors="replace") if isinstance(value, bytes) else None

    async def start_dump(
        self, position: GtidPosition, *, server_id: int, port: int, heartbeat_period: float
    ) -> bool:
        """
        Say what a replica says and ask for everything behind *position*.

        Args:
            position: the last GTID that we have in each domain.
            server_id: our own.
            port: the one that we listen on, to be shown by SHOW SLAVE HOSTS.
            heartbeat_period: seconds of silence before the primary sends a heartbeat.

        Returns:
            Whether events before the first format description carry a checksum.

        Raises:
            UpstreamRefused: the primary has our server id.
            SqlError: it refuses a statement.
        """
        await self.query("SELECT UNIX_TIMESTAMP()")
        theirs = await self.value("SHOW VARIABLES LIKE 'SERVER_ID'", 1)
        if theirs == str(server_id):
            raise UpstreamRefused(
                f"the primary has our server id {server_id}: set another server_id"
            )
        await self.query(f"SET @master_heartbeat_period= {int(heartbeat_period * 1e9)}")
        try:
            await self.query("SET @master_binlog_checksum= @@global.binlog_checksum")
        except SqlError as error:
            if error.code != codes.UNKNOWN_SYSTEM_VARIABLE.code:
                raise
        checksum = await self.value("SELECT @master_binlog_checksum")
        await self.query(f"SET @mariadb_slave_capability={_CAPABILITY}")
        await self.query("SELECT @@GLOBAL.gtid_domain_id")
        await self.query(f"SET @slave_connect_state='{position}'")
        await self.query("SET @slave_gtid_strict_mode=0")
        await self.query("SET @slave_gtid_ignore_duplicates=0")
        self._send(RegisterSlave(server_id, port=port).encode(), 0)
        self._packets.expected_seq = 1
        answer = await self._receive()
        if is_err(answer):
            raise parse_err(answer)
        dump = BinlogDump(FIRST_POSITION, DumpFlag.SEND_ANNOTATE_ROWS, server_id, "")
        self._send(dump.encode(), 0)
        return checksum == "CRC32"

    async def read(self, timeout_seconds: float) -> bytes:
        """
        Return the next bytes of the dump, packets cut anywhere; none when the primary closed.

        Raises:
            TimeoutError: nothing came, not even a heartbeat.
        """
        early = self._packets.detach()
        if early:
            return early
        async with asyncio.timeout(timeout_seconds):
            return await self._reader.read(READ_BYTES)

    async def close(self) -> None:
        """Drop the connection."""
        self._writer.transport.abort()
        try:
            await self._writer.wait_closed()
        except OSError:
            return  # it was gone already

    def _send(self, payload: bytes, seq: int) -> None:
        self._writer.write(frame(payload, seq))  # some hundred bytes: no need to wait

    async def _receive(self) -> bytes:
        while (packet := self._packets.next_packet()) is None:
            data = await self._reader.read(READ_BYTES)
            if not data:
                raise ConnectionResetError("the primary closed the connection")
            self._packets.feed(data)
        return packet.payload

    async def _log_in(self, address: UpstreamAddress) -> None:
        payload = await self._receive()
        if is_err(payload):
            raise parse_err(payload)
        greeting = Greeting.parse(payload)
        self.server_version = greeting.server_version
        version = _VERSION.match(greeting.server_version)
        if version is None or int(version[1]) < MAJOR_MIN:
            raise UpstreamRefused(f"the primary is too old: {greeting.server_version}")
        response = HandshakeResponse(
            effective(greeting.capabilities, CLIENT_CAPABILITIES),
            CLIENT_PACKET_BYTES_MAX,
            _COLLATION,
            address.user,
            native_password.scramble_response(address.password, greeting.scramble),
            auth_plugin=native_password.PLUGIN_NAME,
            attributes={"_client_name": "ibb"},
        )
        self._send(response.encode(greeting.capabilities), 1)
        self._packets.expected_seq = 2
        payload = await self._receive()
        switch = None if is_ok(payload) else AuthSwitchRequest.parse(payload)
        if switch is not None:
            if switch.plugin != native_password.PLUGIN_NAME:
                raise UpstreamRefused(f"the primary wants a login by {switch.plugin}")
            proof = native_password.scramble_response(address.password, switch.nonce)
            self._send(proof, 3)
            self._packets.expected_seq = 4
            payload = await self._receive()
        if is_err(payload):
            raise parse_err(payload)
        if not is_ok(payload):
            raise ProtocolError(f"unexpected answer to the login: {payload[:1].hex()}")
