"""
A server that the data source talks to: where it is, who we are there, and how it is trusted.

A password is read where and when it is needed, and is in no representation.
"""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from ibb.certificate_trust import MODES, PREFER, VERIFY, CertificateTrust

from .errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable

PORTS: Final = {"ibb": 3307, "mariadb": 3306, "mysql": 3306}  # by the scheme of the URL
PASSWORD_BYTES_MAX: Final = 4096


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """
    A server, and an account there.

    Attributes:
        host: name or address.
        port: TCP port.
        user: the account.
        tls: how it is spoken to.
        prefix: of the options that say all this: empty, or such as `lease`.
        password_file: path of a file that holds the password, or empty.
        password_env: name of an environment variable that does, or empty.
        given_password: the password itself, if an option had it.
    """

    host: str
    port: int
    user: str
    tls: CertificateTrust
    prefix: str = ""
    password_file: str = ""
    password_env: str = ""
    given_password: str = field(default="", repr=False)

    def __str__(self) -> str:
        """Return where it is, for errors."""
        return f"{self.host}:{self.port}"

    @classmethod
    def parse(
        cls, text: Callable[[str], str], prefix: str = "", ports: dict[str, int] | None = None
    ) -> ServerAddress | None:
        """
        Read the options of a server; None: there is none.

        Args:
            text: returns an option by its name.
            prefix: of their names.
            ports: by scheme, those of URLs without one.

        Raises:
            OptionError: they do not go together.
        """
        name = option_name(prefix, "url")
        url = text(name)
        if not url:
            return None
        wanted = "it must be mariadb://USER@HOST:PORT"
        ports = ports or PORTS
        try:
            parts = urlsplit(url)
            port = parts.port or ports.get(parts.scheme, 0)
            is_host = parts.hostname is not None and bool(parts.hostname.encode("idna"))
        except ValueError:  # its text may hold a part of a password
            raise OptionError(name, wanted) from None
        if parts.scheme not in ports or not is_host or not parts.username:
            raise OptionError(name, wanted)
        assert parts.hostname is not None
        if parts.password is not None:
            secret = option_name(prefix, "passwordFile")
            raise OptionError(name, f"put the password into a file: {secret}")
        return cls(
            parts.hostname,
            port,
            unquote(parts.username),
            _tls(text, prefix, parts.hostname),
            prefix,
            text(option_name(prefix, "passwordFile")),
            text(option_name(prefix, "passwordEnv")),
            "" if prefix else text("password"),
        )

    def password(self) -> str:
        """
        Read the password; empty if none is named.

        Raises:
            OptionError: it is not where the options say.
        """
        if self.given_password:
            return self.given_password
        if self.password_env:
            password = os.environ.get(self.password_env)
            if password is None:
                name = option_name(self.prefix, "passwordEnv")
                raise OptionError(name, f"{self.password_env} is not set")
            return password
        if not self.password_file:
            return ""
        try:
            with Path(self.password_file).open(encoding="utf-8") as file:
                return file.read(PASSWORD_BYTES_MAX).rstrip("\r\n")
        except (OSError, UnicodeError) as error:
            name = option_name(self.prefix, "passwordFile")
            raise OptionError(name, f"{self.password_file} cannot be read: {error}") from error


def option_name(prefix: str, name: str) -> str:
    """Return the name of an option with a prefix: `leaseUrl` of `lease` and `url`."""
    return prefix + name[:1].upper() + name[1:] if prefix else name


def is_here(host: str) -> bool:
    """Tell whether a host is this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _tls(text: Callable[[str], str], prefix: str, host: str) -> CertificateTrust:
    def named(name: str) -> str:
        return text(option_name(prefix, name))

    if prefix:  # what is asked of who keeps a lease: certificates, or this machine
        ca = named("tlsCa")
        if not ca and not is_here(host):
            raise OptionError(option_name(prefix, "tlsCa"), f"missing: {host} is another machine")
        return CertificateTrust(VERIFY if ca else PREFER, ca=ca)
    mode = named("tls").lower() or (PREFER if is_here(host) else VERIFY)
    if mode not in MODES:
        raise OptionError("tls", f"'{mode}' is none of {', '.join(MODES)}")
    certificate, key = named("tlsCert"), named("tlsKey")
    if bool(certificate) != bool(key):
        raise OptionError("tlsKey" if certificate else "tlsCert", "tlsCert and tlsKey go together")
    try:
        return CertificateTrust.of(mode, named("tlsCa"), named("tlsFingerprint"), certificate, key)
    except ValueError as error:
        raise OptionError("tlsFingerprint", f"it {error}") from None
