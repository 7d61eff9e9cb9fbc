"""
The addresses that a server listens on: bound before it opens its history, and named when they
cannot be had.

A socket that is bound and does not listen yet refuses who comes, as if nobody were there; so
nobody waits for a store that still recovers. A server that listens already is found so at once;
one that begins to only then, when it is our turn.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, Self

from .addresses import EVERY_ADDRESS
from .config import ADMIN_PORT, Config, ConfigError, parse_address

if TYPE_CHECKING:
    from collections.abc import Sequence

LISTEN: Final = "listen"
ADMIN_LISTEN: Final = "admin_listen"


async def bound_sockets(setting: str, host: str, port: int) -> list[socket.socket]:
    """
    Return a socket for each address of a host, bound, not listening yet.

    Args:
        setting: that named the address, for the message.
        host: a name or an address.
        port: 0: any.

    Raises:
        ConfigError: the host has no address, or one of them cannot be had.
    """
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError) as error:  # the latter of what is no name at all
        reason = str(getattr(error, "strerror", error))
        raise ConfigError(f"{setting}: {address_text(host, port)}: {reason}") from error
    with ExitStack() as undo:
        sockets, missing = [], None
        for family, address in dict.fromkeys((each[0], each[4]) for each in found):
            try:
                sockets.append(undo.enter_context(_bound(family, address)))
            except OSError as error:
                missing = _refused(setting, address, error)
                if error.errno != errno.EAFNOSUPPORT:  # a system without IPv6 has its names
                    raise missing from error
        if not sockets and missing is not None:
            raise missing
        undo.pop_all()
    return sockets


def listen_on(setting: str, sockets: Sequence[socket.socket], backlog: int) -> None:
    """
    Let clients come to sockets of `bound_sockets`.

    Args:
        setting: that named their address.
        sockets: bound to it.
        backlog: connections that may wait to be accepted.

    Raises:
        ConfigError: another server was faster.
    """
    for each in sockets:
        try:
            each.listen(backlog)
        except OSError as error:
            raise _refused(setting, each.getsockname(), error) from error


def address_text(host: str, port: int) -> str:
    """Return an address as one writes it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _refused(setting: str, address: Sequence[object], error: OSError) -> ConfigError:
    where = address_text(str(address[0]), int(str(address[1])))
    option = setting.replace("_", "-")
    return ConfigError(
        f"{setting}: {where} cannot be had: {error.strerror} (another address: --{option})"
    )


def _bound(family: int, address: tuple[object, ...]) -> socket.socket:
    link = socket.socket(family, socket.SOCK_STREAM)
    try:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            link.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, address[0] != EVERY_ADDRESS)
        link.bind(address)
        link.setblocking(False)
    except BaseException:
        link.close()
        raise
    return link


class TakenAddresses:
    """
    The addresses of the settings, bound; those that nobody takes over are given up in the end.

    Attributes:
        clients: of `listen`.
        admin: of `admin_listen`.
    """

    def __init__(self) -> None:
        self.clients: list[socket.socket] = []
        self.admin: list[socket.socket] = []

    @classmethod
    async def of(cls, config: Config) -> Self:
        """Take them; raises ConfigError when one cannot be had."""
        taken = cls()
        try:
            taken.clients = await bound_sockets(LISTEN, *parse_address(config.listen))
            if config.admin_listen:
                address = parse_address(config.admin_listen, ADMIN_PORT)
                taken.admin = await bound_sockets(ADMIN_LISTEN, *address)
        except BaseException:
            taken.close()
            raise
        return taken

    def close(self) -> None:
        """Close all sockets; a second call does nothing."""
        for each in (*self.clients, *self.admin):
            each.close()
