"""
The lease of a stream: a named position on the server, up to which alone it may purge.

It is made where the stream begins, and moved when Spark has finished a batch; a query that is gone
keeps its history until the lease lapses, which the server tells. See docs/sql.md, "Leases".
"""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from .errors import LeaseFailed, OptionError

if TYPE_CHECKING:
    from collections.abc import Callable

PORT_DEFAULT: Final = 3307
CONNECT_SECONDS_MAX: Final = 10
ANSWER_SECONDS_MAX: Final = 60
NAME_CHARS_MAX: Final = 200
PASSWORD_BYTES_MAX: Final = 4096
_QUOTING: Final = frozenset("'\"`\\")


@dataclass(frozen=True, slots=True)
class PurgeLease:
    """
    Where a lease is, and by what account it is moved; a password is read when it is needed.

    Attributes:
        name: of the lease.
        host: of the server.
        port: of the server.
        user: an account with BINLOG ADMIN.
        seconds: without a finished batch after which it lapses.
        password_file: path of a file that holds the password, or empty.
        password_env: name of an environment variable that does, or empty.
        tls_ca: path of the certificates that vouch for the server, or empty.
    """

    name: str
    host: str
    port: int
    user: str
    seconds: int
    password_file: str
    password_env: str
    tls_ca: str

    @classmethod
    def parse(cls, text: Callable[[str], str], seconds: int) -> PurgeLease | None:
        """
        Read the options that begin with lease; None: no lease is wanted.

        Args:
            text: returns an option by its name.
            seconds: option leaseSeconds.

        Raises:
            OptionError: they do not go together.
        """
        name, url = text("lease"), text("leaseUrl")
        if not name and not url:
            return None
        if not 0 < len(name) <= NAME_CHARS_MAX or not name.isprintable() or _QUOTING & set(name):
            raise OptionError("lease", f"1 to {NAME_CHARS_MAX} characters, no quotes among them")
        try:
            parts = urlsplit(url)
            port = parts.port or PORT_DEFAULT
        except ValueError:  # its text may hold a part of a password
            raise OptionError("leaseUrl", "it must be mariadb://USER@HOST:PORT") from None
        if parts.scheme not in ("mariadb", "mysql") or not parts.hostname or not parts.username:
            raise OptionError("leaseUrl", "it must be mariadb://USER@HOST:PORT")
        if parts.password is not None:
            raise OptionError("leaseUrl", "put the password into a file: leasePasswordFile")
        ca = text("leaseTlsCa")
        if not ca and not _is_here(parts.hostname):
            raise OptionError("leaseTlsCa", f"missing: {parts.hostname} is another machine")
        files = text("leasePasswordFile"), text("leasePasswordEnv")
        return cls(name, parts.hostname, port, unquote(parts.username), seconds, *files, ca)

    def move_to(self, position: str) -> None:
        """
        Make the lease, or move it.

        Raises:
            LeaseFailed: the server is not there or refuses it.
            OptionError: there is no password.
        """
        import pymysql  # noqa: PLC0415 - only streams with a lease need it

        tls = {"ca": self.tls_ca} if self.tls_ca else None
        password = self._password()
        try:
            with pymysql.connect(
                host=self.host,
                port=self.port,
                user=self.user,
                password=password,
                ssl=tls,
                connect_timeout=CONNECT_SECONDS_MAX,
                read_timeout=ANSWER_SECONDS_MAX,
                write_timeout=ANSWER_SECONDS_MAX,
            ) as connection:
                connection.cursor().execute(
                    f"CREATE OR REPLACE BINLOG LEASE '{self.name}' FOR '{position}'"
                    f" EXPIRE {self.seconds}"
                )
        except (pymysql.MySQLError, OSError) as error:
            raise LeaseFailed(
                f"lease {self.name} on {self.host}:{self.port} could not be moved to '{position}':"
                f" {error}"
            ) from error

    def _password(self) -> str:
        if self.password_env:
            password = os.environ.get(self.password_env)
            if password is None:
                raise OptionError("leasePasswordEnv", f"{self.password_env} is not set")
            return password
        if not self.password_file:
            return ""
        try:
            with Path(self.password_file).open(encoding="utf-8") as file:
                return file.read(PASSWORD_BYTES_MAX).rstrip("\r\n")
        except (OSError, UnicodeError) as error:
            raise OptionError(
                "leasePasswordFile", f"{self.password_file} cannot be read: {error}"
            ) from error


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
