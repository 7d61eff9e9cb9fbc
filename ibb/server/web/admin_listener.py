"""
The admin's port: accept, count, and let no client keep a place that it does not use.

Connections are accepted here and not by uvicorn, so that one counts before its TLS handshake. Each
takes a descriptor that the store and the dumps would miss.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from uvicorn.server import ServerState

from ibb.server.config import ADMIN_CONNECTIONS_MAX, ADMIN_PORT, ConfigError, parse_address
from ibb.server.dashboard.live import Dashboard
from ibb.server.listening import ADMIN_LISTEN, bound_sockets, listen_on
from ibb.server.log import get_log
from ibb.server.login.login_guard import address_key

from .admin_connection import REQUEST_SECONDS_MAX, AdminConnection, protocol_settings
from .app import make_app
from .readiness import reasons_not_ready

if TYPE_CHECKING:
    from ibb.server.server import Server

SWEEP_SECONDS: Final = 1.0  # between looks for clients that had their time
NO_DESCRIPTOR_SECONDS: Final = 1.0  # between attempts when the system has none left
END_SECONDS: Final = 5.0  # for answers that are on their way when the server ends
TLS_END_SECONDS: Final = 5.0
RESERVE: Final = 4  # of all places one in so many is kept from any single address
_BACKLOG: Final = 128


@dataclass(slots=True)
class _Place:
    key: str  # of the client's address, as limits count it
    client: AdminConnection | None = None  # None in the TLS handshake

    @property
    def may_go(self) -> bool:
        return self.client is None or self.client.may_go


class AdminListener:
    """
    The pages of one server; used from its event loop.

    Args:
        server: whose pages they are; it has started.
        connections_max: at a time.

    Attributes:
        accepted: connections so far.
        turned_away: those that found all places taken, or all that an address may have.
        address: host and port, once it listens.
        dashboard: what its pages show.
    """

    def __init__(self, server: Server, *, connections_max: int = ADMIN_CONNECTIONS_MAX) -> None:
        self.accepted = 0
        self.turned_away = 0
        self.address = ("", 0)
        self._server = server
        self._connections_max = connections_max
        self._tls = _tls_of(server)
        self.dashboard = Dashboard(server, lambda: reasons_not_ready(server))
        self._settings = protocol_settings(make_app(server, self, encrypted=self._tls is not None))
        self._state = ServerState()
        self._sockets: list[socket.socket] = []
        self._work: list[asyncio.Task[None]] = []
        self._places: dict[asyncio.Task[None], _Place] = {}  # in the order of their coming
        self._pushed_out: set[asyncio.Task[None]] = set()  # that end as soon as the loop gets to it

    def __len__(self) -> int:
        return len(self._places)

    async def start(self, bound: list[socket.socket] | None = None) -> None:
        """
        Listen.

        Args:
            bound: sockets of `admin_listen`, bound to its addresses already; None: they are made.

        Raises:
            ConfigError: an address cannot be had.
        """
        address = parse_address(self._server.config.admin_listen, ADMIN_PORT)
        self._sockets = bound or await bound_sockets(ADMIN_LISTEN, *address)
        try:
            listen_on(ADMIN_LISTEN, self._sockets, _BACKLOG)
        except ConfigError:
            self._close_sockets()
            raise
        self.address = self._sockets[0].getsockname()[:2]
        self._work = [asyncio.create_task(self._accept(each)) for each in self._sockets]
        self._work.append(asyncio.create_task(self._sweep()))
        self.dashboard.start()
        scheme = "http" if self._tls is None else "https"
        host, port = self.address
        get_log().info("admin_started", scheme=scheme, host=host, port=port)

    async def stop(self) -> None:
        """Accept no more, let answers end that are on their way, and drop the rest."""
        for task in self._work:
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        self._close_sockets()
        await self.dashboard.stop()
        for place in self._places.values():
            if place.client is not None and place.client.waits:
                place.client.abort()
        if self._places:
            await asyncio.wait(self._places, timeout=END_SECONDS)
        for task, place in list(self._places.items()):
            _drop(task, place)
        await asyncio.gather(*self._places, *self._pushed_out, return_exceptions=True)
        for answering in list(self._state.tasks):
            answering.cancel()
        await asyncio.gather(*self._state.tasks, return_exceptions=True)

    def _close_sockets(self) -> None:
        for each in self._sockets:
            each.close()

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                link, peer = await loop.sock_accept(listening)
            except OSError as error:  # no descriptor is left; or who came has gone again
                self._tell("", "admin_accept_failed", error=str(error))
                await asyncio.sleep(NO_DESCRIPTOR_SECONDS)
                continue
            self.accepted += 1
            key = address_key(str(peer[0]))
            if not self._has_room(key):
                self.turned_away += 1
                link.close()
                self._tell(key, "admin_client_refused", reason="too many connections")
                continue
            place = _Place(key)
            task = asyncio.create_task(self._serve(link, place))
            self._places[task] = place
            task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._places.pop(task, None)
        self._pushed_out.discard(task)

    def _has_room(self, key: str) -> bool:
        """
        Tell whether there is a place for one more from *key*, and make it if that can be.

        Whose request is there in full stays. Of the others the address that has most places gives
        one, its oldest: so a crowd pushes out itself. An address with all that it may have pays by
        itself, too.
        """
        counts = Counter(place.key for place in self._places.values())
        at_limit = counts[key] >= self._connections_max - self._connections_max // RESERVE
        if len(self._places) < self._connections_max and not at_limit:
            return True
        may_go = [
            (counts[place.key], task)
            for task, place in self._places.items()
            if place.may_go and (place.key == key or not at_limit)
        ]
        if not may_go:
            return False
        _, task = max(may_go, key=lambda each: each[0])  # the first of equals
        self._pushed_out.add(task)
        _drop(task, self._places.pop(task))
        return True

    async def _serve(self, link: socket.socket, place: _Place) -> None:
        """Serve one client to its end; raises nothing of it."""
        loop = asyncio.get_running_loop()
        more = {} if self._tls is None else _HANDSHAKE
        # With TLS uvloop gives back a protocol of its own: this one has to be kept.
        client = AdminConnection(self._settings, self._state)
        try:
            await loop.connect_accepted_socket(lambda: client, link, ssl=self._tls, **more)
        except (OSError, TimeoutError):  # no TLS, or gone: what strangers do is not logged
            link.close()
            return
        except BaseException:
            link.close()
            raise
        place.client = client
        await client.ended

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self.end_overdue(loop.time())

    def end_overdue(self, now: float) -> None:
        """Drop who had their time; *now* is the loop's."""
        for place in list(self._places.values()):
            if place.client is not None:
                place.client.end_if_overdue(now)

    def _tell(self, key: str, event: str, **values: object) -> None:
        self._server.refusals.tell(key, event, **values)


_HANDSHAKE: Final = {
    "ssl_handshake_timeout": REQUEST_SECONDS_MAX,
    "ssl_shutdown_timeout": TLS_END_SECONDS,
}


def _drop(task: asyncio.Task[None], place: _Place) -> None:
    if place.client is None:
        task.cancel()
    else:
        place.client.abort()


def _tls_of(server: Server) -> ssl.SSLContext | None:
    """Return TLS by the certificate that lasts, if there is one: also after it was read again."""
    config = server.config
    if server.tls is None or not (config.ssl_cert or config.ssl_state):
        return None

    def use_newest(link: ssl.SSLSocket | ssl.SSLObject, *_: object) -> None:
        if server.tls is not None:
            link.context = server.tls.context

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = server.tls.context.minimum_version
    context.sni_callback = use_newest
    return context
