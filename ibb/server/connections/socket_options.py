"""What the system is told of a connection: how it looks after its peer, and how fast it sends."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Final

from ibb.server.addresses import plain_address
from ibb.server.config import is_loopback

UNPACED: Final = "reno"  # a congestion control that every Linux has
_OPTION: Final = getattr(socket, "TCP_CONGESTION", None)  # of Linux
_NAME_BYTES_MAX: Final = 16  # of a congestion control


def keep_alive(link: socket.socket) -> None:
    """Have the system find out that a peer has gone without a word, as MariaDB does both ways."""
    if link.family != socket.AF_UNIX:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def send_unpaced(link: socket.socket) -> None:
    """
    Have the system send to a peer on this host as fast as it can.

    Some congestion controls, as BBR, send by a clock, two packets at a time, to fill no buffer on
    the way. Where there is no way, that costs a timer and a wake-up for each 128 KiB, up to half
    of the processor time of a dump. Reno's own rate is one that loopback does not reach. A peer is
    on this host if its address is the connection's own, or of loopback; others, and so those in
    containers, have what the administrator chose.

    Args:
        link: a connection by TCP, or a unix socket, which needs nothing.
    """
    if _OPTION is None or not _is_on_this_host(link):
        return
    with suppress(OSError):  # it has gone, or the administrator lets nobody choose: only slower
        link.setsockopt(socket.IPPROTO_TCP, _OPTION, UNPACED.encode())


def congestion_control(link: socket.socket) -> str:
    """Return the name of a TCP connection's congestion control, "" where the system has none."""
    if _OPTION is None:
        return ""
    return link.getsockopt(socket.IPPROTO_TCP, _OPTION, _NAME_BYTES_MAX).rstrip(b"\0").decode()


def _is_on_this_host(link: socket.socket) -> bool:
    if link.family == socket.AF_UNIX:
        return False
    try:
        near, far = link.getsockname()[0], link.getpeername()[0]
    except OSError:  # the client has left again
        return False
    return near == far or is_loopback(plain_address(far))
