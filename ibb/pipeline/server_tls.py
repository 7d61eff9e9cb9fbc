"""
TLS towards a server that is read, and by what its certificate is believed.

    off         none
    prefer      if the server offers it; the certificate is checked as far as that is possible
    verify      always, and the certificate must be the right one
    unverified  always, whatever the certificate

A certificate is right if tlsFingerprint names its SHA-256, else if tlsCa vouches for it and it is
for the server's name, else, with neither of them set, if the server proves behind the login that it
knows our password (MariaDB 11.4 and newer). Source: dump-protocol 1.5.
"""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from .errors import OptionError, ServerRefused

if TYPE_CHECKING:
    import socket

OFF: Final = "off"
PREFER: Final = "prefer"
VERIFY: Final = "verify"
UNVERIFIED: Final = "unverified"
MODES: Final = (OFF, PREFER, VERIFY, UNVERIFIED)

_FINGERPRINT: Final = re.compile(r"[0-9A-Fa-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ServerTls:
    """
    How to speak TLS with a server; names of files, which are read where a connection is made.

    Attributes:
        mode: one of `MODES`.
        ca: path of certificates that vouch for the server's, or empty.
        fingerprint: SHA-256 that its certificate must have, in 64 digits, or empty.
        certificate: path of ours, or empty.
        key: path of its key, or empty.
    """

    mode: str
    ca: str = ""
    fingerprint: str = ""
    certificate: str = ""
    key: str = ""

    @classmethod
    def of(cls, mode: str, ca: str, fingerprint: str, certificate: str, key: str) -> ServerTls:
        """
        Return what options say; certificates or a fingerprint make `verify` of `prefer`.

        Raises:
            OptionError: the fingerprint is none.
        """
        digits = fingerprint.replace(":", "").lower()
        if digits and not _FINGERPRINT.fullmatch(digits):
            raise OptionError("tlsFingerprint", "it must be 64 hexadecimal digits: a SHA-256")
        if mode == PREFER and (ca or digits):
            mode = VERIFY
        return cls(mode, ca, digits, certificate, key)

    @property
    def is_checked(self) -> bool:
        """Whether a certificate that passed the handshake and `check` is surely the right one."""
        return bool(self.ca or self.fingerprint)

    def begin(self, link: socket.socket, host: str) -> ssl.SSLSocket:
        """
        Encrypt a connection and look at the certificate.

        Args:
            link: behind the request for TLS.
            host: whom the certificate must be for.

        Raises:
            ServerRefused: a wrong certificate, or no agreement.
            OptionError: a file cannot be used.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        try:
            if self.certificate:
                context.load_cert_chain(self.certificate, self.key, password=lambda: b"")
            if self.ca and not self.fingerprint:
                context.load_verify_locations(self.ca)
                context.verify_mode = ssl.CERT_REQUIRED
                context.check_hostname = True
        except (OSError, ValueError) as error:
            raise OptionError("tlsCa, tlsCert, tlsKey", f"they cannot be used: {error}") from error
        try:
            channel = context.wrap_socket(link, server_hostname=host)
        except ssl.SSLError as error:
            raise ServerRefused(f"no TLS with {host}: {error}") from error
        if self.fingerprint and certificate_fingerprint(channel).hex() != self.fingerprint:
            channel.close()
            raise ServerRefused(
                f"the certificate of {host} has another fingerprint than tlsFingerprint says"
            )
        return channel


def certificate_fingerprint(channel: ssl.SSLSocket) -> bytes:
    """Return the SHA-256 of the peer's certificate."""
    return sha256(channel.getpeercert(binary_form=True) or b"").digest()
