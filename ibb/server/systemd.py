"""
Telling systemd how the service fares: ready, reloading, stopping, alive.

Each word is a datagram to the socket that $NOTIFY_SOCKET names; without it nothing is said.
Source: sd_notify(3), systemd.service(5).
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from typing import TYPE_CHECKING, Final

from .background_task import BackgroundTask
from .latencies import MICROSECONDS
from .log import get_log

if TYPE_CHECKING:
    from collections.abc import Mapping

STATUS_CHARS_MAX: Final = 200
_SOCKET: Final = "NOTIFY_SOCKET"
_WATCHDOG: Final = "WATCHDOG_USEC"


class Systemd:
    """
    The service manager that has started this process, if one has.

    Args:
        environment: where it says how it is reached.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._address = _address(environment.get(_SOCKET, ""))
        self._alive_seconds = _half_of(environment) if self._address else None
        self._telling = BackgroundTask("watchdog")

    def ready(self, status: str) -> None:
        """Say that the service serves, and that it is alive from now on as often as is wanted."""
        self._say("READY=1", f"STATUS={status[:STATUS_CHARS_MAX]}")
        if self._alive_seconds is not None and not self._telling.is_running:
            self._telling.start(self._tell_alive(self._alive_seconds))

    def reloading(self) -> None:
        """Say that settings are read again; `ready` ends it."""
        now = int(time.clock_gettime(time.CLOCK_MONOTONIC) * MICROSECONDS)
        self._say("RELOADING=1", f"MONOTONIC_USEC={now}")

    def stopping(self) -> None:
        """Say that the service ends; the watchdog hears of it until it has."""
        self._say("STOPPING=1")

    async def close(self) -> None:
        """Say nothing more."""
        await self._telling.stop()

    async def _tell_alive(self, seconds: float) -> None:
        """Say so as long as the event loop turns."""
        while True:
            self._say("WATCHDOG=1")
            await asyncio.sleep(seconds)

    def _say(self, *words: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as link:
                link.setblocking(False)
                link.sendto("\n".join(words).encode(), self._address)
        except OSError as error:  # the service is not worse for it
            get_log().warning("systemd_not_told", words=words[0], error=str(error))


def _address(name: str) -> str:
    """Return the socket's address; `@` begins one without a file."""
    if name.startswith("@"):
        return "\0" + name[1:]
    return name if name.startswith("/") else ""


def _half_of(environment: Mapping[str, str]) -> float | None:
    """Return half of the time after which the watchdog would end us, None without one."""
    microseconds = environment.get(_WATCHDOG, "")
    meant = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    if not (meant and microseconds.isascii() and microseconds.isdigit() and int(microseconds)):
        return None
    return int(microseconds) / MICROSECONDS / 2
