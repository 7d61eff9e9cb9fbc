"""
TLS towards a primary, and by what its certificate is believed.

    off         none
    prefer      if the primary offers it; the certificate is checked as far as that is possible
    verify      always, and the certificate must be the right one
    unverified  always, whatever the certificate

A certificate is right if `upstream_ssl_fp` names its SHA-256, else if `upstream_ssl_ca` vouches for
it and it is for the primary's name, else, with neither of them set, if the primary proves behind
the login that it knows our password (MariaDB 11.4 and newer). Source: dump-protocol 1.5.
"""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from ibb.protocol.errors import IbbError
from ibb.server.config import ConfigError
from ibb.server.connections.certificate import base_context
from ibb.server.connections.tls_channel import TlsChannel

if TYPE_CHECKING:
    from collections.abc import Callable

    from ibb.server.config import Config

OFF: Final = "off"
PREFER: Final = "prefer"
VERIFY: Final = "verify"
UNVERIFIED: Final = "unverified"

_FINGERPRINT: Final = re.compile(r"[0-9A-Fa-f]{64}", re.ASCII)


class UntrustedPrimary(IbbError):  # noqa: N818 - what it is
    """The primary's certificate is not the right one: there may be somebody in between."""


@dataclass(frozen=True, slots=True)
class UpstreamTls:
    """
    How to speak TLS with a primary.

    Attributes:
        mode: one of the four above; a CA or a fingerprint makes `verify` of `prefer`.
        context: of our side.
        fingerprint: SHA-256 that the certificate must have, or b"".
        by_ca: the handshake checks the certificate.
    """

    mode: str = OFF
    context: ssl.SSLContext | None = None
    fingerprint: bytes = b""
    by_ca: bool = False

    @classmethod
    def from_config(
        cls, config: Config, name: Callable[[str], str] = "upstream_ssl_{}".format
    ) -> UpstreamTls:
        """
        Return what the settings want.

        Args:
            config: the settings.
            name: returns what people know one of them by, from its end; for messages.

        Raises:
            ConfigError: a file cannot be used, or they contradict one another.
        """
        if config.upstream_ssl == OFF:
            return cls()
        fingerprint = config.upstream_ssl_fp.replace(":", "")
        if fingerprint and not _FINGERPRINT.fullmatch(fingerprint):
            raise ConfigError(f"{name('fp')} must be 64 hexadecimal digits: a SHA-256")
        context = base_context(ssl.PROTOCOL_TLS_CLIENT, config.tls_version)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        mode, by_ca = config.upstream_ssl, False
        which = f"{name('cert')}, {name('key')}"
        try:
            if config.upstream_ssl_cert:
                context.load_cert_chain(
                    config.upstream_ssl_cert, config.upstream_ssl_key, password=lambda: b""
                )
            which = name("ca")
            if config.upstream_ssl_ca and not fingerprint:
                context.load_verify_locations(config.upstream_ssl_ca)
                context.verify_mode = ssl.CERT_REQUIRED
                context.check_hostname = by_ca = True
        except (OSError, ValueError) as error:
            raise ConfigError(f"{which}: cannot be used: {error}") from error
        if mode == PREFER and (fingerprint or by_ca):
            mode = VERIFY
        return cls(mode, context, bytes.fromhex(fingerprint), by_ca)

    def channel(self, host: str) -> TlsChannel:
        """Return a client's channel to *host*."""
        assert self.context is not None
        return TlsChannel(self.context, server_side=False, server_name=host)

    def check(self, channel: TlsChannel) -> bool:
        """
        Look at the certificate behind the handshake; return whether it is surely the right one.

        Raises:
            UntrustedPrimary: it is a wrong one.
        """
        if not self.fingerprint:
            return self.by_ca
        found = certificate_fingerprint(channel)
        if found != self.fingerprint:
            raise UntrustedPrimary(
                f"the primary's certificate has the fingerprint {found.hex()}, not upstream_ssl_fp"
            )
        return True


def certificate_fingerprint(channel: TlsChannel) -> bytes:
    """Return the SHA-256 of the peer's certificate."""
    return sha256(channel.peer_certificate() or b"").digest()
