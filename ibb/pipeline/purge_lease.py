"""
The lease of a stream: a named position on the server, up to which alone it may purge.

It is made where the stream begins, and moved when Spark has finished a batch; a query that is gone
keeps its history until the lease lapses, which the server tells. See docs/sql.md, "Leases".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ibb.protocol.errors import IbbError

from .errors import LeaseFailed, OptionError
from .server_address import ServerAddress
from .server_connection import ServerConnection

if TYPE_CHECKING:
    from collections.abc import Callable

PORTS: Final = dict.fromkeys(("ibb", "mariadb", "mysql"), 3307)  # leases are kept by ours alone
NAME_CHARS_MAX: Final = 200
_QUOTING: Final = frozenset("'\"`\\")


@dataclass(frozen=True, slots=True)
class PurgeLease:
    """
    Where a lease is, and by what account it is moved; a password is read when it is needed.

    Attributes:
        name: of the lease.
        server: that keeps it; its account has BINLOG ADMIN.
        seconds: without a finished batch after which it lapses.
    """

    name: str
    server: ServerAddress
    seconds: int

    @classmethod
    def parse(
        cls, text: Callable[[str], str], seconds: int, source: ServerAddress | None
    ) -> PurgeLease | None:
        """
        Read the options that begin with lease; None: no lease is wanted.

        Args:
            text: returns an option by its name.
            seconds: option leaseSeconds.
            source: the server that is read, which keeps the lease if no other is named.

        Raises:
            OptionError: they do not go together.
        """
        name, url = text("lease"), text("leaseUrl")
        if not name and not url:
            return None
        if not 0 < len(name) <= NAME_CHARS_MAX or not name.isprintable() or _QUOTING & set(name):
            raise OptionError("lease", f"1 to {NAME_CHARS_MAX} characters, no quotes among them")
        server = ServerAddress.parse(text, "lease", PORTS) or source
        if server is None:
            raise OptionError("leaseUrl", "it must be mariadb://USER@HOST:PORT")
        return cls(name, server, seconds)

    def move_to(self, position: str) -> None:
        """
        Make the lease, or move it.

        Raises:
            LeaseFailed: the server is not there or refuses it.
            OptionError: there is no password.
        """
        try:
            with ServerConnection(self.server) as connection:
                connection.query(
                    f"CREATE OR REPLACE BINLOG LEASE '{self.name}' FOR '{position}'"
                    f" EXPIRE {self.seconds}"
                )
        except OptionError:
            raise
        except (IbbError, OSError) as error:
            raise LeaseFailed(
                f"lease {self.name} on {self.server} could not be moved to '{position}': {error}"
            ) from error
