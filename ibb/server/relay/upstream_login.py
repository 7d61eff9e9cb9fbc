"""
Our login at an upstream: TLS as the settings want it, and what its certificate is worth.

Source: dump-protocol 1.5, 8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ibb.protocol import client_login
from ibb.protocol.authentication import Channel
from ibb.protocol.client_login import LoginRefused, StartTls
from ibb.protocol.errors import IbbError
from ibb.server.config import CLIENT_NAME
from ibb.server.log import get_log

from .upstream_tls import OFF, PREFER, UNVERIFIED, VERIFY, UntrustedPrimary, certificate_fingerprint

if TYPE_CHECKING:
    from ibb.protocol.client_login import LoggedIn
    from ibb.server.connections.packet_link import PacketLink

    from .upstream import UpstreamAddress


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
    try:
        done = await _exchange(link, address)
    except LoginRefused as error:
        raise UpstreamRefused(str(error)) from error
    if link.tls is not None and not done.channel.trusted and address.tls.mode != UNVERIFIED:
        fingerprint = certificate_fingerprint(link.tls)
        if not done.proof(fingerprint):
            _not_proven(address)
    return done.version


async def _exchange(link: PacketLink, address: UpstreamAddress) -> LoggedIn:
    """Bring what each side says to the other."""
    login = client_login.log_in(
        address.user,
        address.password,
        CLIENT_NAME,
        lambda offered: _wants_tls(address, offered=offered),
        server="the primary",
    )
    try:
        step = next(login)
        while True:
            if isinstance(step, StartTls):
                await link.send(step.request)
                channel = address.tls.channel(address.host)
                await link.start_tls(channel)
                step = login.send(Channel(private=True, trusted=address.tls.check(channel)))
                continue
            if step is not None:
                await link.send(step)
            step = login.send(await link.receive())
    except StopIteration as end:
        done: LoggedIn = end.value
        return done


def _wants_tls(address: UpstreamAddress, *, offered: bool) -> bool:
    if address.tls.mode == OFF:
        return False
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


def _not_proven(address: UpstreamAddress) -> None:
    """Refuse a primary that may be another, or go on where the settings leave that open."""
    text = (
        "the primary's certificate could not be verified: set upstream_ssl_ca or upstream_ssl_fp "
        "(older than 11.4 it cannot prove by the password that it is its own)"
    )
    if address.tls.mode == VERIFY:
        raise UntrustedPrimary(text)
    get_log().warning("upstream_not_verified", upstream=str(address), reason=text)
