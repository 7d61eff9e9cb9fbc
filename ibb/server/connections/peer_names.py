"""Who is at the other end of a connection, as the system knows it."""

from __future__ import annotations

import pwd
import socket
import struct
from typing import TYPE_CHECKING, Final

from ibb.server.addresses import plain_address

if TYPE_CHECKING:
    import asyncio

_PEER_CREDENTIALS: Final = struct.Struct("3i")  # process, user, group


def peer_address(writer: asyncio.StreamWriter) -> str:
    """Return address and port of a client by TCP; of IPv4, whatever socket it came by."""
    name = writer.get_extra_info("peername")
    return f"{plain_address(name[0])}:{name[1]}" if name else "gone"


def peer_uid(writer: asyncio.StreamWriter) -> int | None:
    """Return the number of the system's user at the other end of a unix socket, if it tells."""
    link = writer.get_extra_info("socket")
    try:
        data = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER_CREDENTIALS.size)
    except OSError:
        return None
    uid: int = _PEER_CREDENTIALS.unpack(data)[1]
    return uid


def user_name(uid: int) -> str:
    """Return the system's name of a user, or ""; may block."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return ""
