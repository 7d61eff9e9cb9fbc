"""TLS towards a server that is read, on a blocking socket."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from ibb.certificate_trust import certificate_fingerprint

from .errors import OptionError, ServerRefused

if TYPE_CHECKING:
    import socket

    from ibb.certificate_trust import CertificateTrust


def begin_tls(link: socket.socket, trust: CertificateTrust, host: str) -> ssl.SSLSocket:
    """
    Encrypt a connection and look at the certificate.

    Args:
        link: behind the request for TLS.
        trust: by what the certificate is believed.
        host: whom it must be for.

    Raises:
        ServerRefused: a wrong certificate, or no agreement.
        OptionError: a file cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        trust.set_up(context)
    except (OSError, ValueError) as error:
        raise OptionError("tlsCa, tlsCert, tlsKey", f"they cannot be used: {error}") from error
    try:
        channel = context.wrap_socket(link, server_hostname=host)
    except ssl.SSLError as error:
        raise ServerRefused(f"no TLS with {host}: {error}") from error
    if not trust.accepts(peer_fingerprint(channel)):
        channel.close()
        raise ServerRefused(
            f"the certificate of {host} has another fingerprint than tlsFingerprint says"
        )
    return channel


def peer_fingerprint(channel: ssl.SSLSocket) -> bytes:
    """Return the SHA-256 of the server's certificate."""
    return certificate_fingerprint(channel.getpeercert(binary_form=True))
