"""
From the greeting to a proven password: TLS where asked for, then the account's methods in turn.

A user who does not exist takes the same way as one who does: see `decoys`.
Source: dump-protocol 1.2 to 1.5; 10, traps 21 to 23.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ibb.protocol import error_codes as codes
from ibb.protocol import native_password, socket_peer
from ibb.protocol.authentication import Channel, Verdict, certificate_proof
from ibb.protocol.capabilities import SERVER_CAPABILITIES, Capability
from ibb.protocol.change_user import parse_change_user
from ibb.protocol.character_sets import UTF8MB4
from ibb.protocol.errors import ProtocolError
from ibb.protocol.handshake import (
    AuthMoreData,
    AuthSwitchRequest,
    Greeting,
    HandshakeResponse,
    SslRequest,
)
from ibb.server.config import LOGIN_PACKET_BYTES_MAX

from .accounts import REQUIRE_NOTHING, REQUIRE_X509
from .privileges import CONNECTION_ADMIN

if TYPE_CHECKING:
    from ibb.protocol.authentication import Exchange, Method
    from ibb.protocol.errors import SqlError
    from ibb.server.connections.connection import Connection
    from ibb.server.session_host import SessionHost

    from .accounts import Account
    from .decoys import Auth

USER_CHARS_MAX: Final = 128  # what is behind counts for nothing, as in MariaDB
_ALPHABET: Final = bytes(range(0x21, 0x7F))


class AccessDenied(Exception):  # noqa: N818 - an outcome
    """
    The login failed; the text is for the log, and so without any name: people type passwords there.

    Attributes:
        user: whom it claimed to be.
        error: what the client is told.
    """

    def __init__(self, reason: str, user: str, error: SqlError) -> None:
        super().__init__(reason)
        self.user = user
        self.error = error


@dataclass(frozen=True, slots=True)
class LoggedIn:
    """
    A client that has proven who it is.

    Attributes:
        account: whose rights it has.
        response: what it said of itself.
        info: for the OK, by which it may trust the certificate.
    """

    account: Account
    response: HandshakeResponse
    info: bytes


class Login:
    """
    The login of one client.

    Args:
        host: the server around it.
        connection: the client's.
        connection_id: what KILL takes.

    Attributes:
        used_password: the client has sent something that could be one.
    """

    def __init__(self, host: SessionHost, connection: Connection, connection_id: int) -> None:
        self._host = host
        self._connection = connection
        self._connection_id = connection_id
        self._scramble = random_text(native_password.NONCE_BYTES)
        self._response: HandshakeResponse
        self.used_password = False
        tls = Capability.SSL if host.tls is not None else Capability(0)
        self._capabilities = SERVER_CAPABILITIES & ~Capability.SSL | tls

    async def run(self) -> LoggedIn:
        """
        Greet the client and have it prove who it is; the OK is left to the caller.

        Raises:
            AccessDenied: it could not; nothing more is to be read from it.
            SqlError: it could, but there is no room for it.
            ProtocolError, FormatError: it speaks something else.
            OSError: the connection ended.
        """
        connection = self._connection
        greeting = Greeting(
            f"5.5.5-{self._host.config.server_version}",
            self._connection_id,
            self._scramble,
            self._capabilities,
            UTF8MB4,
        )
        connection.seq = 0
        await connection.send([greeting.encode()])
        payload = await self._receive()
        if SslRequest.parse(payload) is not None:
            if self._host.tls is None:
                raise ProtocolError("the client asks for TLS, which was not offered")
            await connection.start_tls(self._host.tls)
            payload = await self._receive()
        self._response = HandshakeResponse.parse(payload, self._capabilities)
        if self._host.config.require_tls and not connection.private:
            raise self._denied(self._response, "TLS is required")
        return await self._check(self._response)

    async def change_user(self, payload: bytes) -> LoggedIn:
        """
        Have a client that has logged in prove to be another user, by COM_CHANGE_USER.

        Raises:
            AccessDenied, SqlError, FormatError, OSError: as `run`.
        """
        self.used_password = False
        return await self._check(parse_change_user(payload, self._capabilities, self._response))

    async def _check(self, response: HandshakeResponse) -> LoggedIn:
        """Have the client prove who *response* says it is."""
        response = replace(response, user=response.user[:USER_CHARS_MAX])
        connection = self._connection
        if self._host.guard.is_blocked(connection.limit_key):
            raise codes.HOST_IS_BLOCKED.error(connection.hosts[0])
        account, trust_key = await self._authenticate(response)
        self._check_count(account)
        return LoggedIn(account, response, self._certificate_proof(trust_key))

    async def _authenticate(self, response: HandshakeResponse) -> tuple[Account, bytes]:
        """Return the account that the client has proven to own, and what both sides know."""
        accounts, connection = self._host.accounts, self._connection
        account = accounts.find(response.user, connection.hosts)
        decoy = accounts.decoy(response.user)  # for everybody, needed or not: it takes time
        trust_key = await self._proof(decoy if account is None else account.auth, response)
        if account is None or trust_key is None:
            raise self._denied(response, "wrong user or password")
        if account.require != REQUIRE_NOTHING and not connection.encrypted:
            raise self._denied(response, "the account requires TLS")
        if account.require == REQUIRE_X509 and connection.peer_certificate() is None:
            raise self._denied(response, "the account requires a certificate")
        return account, trust_key

    async def _proof(self, auth: Auth, response: HandshakeResponse) -> bytes | None:
        """
        Try the methods of *auth*, first the one that the client has chosen by itself.

        Returns:
            What both sides know by the first method whose proof is right; None: by none.
        """
        chosen = response.auth_plugin or native_password.PLUGIN_NAME
        methods = [(self._host.methods[name], text) for name, text in auth]
        methods.sort(key=lambda each: each[0].plugin != chosen)
        for method, text in methods:
            # The greeting's scramble is for this plugin; by others it is an answer to nothing.
            answers = chosen == method.plugin == native_password.PLUGIN_NAME
            verdict = await self._run(method, text, response.auth_response if answers else None)
            if verdict.proven:
                if verdict.last_word is not None:
                    await self._connection.send([AuthMoreData(verdict.last_word).encode()])
                return method.trust_key(text)
        return None

    async def _run(self, method: Method, text: str, answer: bytes | None) -> Verdict:
        """
        Run one method's exchange with the client.

        Args:
            method: what to run.
            text: what is kept of the password.
            answer: the client's to the greeting if it was by this method, else None.
        """
        connection = self._connection
        native = method.plugin == native_password.PLUGIN_NAME
        challenge = self._scramble if native else random_text(method.challenge_bytes)
        exchange = method.exchange(text, challenge, await self._channel(method))
        step = await self._advance(method, exchange, None)
        switched = answer is not None
        if answer is not None:
            self.used_password = bool(answer)
            step = await self._advance(method, exchange, answer)
        while not isinstance(step, Verdict):
            said = AuthMoreData(step) if switched else AuthSwitchRequest(method.plugin, step)
            switched = True
            await connection.send([said.encode()])
            answer = await self._receive()
            self.used_password = self.used_password or bool(answer)
            step = await self._advance(method, exchange, answer)
        return step

    async def _channel(self, method: Method) -> Channel:
        """Return what *method* may know of the connection."""
        connection, peer_user = self._connection, ""
        if method.name == socket_peer.METHOD_NAME:  # a directory in the network may be asked for it
            loop = asyncio.get_running_loop()
            peer_user = await loop.run_in_executor(self._host.pools.logins, connection.peer_user)
        return Channel(private=connection.private, peer_user=peer_user)

    async def _advance(
        self, method: Method, exchange: Exchange, answer: bytes | None
    ) -> bytes | Verdict:
        if not method.costly or answer is None:
            return _step(exchange, answer)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._host.pools.logins, _step, exchange, answer)

    async def _receive(self) -> bytes:
        """Return the next payload of the exchange."""
        self._connection.expect(LOGIN_PACKET_BYTES_MAX, self._connection.seq)
        return (await self._connection.receive()).payload

    def _check_count(self, account: Account) -> None:
        """Raise SqlError if the account has all the connections that it may have."""
        config, sessions = self._host.config, self._host.sessions
        is_chief = account.may(CONNECTION_ADMIN)  # whom only a limit of its own holds
        if len(sessions) > config.max_connections and not is_chief:
            raise codes.CON_COUNT_ERROR.error()
        count = sessions.with_account(account)
        if 0 < account.max_connections <= count:
            limit = account.max_connections
            raise codes.USER_LIMIT_REACHED.error(account.user, "max_user_connections", limit)
        if account.max_connections == 0 < config.max_user_connections <= count and not is_chief:
            raise codes.TOO_MANY_USER_CONNECTIONS.error(account.user)

    def _certificate_proof(self, trust_key: bytes) -> bytes:
        fingerprint = self._connection.fingerprint
        if not fingerprint or not trust_key:
            return b""
        return certificate_proof(trust_key, self._scramble, fingerprint)

    def denied(self, user: str, host: str) -> SqlError:
        """Return error 1045, as it is also told to who is logged in and may not be a replica."""
        return codes.ACCESS_DENIED_ERROR.error(user, host, "YES" if self.used_password else "NO")

    def _denied(self, response: HandshakeResponse, reason: str) -> AccessDenied:
        self.used_password = self.used_password or bool(response.auth_response)
        error = self.denied(response.user, self._connection.hosts[0])
        return AccessDenied(f"access denied: {reason}", response.user, error)


def random_text(size: int) -> bytes:
    """Return a challenge of *size* bytes without NUL, which some clients take for its end."""
    return bytes(secrets.choice(_ALPHABET) for _ in range(size))


def _step(exchange: Exchange, answer: bytes | None) -> bytes | Verdict:
    """Send *answer* into the exchange; return what it says next, or what it has found."""
    try:
        return next(exchange) if answer is None else exchange.send(answer)
    except StopIteration as end:
        verdict: Verdict = end.value
        return verdict
