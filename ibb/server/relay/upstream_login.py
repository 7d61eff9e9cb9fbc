"""
The client's half of a login: TLS, then whatever method the primary asks for.

Source: dump-protocol 1.2 to 1.5, 8.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ibb.protocol import native_password
from ibb.protocol.authentication import CannotAuthenticate, Channel, proves_certificate
from ibb.protocol.capabilities import CLIENT_CAPABILITIES, Capability, effective
from ibb.protocol.errors import IbbError, ProtocolError
from ibb.protocol.handshake import (
    AuthMoreData,
    AuthSwitchRequest,
    Greeting,
    HandshakeResponse,
    SslRequest,
)
from ibb.protocol.reply import is_err, is_ok, parse_err, parse_ok
from ibb.server.config import CLIENT_NAME
from ibb.server.log import get_log
from ibb.server.login.auth_methods import CLIENT_EXCHANGES

from .upstream_tls import OFF, PREFER, UNVERIFIED, VERIFY, UntrustedPrimary, certificate_fingerprint

if TYPE_CHECKING:
    from ibb.protocol.authentication import ClientExchange
    from ibb.protocol.reply import Ok
    from ibb.server.connections.packet_link import PacketLink

    from .upstream import UpstreamAddress

MAJOR_MIN: Final = 10  # of the primary's version: below, it knows no MariaDB GTIDs
CLIENT_PACKET_BYTES_MAX: Final = 1 << 30  # what we say that we take
LOGIN_ROUNDS_MAX: Final = 16  # packets that a primary may ask for before it says OK or ERR
_COLLATION: Final = 45  # utf8mb4_general_ci
_VERSION: Final = re.compile(r"(?:5\.5\.5-)?([0-9]{1,4})\.")
_FAST_OK: Final = b"\x03"  # of caching_sha2_password: the OK follows


class UpstreamRefused(IbbError):  # noqa: N818 - a state of the world
    """This primary cannot be relayed from, now or later, until somebody changes something."""


async def log_in(link: PacketLink, address: UpstreamAddress) -> str:
    """
    Log in on a new connection and return the primary's version.

    Raises:
        SqlError: the primary refuses, e.g. 1045.
        UpstreamRefused: it is too old, offers no TLS, or wants a login that we have not.
        UntrustedPrimary: its certificate is not the right one.
        OSError, ProtocolError, FormatError: the connection ended, or it is no MariaDB.
    """
    greeting = await _greeting(link)
    capabilities = effective(greeting.capabilities, CLIENT_CAPABILITIES)
    trusted = False
    if _wants_tls(greeting, address):
        capabilities |= Capability.SSL
        await link.send(SslRequest(capabilities, CLIENT_PACKET_BYTES_MAX, _COLLATION).encode())
        channel = address.tls.channel(address.host)
        await link.start_tls(channel)
        trusted = address.tls.check(channel)
    exchange = native_password.client_exchange(address.password, greeting.scramble, Channel())
    response = HandshakeResponse(
        capabilities,
        CLIENT_PACKET_BYTES_MAX,
        _COLLATION,
        address.user,
        next(exchange),
        auth_plugin=native_password.PLUGIN_NAME,
        attributes={"_client_name": CLIENT_NAME},
    )
    await link.send(response.encode(greeting.capabilities))
    done, trust_key = await _prove(link, address, exchange, trusted=trusted)
    if link.tls is not None and not trusted and address.tls.mode != UNVERIFIED:
        fingerprint = certificate_fingerprint(link.tls)
        if not proves_certificate(done.info, trust_key, greeting.scramble, fingerprint):
            _not_proven(address)
    return greeting.server_version


async def _greeting(link: PacketLink) -> Greeting:
    payload = await link.receive()
    if is_err(payload):
        raise parse_err(payload)
    greeting = Greeting.parse(payload)
    version = _VERSION.match(greeting.server_version)
    if version is None or int(version[1]) < MAJOR_MIN:
        raise UpstreamRefused(f"the primary is too old: {greeting.server_version}")
    return greeting


def _wants_tls(greeting: Greeting, address: UpstreamAddress) -> bool:
    if address.tls.mode == OFF:
        return False
    offered = bool(greeting.capabilities & Capability.SSL)
    if not offered and address.tls.mode != PREFER:
        raise UpstreamRefused("the primary offers no TLS, which upstream_ssl demands")
    if not offered:
        get_log().warning(
            "upstream_not_encrypted",
            upstream=str(address),
            reason="the primary offers no TLS, or somebody in between hides that it does: "
            "upstream_ssl = verify would refuse it",
        )
    return offered


async def _prove(
    link: PacketLink, address: UpstreamAddress, exchange: ClientExchange, *, trusted: bool
) -> tuple[Ok, bytes]:
    """Answer the primary until it says OK; return that, and what only it and we know."""
    channel = Channel(private=link.tls is not None, trusted=trusted)
    for _ in range(LOGIN_ROUNDS_MAX):
        payload = await link.receive()
        if is_err(payload):
            raise parse_err(payload)
        if is_ok(payload):
            return parse_ok(payload), _trust_key(exchange)
        more = AuthMoreData.parse(payload)
        if more is not None and more.data == _FAST_OK:
            continue
        try:
            if more is not None:
                await link.send(exchange.send(more.data))
                continue
            switch = AuthSwitchRequest.parse(payload)
            if switch is None:
                raise ProtocolError(f"unexpected answer to the login: {payload[:1].hex()}")
            if switch.plugin not in CLIENT_EXCHANGES:
                raise UpstreamRefused(f"the primary wants a login by {switch.plugin}")
            exchange = CLIENT_EXCHANGES[switch.plugin](address.password, switch.data, channel)
            await link.send(next(exchange))
        except StopIteration as end:
            raise ProtocolError("the primary asks on after the login's last packet") from end
        except CannotAuthenticate as error:
            raise UpstreamRefused(str(error)) from error
    raise ProtocolError(f"no answer to the login in {LOGIN_ROUNDS_MAX} packets")


def _trust_key(exchange: ClientExchange) -> bytes:
    try:
        exchange.send(b"")
    except StopIteration as end:
        trust_key: bytes = end.value
        return trust_key
    return b""  # it said OK before its method was through


def _not_proven(address: UpstreamAddress) -> None:
    """Refuse a primary that may be another, or go on where the settings leave that open."""
    text = (
        "the primary's certificate could not be verified: set upstream_ssl_ca or upstream_ssl_fp "
        "(older than 11.4 it cannot prove by the password that it is its own)"
    )
    if address.tls.mode == VERIFY:
        raise UntrustedPrimary(text)
    get_log().warning("upstream_not_verified", upstream=str(address), reason=text)
