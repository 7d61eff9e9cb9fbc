"""
By what a server's certificate is believed, for everybody here who is a client of one.

    off         no TLS
    prefer      if the server offers it; the certificate is checked as far as that is possible
    verify      always, and the certificate must be the right one
    unverified  always, whatever the certificate

A certificate is right if a fingerprint names its SHA-256, else if certificates of ours vouch for it
and it is for the server's name, else, with neither of them given, if the server proves behind the
login that it knows our password (MariaDB 11.4 and newer). Source: dump-protocol 1.5.
"""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

OFF: Final = "off"
PREFER: Final = "prefer"
VERIFY: Final = "verify"
UNVERIFIED: Final = "unverified"
MODES: Final = (OFF, PREFER, VERIFY, UNVERIFIED)

_FINGERPRINT: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class CertificateTrust:
    """
    What is believed; names of files, which are read where a context is set up.

    Attributes:
        mode: one of `MODES`.
        ca: path of certificates that vouch for the server's, or empty.
        fingerprint: SHA-256 that its certificate must have, in 64 small digits, or empty.
        certificate: path of ours, or empty.
        key: path of its key, or empty.
    """

    mode: str = OFF
    ca: str = ""
    fingerprint: str = ""
    certificate: str = ""
    key: str = ""

    @classmethod
    def of(
        cls, mode: str, ca: str, fingerprint: str, certificate: str, key: str
    ) -> CertificateTrust:
        """
        Return what settings say; certificates or a fingerprint make `verify` of `prefer`.

        Args:
            mode: one of `MODES`.
            ca: path of certificates that vouch for the server's, or empty.
            fingerprint: in digits of any case, with or without colons, or empty.
            certificate: path of ours, or empty.
            key: path of its key, or empty.

        Raises:
            ValueError: the fingerprint is none.
        """
        digits = fingerprint.replace(":", "").lower()
        if digits and not _FINGERPRINT.fullmatch(digits):
            raise ValueError("must be 64 hexadecimal digits: a SHA-256")
        if mode == PREFER and (ca or digits):
            mode = VERIFY
        return cls(mode, ca, digits, certificate, key)

    @property
    def demands_tls(self) -> bool:
        """Whether a server that offers none is refused."""
        return self.mode not in {OFF, PREFER}

    @property
    def is_checked(self) -> bool:
        """Whether a certificate is surely right behind the handshake and `accepts`."""
        return bool(self.ca or self.fingerprint)

    def set_up(self, context: ssl.SSLContext) -> None:
        """
        Make a client's context show our certificate, and check the server's where that does it.

        Raises:
            OSError, ValueError: a file cannot be used.
        """
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        if self.certificate:
            # A key with a passphrase would ask the terminal for it.
            context.load_cert_chain(self.certificate, self.key, password=lambda: b"")
        if self.ca and not self.fingerprint:
            context.load_verify_locations(self.ca)
            context.verify_mode = ssl.CERT_REQUIRED
            context.check_hostname = True

    def accepts(self, fingerprint: bytes) -> bool:
        """Tell whether a certificate with this SHA-256 is not known to be a wrong one."""
        return not self.fingerprint or fingerprint.hex() == self.fingerprint


def certificate_fingerprint(certificate: bytes | None) -> bytes:
    """Return the SHA-256 of a certificate as it was sent, or of nothing where there was none."""
    return sha256(certificate or b"").digest()
