"""Accept connections, count them, and turn away those above the limit."""

from __future__ import annotations

import asyncio
import errno
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ibb.heap import malloc_trim
from ibb.protocol.error_codes import CON_COUNT_ERROR, HOST_IS_BLOCKED
from ibb.protocol.errors import SqlError
from ibb.protocol.reply import err

from .config import ADMIN_CONNECTIONS_MAX, parse_address
from .connections.connection import Connection
from .connections.descriptors import connections_possible
from .connections.heap_trim import HeapTrim
from .connections.socket_options import keep_alive, send_unpaced
from .dump.packet_buffers import forget_buffers
from .listening import LISTEN, bound_sockets, listen_on
from .log import get_log
from .session import Session

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .session_host import SessionHost

PATIENCE_SECONDS: Final = 1.0  # that a login may take while others find all places taken
PUSHED_OUT_MAX: Final = 32  # sessions that still end to make room
_BACKLOG: Final = 1024  # connections that wait to be accepted


class Listener:
    """
    The server's sockets and the sessions on them.

    Attributes:
        accepted: connections so far.
        most: most sessions at a time so far.
        found_full: connections that found all places taken.
        address: host and port, once it listens.
    """

    def __init__(self, host: SessionHost) -> None:
        self.accepted = 0
        self.most = 0
        self.found_full = 0
        self.address = ("", 0)
        self._host = host
        self._servers: list[asyncio.Server] = []
        self._pushed_out: set[int] = set()  # sessions that end to make room
        self._tasks: set[asyncio.Task[None]] = set()
        self._unix_socket: tuple[int, int] | None = None
        self._heap = HeapTrim(forget_buffers, malloc_trim())
        self._room = 0  # for connections, as the system allows
        self._ended_traffic = (0, 0)  # of sessions that have ended

    async def start(self, bound: list[socket.socket] | None = None) -> None:
        """
        Listen on the addresses of the configuration.

        Args:
            bound: sockets of `listen`, bound to its addresses already; None: they are made.

        Raises:
            ConfigError: an address cannot be had.
            OSError: another server listens on the unix socket.
        """
        config = self._host.config
        self._room = connections_possible()
        if config.admin_listen:  # those of its port are counted there
            self._room = max(1, self._room - ADMIN_CONNECTIONS_MAX)
        if self._room < config.max_connections:
            get_log().warning(
                "connections_limited",
                max_connections=config.max_connections,
                possible=self._room,
                reason="the system gives no more file descriptors: raise LimitNOFILE or ulimit -n",
            )
        sockets = bound or await bound_sockets(LISTEN, *parse_address(config.listen))
        self.address = sockets[0].getsockname()[:2]
        try:
            listen_on(LISTEN, sockets, _BACKLOG)  # here, as uvloop is silent when it cannot
            for each in sockets:
                started = asyncio.start_server(self._accept, sock=each, backlog=_BACKLOG)
                self._servers.append(await started)
            if config.socket:
                await self._start_unix(Path(config.socket))
        except BaseException:
            self.stop_accepting()
            for each in sockets:
                each.close()
            raise

    async def _start_unix(self, path: Path) -> None:
        _remove_stale_socket(path)
        server = await asyncio.start_unix_server(self._accept, str(path), backlog=_BACKLOG)
        self._servers.append(server)
        self._unix_socket = _identity(path)

    def traffic(self) -> tuple[int, int]:
        """Return the bytes received and sent so far."""
        running = [session.traffic for session in self._host.sessions]
        return _added([self._ended_traffic, *running])

    def stop_accepting(self) -> None:
        """Close the listening sockets; sessions go on."""
        for server in self._servers:
            server.close()

    async def closed(self) -> None:
        """Return when every session has ended and the sockets are gone."""
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._heap.close()
        for server in self._servers:
            await server.wait_closed()
        if self._unix_socket is not None:
            _remove_own_socket(Path(self._host.config.socket), self._unix_socket)

    def _no_room(self, connection: Connection) -> SqlError | None:
        """Return why the client cannot even try to log in, or None."""
        config = self._host.config
        key = connection.limit_key
        if self._host.guard.is_blocked(key):
            return HOST_IS_BLOCKED.error(connection.hosts[0])
        near, strangers = self._host.sessions.near(key)
        limit = config.max_connections_per_address if connection.is_tcp else 0
        if strangers >= config.max_logins_per_address or 0 < limit <= near:
            where = connection.address if connection.is_tcp else "this user of the system"
            text = f"{CON_COUNT_ERROR.text} from {where}"
            return SqlError(CON_COUNT_ERROR.code, CON_COUNT_ERROR.sqlstate, text)
        # Behind what counts by address: who is turned away by that must not cost others theirs.
        limit = min(config.max_connections, self._room)
        taken = len(self._host.sessions) - len(self._pushed_out)
        if taken > limit and not self._push_out():  # the last place is an administrator's
            self.found_full += 1
            return CON_COUNT_ERROR.error()
        return None

    def _push_out(self) -> bool:
        """End the login that takes longest, if it takes its time; return whether there was one."""
        since = self._host.uptime() - PATIENCE_SECONDS
        slow = [
            session
            for session in self._host.sessions
            if not session.had_login
            and session.began_at <= since
            and session.id not in self._pushed_out
        ]
        if not slow or len(self._pushed_out) >= PUSHED_OUT_MAX:
            return False
        slowest = min(slow, key=lambda session: session.began_at)
        self._pushed_out.add(slowest.id)
        reason = "login took too long while all places were taken"
        tell = self._host.refusals.tell
        tell(slowest.limit_key, "client_refused", connection_id=slowest.id, reason=reason)
        slowest.end(CON_COUNT_ERROR.error())
        return True

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        config = self._host.config
        link = writer.get_extra_info("socket")
        keep_alive(link)
        send_unpaced(link)
        connection = Connection(reader, writer, write_timeout=config.net_write_timeout)
        self.accepted += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if (error := self._no_room(connection)) is not None:
            await self._turn_away(connection, error)
            return
        session = Session(self._host, connection, self.accepted)
        self._host.sessions.add(session)
        self.most = max(self.most, len(self._host.sessions))
        try:
            await session.run()
        except asyncio.CancelledError:  # ended from outside; asyncio would log it as an error
            connection.abort()
        finally:
            self._host.sessions.remove(session)
            self._pushed_out.discard(session.id)
            self._ended_traffic = _added([self._ended_traffic, session.traffic])
            self._heap.session_ended(session.traffic[1], self._host.pools.statements)

    async def _turn_away(self, connection: Connection, error: SqlError) -> None:
        """Send *error* in place of the greeting, and so without an sqlstate."""
        key, reason = connection.limit_key, error.message
        self._host.refusals.tell(key, "client_refused", peer=connection.peer, reason=reason)
        try:
            await connection.send([err(error.code, "", error.message)])
        except (OSError, TimeoutError):
            connection.abort()
        await connection.close()  # at once: there may be many of them


def _remove_stale_socket(path: Path) -> None:
    """Remove what a server that was killed has left; raises OSError if one that lives uses it."""
    if not path.is_socket():
        return
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except BlockingIOError:
            pass  # it lives, and many wait for it
    raise OSError(errno.EADDRINUSE, "another server listens on this socket", str(path))


def _remove_own_socket(path: Path, identity: tuple[int, int]) -> None:
    """Remove the socket unless another is there by now."""
    if _identity(path) == identity:
        path.unlink()


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what tells the file at *path* from one that comes after it, None without one."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _added(pairs: Iterable[tuple[int, int]]) -> tuple[int, int]:
    received, sent = zip(*pairs, strict=True)
    return sum(received), sum(sent)
