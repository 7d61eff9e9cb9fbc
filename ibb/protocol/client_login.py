"""
The client's half of a login, by whatever method the server asks for.

It is a generator that gives what is to be sent and takes what comes back, so that it serves
connections that wait and those that block alike. Source: dump-protocol 1.2 to 1.5.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from . import caching_sha2_password, ed25519_password, native_password, parsec_password
from .authentication import CannotAuthenticate, Channel, ClientExchange, proves_certificate
from .capabilities import CLIENT_CAPABILITIES, Capability, effective
from .errors import IbbError, ProtocolError
from .handshake import AuthMoreData, AuthSwitchRequest, Greeting, HandshakeResponse, SslRequest
from .reply import Ok, is_err, is_ok, parse_err, parse_ok

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

MAJOR_MIN: Final = 10  # of the server's version: below, it knows no MariaDB GTIDs
CLIENT_PACKET_BYTES_MAX: Final = 1 << 30  # what we say that we take
LOGIN_ROUNDS_MAX: Final = 16  # packets that a server may ask for before it says OK or ERR
_COLLATION: Final = 45  # utf8mb4_general_ci
_VERSION: Final = re.compile(r"(?:5\.5\.5-)?([0-9]{1,4})\.")
_FAST_OK: Final = b"\x03"  # of caching_sha2_password: the OK follows

# The client's half of each method, by the plugin on the wire.
CLIENT_EXCHANGES: Final[Mapping[str, Callable[[str, bytes, Channel], ClientExchange]]] = {
    method.PLUGIN_NAME: method.client_exchange
    for method in (native_password, ed25519_password, parsec_password, caching_sha2_password)
}


class LoginRefused(IbbError):  # noqa: N818 - a state of the world
    """The server is too old, or wants a login that we have not; it says which."""


class StartTls(NamedTuple):
    """Send *request*, then encrypt; the answer is the channel that there is now."""

    request: bytes


class LoggedIn(NamedTuple):
    """
    A login that the server took.

    Attributes:
        version: of the server.
        channel: how the connection is protected.
        proof: tells of a certificate's fingerprint whether the server has proven it by knowing
            the password, as those from 11.4 on do.
    """

    version: str
    channel: Channel
    proof: Callable[[bytes], bool]


Login: TypeAlias = "Generator[bytes | StartTls | None, bytes | Channel, LoggedIn]"


def log_in(
    user: str,
    password: str,
    client_name: str,
    wants_tls: Callable[[bool], bool],
    *,
    server: str,
) -> Login:
    """
    Log in.

    It yields payloads to be sent, which may be empty, and None where there is nothing to say; each
    is answered by the next payload that the server sends, `StartTls` by a channel instead.

    Args:
        user: the account.
        password: of it.
        client_name: what the server is told that we are.
        wants_tls: tells whether to encrypt, given that the server offers it or not.
        server: how errors call it, `the primary`.

    Returns:
        What came of it.

    Raises:
        SqlError: the server refuses, e.g. 1045.
        LoginRefused: it is no server to log in at.
        ProtocolError, FormatError: it speaks something else.
    """
    greeting = _greeting(_payload((yield None)), server)
    capabilities = effective(greeting.capabilities, CLIENT_CAPABILITIES)
    channel = Channel()
    if wants_tls(bool(greeting.capabilities & Capability.SSL)):
        capabilities |= Capability.SSL
        request = SslRequest(capabilities, CLIENT_PACKET_BYTES_MAX, _COLLATION)
        begun = yield StartTls(request.encode())
        assert isinstance(begun, Channel)
        channel = begun
    exchange = native_password.client_exchange(password, greeting.scramble, Channel())
    response = HandshakeResponse(
        capabilities,
        CLIENT_PACKET_BYTES_MAX,
        _COLLATION,
        user,
        next(exchange),
        auth_plugin=native_password.PLUGIN_NAME,
        attributes={"_client_name": client_name},
    )
    first = response.encode(greeting.capabilities)
    done, trust_key = yield from _prove(password, exchange, channel, first, server)

    def proof(fingerprint: bytes) -> bool:
        return proves_certificate(done.info, trust_key, greeting.scramble, fingerprint)

    return LoggedIn(greeting.server_version, channel, proof)


def log_in_blocking(
    login: Login,
    send: Callable[[bytes], None],
    receive: Callable[[], bytes],
    start_tls: Callable[[bytes], Channel],
) -> LoggedIn:
    """
    Go through a login on a connection that blocks; raises what its parts raise.

    Args:
        login: from `log_in`.
        send: sends a payload as the next packet.
        receive: returns the next payload.
        start_tls: sends a request and encrypts.
    """
    try:
        step = next(login)
        while True:
            if isinstance(step, StartTls):
                step = login.send(start_tls(step.request))
                continue
            if step is not None:
                send(step)
            step = login.send(receive())
    except StopIteration as end:
        done: LoggedIn = end.value
        return done


def _prove(
    password: str, exchange: ClientExchange, channel: Channel, response: bytes, server: str
) -> Generator[bytes | None, bytes | Channel, tuple[Ok, bytes]]:
    """Answer the server until it says OK; return that, and what only it and we know."""
    answer: bytes | None = response
    for _ in range(LOGIN_ROUNDS_MAX):
        payload = _payload((yield answer))
        if is_err(payload):
            raise parse_err(payload)
        if is_ok(payload):
            return parse_ok(payload), _trust_key(exchange)
        more = AuthMoreData.parse(payload)
        try:
            if more is not None:
                answer = None if more.data == _FAST_OK else exchange.send(more.data)
                continue
            switch = AuthSwitchRequest.parse(payload)
            if switch is None:
                raise ProtocolError(f"unexpected answer to the login: {payload[:1].hex()}")
            if switch.plugin not in CLIENT_EXCHANGES:
                raise LoginRefused(f"{server} wants a login by {switch.plugin}")
            exchange = CLIENT_EXCHANGES[switch.plugin](password, switch.data, channel)
            answer = next(exchange)
        except StopIteration as end:
            raise ProtocolError(f"{server} asks on after the login's last packet") from end
        except CannotAuthenticate as error:
            raise LoginRefused(str(error)) from error
    raise ProtocolError(f"no answer to the login in {LOGIN_ROUNDS_MAX} packets")


def _payload(answer: bytes | Channel) -> bytes:
    assert isinstance(answer, bytes)
    return answer


def _greeting(payload: bytes, server: str) -> Greeting:
    if is_err(payload):
        raise parse_err(payload)
    greeting = Greeting.parse(payload)
    version = _VERSION.match(greeting.server_version)
    if version is None or int(version[1]) < MAJOR_MIN:
        raise LoginRefused(f"{server} is too old: {greeting.server_version}")
    return greeting


def _trust_key(exchange: ClientExchange) -> bytes:
    try:
        exchange.send(b"")
    except StopIteration as end:
        trust_key: bytes = end.value
        return trust_key
    return b""  # it said OK before its method was through
