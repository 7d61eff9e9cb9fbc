"""The server's certificate: the operator's, or one that signs itself."""

from __future__ import annotations

import datetime as dt
import os
import ssl
import tempfile
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from ibb.server.config import ConfigError

if TYPE_CHECKING:
    from ibb.server.config import Config

VALID_DAYS: Final = 3650
CERTIFICATE_FILE: Final = "ibb-server-cert.pem"
KEY_FILE: Final = "ibb-server-key.pem"
TLS_1_3_ONLY: Final = "TLSv1.3"
PEM_BYTES_MAX: Final = 1 << 20

_BEGIN: Final = "-----BEGIN CERTIFICATE-----"
_END: Final = "-----END CERTIFICATE-----"


@dataclass(frozen=True, slots=True)
class ServerTls:
    """
    What TLS sessions of the server are made from.

    Attributes:
        context: for `TlsChannel`.
        fingerprint: SHA-256 of the certificate.
        made_up: certificate and key as PEM if they are kept nowhere else.
    """

    context: ssl.SSLContext
    fingerprint: bytes
    made_up: tuple[bytes, bytes] | None = field(default=None, repr=False)


def server_tls(config: Config, host_name: str, before: ServerTls | None = None) -> ServerTls | None:
    """
    Return TLS as the settings and the files that they name want it, None where they want none.

    Args:
        config: settings.
        host_name: whom a certificate that is made is for.
        before: what was in force; a certificate that was made up goes on.

    Raises:
        ConfigError: a file cannot be used; the message names the setting.
    """
    if config.skip_ssl:
        return None
    if config.ssl_cert:
        return _loaded(config, Path(config.ssl_cert), Path(config.ssl_key))
    if config.ssl_state:
        folder = Path(config.ssl_state)
        if not (folder / KEY_FILE).exists():
            _make_files(folder, self_signed(host_name))
        return _loaded(config, folder / CERTIFICATE_FILE, folder / KEY_FILE)
    made_up = (before and before.made_up) or self_signed(host_name)
    with tempfile.TemporaryDirectory(prefix="ibb-") as name:  # the ssl module reads only files
        _make_files(Path(name), made_up)
        loaded = _loaded(config, Path(name, CERTIFICATE_FILE), Path(name, KEY_FILE))
    return replace(loaded, made_up=made_up)


def base_context(purpose: int, tls_version: str) -> ssl.SSLContext:
    """Return a context for TLS 1.2 and newer, or 1.3 alone, that trusts nobody yet."""
    context = ssl.SSLContext(purpose)
    only_newest = tls_version == TLS_1_3_ONLY
    context.minimum_version = ssl.TLSVersion.TLSv1_3 if only_newest else ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    return context


def self_signed(host_name: str) -> tuple[bytes, bytes]:
    """Return a new certificate and its key as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host_name[:64] or "ibb")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))  # clocks differ
        .not_valid_after(now + dt.timedelta(days=VALID_DAYS))
    )
    if host_name and host_name.isascii():  # programs in Go, and browsers, look nowhere else
        names = x509.SubjectAlternativeName([x509.DNSName(host_name)])
        certificate = certificate.add_extension(names, critical=False)
    signed = certificate.sign(key, SHA256())
    return (
        signed.public_bytes(Encoding.PEM),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )


def _make_files(folder: Path, pair: tuple[bytes, bytes]) -> None:
    certificate, key = pair
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # The key last: it is there only when both are whole.
        for name, data, mode in ((CERTIFICATE_FILE, certificate, 0o644), (KEY_FILE, key, 0o600)):
            draft = folder / f".{name}"
            draft.unlink(missing_ok=True)
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            draft.replace(folder / name)
    except OSError as error:
        raise ConfigError(f"ssl_state: cannot write {folder}: {error.strerror}") from error


def _loaded(config: Config, certificate: Path, key: Path) -> ServerTls:
    context = base_context(ssl.PROTOCOL_TLS_SERVER, config.tls_version)
    context.num_tickets = 0  # MariaDB's clients do not resume sessions
    try:
        # A key with a passphrase would ask the terminal for it.
        context.load_cert_chain(certificate, key, password=lambda: b"")
        fingerprint = sha256(_first_certificate(certificate)).digest()
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ConfigError(f"ssl_cert, ssl_key: cannot use {certificate}, {key}: {error}") from error
    if config.ssl_ca:
        context.verify_mode = ssl.CERT_OPTIONAL
        try:
            context.load_verify_locations(config.ssl_ca)
        except (OSError, ValueError) as error:
            raise ConfigError(f"ssl_ca: cannot use {config.ssl_ca}: {error}") from error
    return ServerTls(context, fingerprint)


def _first_certificate(path: Path) -> bytes:
    """Return the DER of the server's own certificate, which stands before its chain."""
    with path.open("rb") as file:
        text = file.read(PEM_BYTES_MAX).decode("ascii", errors="replace")
    start = text.index(_BEGIN)
    return ssl.PEM_cert_to_DER_cert(text[start : text.index(_END, start) + len(_END)])
