"""
The addresses that a server listens on: taken before it opens its history, and named when they
cannot be had.

A socket that is bound and does not listen yet refuses who comes, as if nobody were there; so
nobody waits for a store that still recovers.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack
from typing import Final, Self

from .config import ADMIN_PORT, Config, ConfigError, is_loopback, parse_address

_ADMIN: Final = "admin_listen"


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
    loop, where = asyncio.get_running_loop(), f"{setting}: {host}:{port}"
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise ConfigError(f"{where}: {error.strerror}") from error
    with ExitStack() as undo:
        sockets = []
        for family, address in dict.fromkeys((each[0], each[4]) for each in found):
            try:
                sockets.append(undo.enter_context(_bound(family, address)))
            except OSError as error:
                option = setting.replace("_", "-")
                raise ConfigError(
                    f"{where} cannot be had: {error.strerror} (another address: --{option})"
                ) from error
        undo.pop_all()
    return sockets


def _bound(family: int, address: tuple[object, ...]) -> socket.socket:
    link = socket.socket(family, socket.SOCK_STREAM)
    try:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            link.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        link.bind(address)
        link.setblocking(False)
    except BaseException:
        link.close()
        raise
    return link


def check_made_up_account(config: Config) -> None:
    """Raise ConfigError if others could reach a server without accounts, whose one is made up."""
    if not is_loopback(parse_address(config.listen)[0]):
        raise ConfigError(
            "without accounts only loopback (localhost, 127.0.0.1, [::1]) is listened on, "
            f"not {config.listen}"
        )


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
            taken.clients = await bound_sockets("listen", *parse_address(config.listen))
            if config.admin_listen:
                address = parse_address(config.admin_listen, ADMIN_PORT)
                taken.admin = await bound_sockets(_ADMIN, *address)
        except BaseException:
            taken.close()
            raise
        return taken

    def close(self) -> None:
        """Close all sockets; a second call does nothing."""
        for each in (*self.clients, *self.admin):
            each.close()
