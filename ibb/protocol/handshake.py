"""
The packets from connecting to being logged in, for both sides.

    server                        client
    Greeting               0  ->
                              <-  1  SslRequest, then TLS, then one id later
                              <-  1  HandshakeResponse
    AuthSwitchRequest      2  ->       only if the client's plugin is not the user's
                              <-  3  the plugin's answer, a bare payload
    AuthMoreData           4  ->       only plugins that go on talking
    OK or ERR (`reply`)       ->

Texts are UTF-8; bytes that are not become U+FFFD, so that whatever a stranger sends can be
logged. All `parse` raise `FormatError` (or `Truncated`) on a malformed payload.
Source: dump-protocol 1.2 to 1.5.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct
from typing import TYPE_CHECKING, Final

from .capabilities import REQUIRED_CAPABILITIES, Capability, effective, join
from .character_sets import decoded_name
from .errors import FormatError, ProtocolError
from .fields import FieldReader, lenenc, lestr, zstr
from .native_password import NONCE_BYTES, PLUGIN_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .fields import Buffer

PROTOCOL_VERSION: Final = 10
STATUS_AUTOCOMMIT: Final = 0x0002
CONNECTION_ATTRIBUTES_MAX: Final = 256  # pairs; real clients send six to ten

_GREETING_MIDDLE: Final = Struct("<HBHHB6xI")  # capabilities to extended capabilities
_NONCE_HEAD_BYTES: Final = 8  # of the scramble, before the capabilities
_SWITCH: Final = 0xFE
_MORE_DATA: Final = 0x01

_RESPONSE_HEAD: Final = Struct("<IIB19xI")  # capabilities, largest packet, collation, extended
SSL_REQUEST_BYTES: Final = _RESPONSE_HEAD.size  # the head of a response and nothing else


@dataclass(frozen=True, slots=True)
class Greeting:
    """
    What a server says first.

    Args:
        scramble: 20 random bytes of 0x21 to 0x7e; some clients take them for a C string.
        connection_id: what KILL takes.
        collation: below 256.
    """

    server_version: str
    connection_id: int
    scramble: bytes
    capabilities: Capability
    collation: int
    status: int = STATUS_AUTOCOMMIT
    auth_plugin: str = PLUGIN_NAME

    def encode(self) -> bytes:
        """Return the payload."""
        assert len(self.scramble) == NONCE_BYTES
        assert 0 not in self.scramble
        capabilities = int(self.capabilities)
        return b"".join(
            (
                bytes([PROTOCOL_VERSION]),
                zstr(self.server_version.encode()),
                self.connection_id.to_bytes(4, "little"),
                self.scramble[:_NONCE_HEAD_BYTES],
                b"\0",
                _GREETING_MIDDLE.pack(
                    capabilities & 0xFFFF,
                    self.collation,
                    self.status,
                    capabilities >> 16 & 0xFFFF,
                    NONCE_BYTES + 1,
                    capabilities >> 32,
                ),
                self.scramble[_NONCE_HEAD_BYTES:],
                b"\0",
                zstr(self.auth_plugin.encode()),
            )
        )

    @classmethod
    def parse(cls, payload: Buffer) -> Greeting:
        """
        Read a server's greeting. An ERR instead of it is the caller's to notice.

        Raises:
            ProtocolError: another protocol version, or a server too old to log in to.
        """
        reader = FieldReader(payload, what="greeting")
        version = reader.u8()
        if version != PROTOCOL_VERSION:
            raise ProtocolError(f"the server speaks protocol {version}, not {PROTOCOL_VERSION}")
        server_version = _text(reader.zstr())
        connection_id = reader.u32()
        scramble = reader.take(_NONCE_HEAD_BYTES)
        reader.skip(1)
        middle = reader.take(_GREETING_MIDDLE.size)
        low, collation, status, high, scramble_bytes, extended = _GREETING_MIDDLE.unpack(middle)
        capabilities = join(high << 16 | low, extended)
        if not capabilities & REQUIRED_CAPABILITIES == REQUIRED_CAPABILITIES:
            raise ProtocolError(f"the server {server_version} does not speak protocol 4.1")
        scramble += reader.take(NONCE_BYTES - _NONCE_HEAD_BYTES)
        reader.skip(max(scramble_bytes - NONCE_BYTES, 1))  # the NUL, and what a longer one adds
        plugin = PLUGIN_NAME
        if capabilities & Capability.PLUGIN_AUTH:
            plugin = _text(reader.zstr())
        return cls(server_version, connection_id, scramble, capabilities, collation, status, plugin)


@dataclass(frozen=True, slots=True)
class SslRequest:
    """The head of a `HandshakeResponse` alone: TLS begins after it."""

    capabilities: Capability
    packet_bytes_max: int
    collation: int

    def encode(self) -> bytes:
        """Return the payload."""
        assert self.capabilities & Capability.SSL
        return _response_head(self.capabilities, self.packet_bytes_max, self.collation)

    @classmethod
    def parse(cls, payload: Buffer) -> SslRequest | None:
        """Read a client's first payload; None when it is a whole `HandshakeResponse`."""
        if len(payload) != SSL_REQUEST_BYTES:
            return None
        low, packet_bytes_max, collation, extended = _RESPONSE_HEAD.unpack(payload)
        capabilities = join(low, extended)
        if not capabilities & Capability.SSL:
            return None
        return cls(capabilities, packet_bytes_max, collation)


@dataclass(frozen=True, slots=True)
class HandshakeResponse:
    """
    What a client answers to the greeting.

    Args:
        capabilities: the client's own; a field is there only if the greeting had its bit, too.
        packet_bytes_max: the longest packet that the client takes.
        auth_response: the answer of *auth_plugin* to the greeting's scramble.
        attributes: what the client tells about itself; only `mariadb-binlog` has `program_name`.
    """

    capabilities: Capability
    packet_bytes_max: int
    collation: int
    user: str
    auth_response: bytes
    database: str | None = None
    auth_plugin: str | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)

    def encode(self, server: Capability) -> bytes:
        """Return the payload for a server with these capabilities."""
        both = effective(server, self.capabilities)
        parts = [
            _response_head(self.capabilities, self.packet_bytes_max, self.collation),
            zstr(self.user.encode()),
        ]
        if both & Capability.PLUGIN_AUTH_LENENC_CLIENT_DATA:
            parts.append(lestr(self.auth_response))
        elif both & Capability.SECURE_CONNECTION:
            parts.append(len(self.auth_response).to_bytes(1, "little") + self.auth_response)
        else:
            parts.append(zstr(self.auth_response))
        if both & Capability.CONNECT_WITH_DB:
            parts.append(zstr((self.database or "").encode()))
        if both & Capability.PLUGIN_AUTH:
            parts.append(zstr((self.auth_plugin or "").encode()))
        if both & Capability.CONNECT_ATTRS:
            pairs = b"".join(
                lestr(key.encode()) + lestr(value.encode())
                for key, value in self.attributes.items()
            )
            parts.append(lenenc(len(pairs)) + pairs)
        return b"".join(parts)

    @classmethod
    def parse(cls, payload: Buffer, server: Capability) -> HandshakeResponse:
        """
        Read a client's answer to a greeting with the capabilities *server*.

        Fields that the client announced but left out at the end count as empty; what follows the
        last field is ignored. Real servers forgive both.

        Raises:
            ProtocolError: a client too old to talk to.
        """
        reader = FieldReader(payload, what="handshake response")
        head = reader.take(_RESPONSE_HEAD.size)
        low, packet_bytes_max, collation, extended = _RESPONSE_HEAD.unpack(head)
        capabilities = join(low, extended)
        both = effective(server, capabilities)
        if not both & Capability.PROTOCOL_41:
            raise ProtocolError("the client does not speak protocol 4.1")
        user = decoded_name(reader.zstr(), collation)
        if both & Capability.PLUGIN_AUTH_LENENC_CLIENT_DATA:
            auth_response = reader.lestr()
        elif both & Capability.SECURE_CONNECTION:
            auth_response = reader.u8str()
        else:
            auth_response = reader.zstr()
        database = plugin = None
        if both & Capability.CONNECT_WITH_DB and reader.remaining:
            database = decoded_name(reader.zstr(), collation)
        if both & Capability.PLUGIN_AUTH and reader.remaining:
            plugin = _text(reader.zstr())
        attributes = {}
        if both & Capability.CONNECT_ATTRS and reader.remaining:
            attributes = read_attributes(reader)
        return cls(
            capabilities,
            packet_bytes_max,
            collation,
            user,
            auth_response,
            database,
            plugin,
            attributes,
        )


@dataclass(frozen=True, slots=True)
class AuthSwitchRequest:
    """
    The server wants another plugin's proof.

    Args:
        data: what the plugin needs; mysql_native_password has 20 bytes and a NUL, see `nonce`.
    """

    plugin: str
    data: bytes

    @classmethod
    def native(cls, nonce: bytes) -> AuthSwitchRequest:
        """Ask for mysql_native_password over *nonce*, 20 bytes."""
        assert len(nonce) == NONCE_BYTES
        return cls(PLUGIN_NAME, nonce + b"\0")

    @property
    def nonce(self) -> bytes:
        """
        The 20 bytes to answer with mysql_native_password.

        Raises:
            FormatError: the data is shorter.
        """
        if len(self.data) < NONCE_BYTES:
            raise FormatError(f"a nonce of {len(self.data)} bytes, not {NONCE_BYTES}")
        return self.data[:NONCE_BYTES]

    def encode(self) -> bytes:
        """Return the payload."""
        return bytes([_SWITCH]) + zstr(self.plugin.encode()) + self.data

    @classmethod
    def parse(cls, payload: Buffer) -> AuthSwitchRequest | None:
        """
        Read a server's answer to a `HandshakeResponse`; None when it is something else.

        Raises:
            ProtocolError: the server asks for the password hash of before 2003.
        """
        reader = FieldReader(payload, what="authentication switch request")
        if reader.u8() != _SWITCH:
            return None
        if not reader.remaining:
            raise ProtocolError("the server wants an old-style password")
        return cls(_text(reader.zstr()), reader.rest())


@dataclass(frozen=True, slots=True)
class AuthMoreData:
    """A second or later packet of the server's side of a plugin."""

    data: bytes

    def encode(self) -> bytes:
        """Return the payload."""
        return bytes([_MORE_DATA]) + self.data

    @classmethod
    def parse(cls, payload: Buffer) -> AuthMoreData | None:
        """Read a server's packet; None when it is something else."""
        reader = FieldReader(payload, what="authentication data")
        return cls(reader.rest()) if reader.u8() == _MORE_DATA else None


def _response_head(capabilities: Capability, packet_bytes_max: int, collation: int) -> bytes:
    bits = int(capabilities)
    return _RESPONSE_HEAD.pack(bits & 0xFFFFFFFF, packet_bytes_max, collation, bits >> 32)


def read_attributes(reader: FieldReader) -> dict[str, str]:
    """Take connection attributes; raises FormatError above `CONNECTION_ATTRIBUTES_MAX`."""
    block = FieldReader(reader.lestr(), what="connection attributes")
    attributes: dict[str, str] = {}
    while block.remaining:
        if len(attributes) == CONNECTION_ATTRIBUTES_MAX:
            raise FormatError(f"more than {CONNECTION_ATTRIBUTES_MAX} connection attributes")
        key = _text(block.lestr())
        attributes[key] = _text(block.lestr())
    return attributes


def _text(data: bytes) -> str:
    return data.decode(errors="replace")
