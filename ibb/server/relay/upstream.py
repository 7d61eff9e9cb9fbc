"""
The client side of replication: log in to a primary and ask it for a dump, as a replica does.

Source: dump-protocol 1, 2.1, 8.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from socket import gaierror
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from ibb.protocol import error_codes as codes
from ibb.protocol.command import BinlogDump, DumpFlag, Query, RegisterSlave
from ibb.protocol.errors import SqlError
from ibb.protocol.reply import is_err, parse_err
from ibb.protocol.result_set import ReplyReader, ResultSet
from ibb.protocol.rotate import FIRST_POSITION
from ibb.server.config import READ_BYTES, ConfigError
from ibb.server.connections.packet_link import PacketLink
from ibb.server.connections.socket_options import keep_alive
from ibb.server.connections.tapped_reader import open_tapped

from .upstream_login import UpstreamRefused, log_in
from .upstream_tls import UpstreamTls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ibb.protocol.command import SemiSyncAck
    from ibb.protocol.gtid import GtidPosition
    from ibb.protocol.reply import Ok
    from ibb.server.connections.direct_receiver import DirectReceiver

UPSTREAM_PORT_DEFAULT: Final = 3306
_BEFORE_VERSION: Final = "5.5.5-"  # in greetings of 10.0 to 10.11, for replicas of before
_CAPABILITY: Final = 4  # knows GTID events
_KNOWS_SEMI_SYNC: Final = "SHOW VARIABLES LIKE 'rpl_semi_sync_master_enabled'"


def is_host_name(name: str) -> bool:
    """Tell whether one can try to connect to *name*: asking the system for others is an error."""
    try:
        return bool(name.encode("idna")) and "\0" not in name
    except UnicodeError:
        return False


@dataclass(frozen=True, slots=True)
class UpstreamAddress:
    """Where the primary is and who we are there."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    tls: UpstreamTls = field(default_factory=UpstreamTls)

    @classmethod
    def parse(
        cls,
        url: str,
        password: str,
        tls: UpstreamTls | None = None,
        port_default: int = UPSTREAM_PORT_DEFAULT,
        *,
        names: tuple[str, str] = ("upstream", "upstream_password_file"),
    ) -> UpstreamAddress:
        """
        Read `mariadb://USER@HOST:PORT`.

        Args:
            url: the text.
            password: of the user.
            tls: how to speak TLS with it.
            port_default: where the text has none.
            names: what people know the text by, and the file of the password, for messages.

        Raises:
            ConfigError: it is anything else, or it holds a password, which `ps` would show.
        """
        name, password_file = names
        wanted = f"{name} must be mariadb://USER@HOST:PORT"
        try:
            parts = urlsplit(url)
            port = parts.port or port_default
        except ValueError:  # its text may hold a part of a password
            raise ConfigError(wanted) from None
        named = parts.hostname is not None and is_host_name(parts.hostname)
        if parts.scheme not in ("mariadb", "mysql") or not named or not parts.username:
            raise ConfigError(wanted)
        if parts.password is not None:
            raise ConfigError(f"{name}: put the password into {password_file}")
        assert parts.hostname is not None
        return cls(parts.hostname, port, unquote(parts.username), password, tls or UpstreamTls())

    def __str__(self) -> str:
        """Return where it is; it goes into the log, where no account belongs."""
        return f"{self.host}:{self.port}"


class DumpTerms(NamedTuple):
    """
    What a dump and its reader have agreed on.

    Args:
        has_checksum: events before the first format description carry a CRC-32.
        semi_sync: packets are marked, and some are to be acknowledged.
    """

    has_checksum: bool
    semi_sync: bool


class Upstream:
    """One connection to a primary; made by `connect`."""

    def __init__(self, link: PacketLink, server_version: str) -> None:
        self._link = link
        self.server_version = server_version.removeprefix(_BEFORE_VERSION)
        self.server_id = 0  # as it says before a dump
        self.clock_ahead = 0  # seconds that our clock is ahead of its clock

    @classmethod
    async def connect(cls, address: UpstreamAddress) -> Upstream:
        """
        Connect and log in.

        Raises:
            SqlError: the primary refuses, e.g. 1045.
            UpstreamRefused: it is too old, offers no TLS, or wants a login that we have not.
            UntrustedPrimary: its certificate is not the right one.
            OSError, ProtocolError, FormatError: it is not there, or no MariaDB.
        """
        try:
            ends = await open_tapped(address.host, address.port, READ_BYTES)
        except gaierror as error:
            raise OSError(f"cannot find {address.host}: {error.strerror}") from error
        link = PacketLink(*ends)
        try:
            keep_alive(ends[1].get_extra_info("socket"))
            return cls(link, await log_in(link, address))
        except BaseException:
            await link.close()
            raise

    def cipher(self) -> tuple[str, str]:
        """Return cipher and version of TLS, empty without."""
        return self._link.cipher()

    async def query(self, sql: str) -> Ok | ResultSet:
        """Run one statement; raises SqlError when the primary refuses it."""
        await self._link.send(Query(sql).encode(), new_command=True)
        replies = ReplyReader()
        while True:
            reply = replies.add(await self._link.receive())
            if reply is not None:
                return reply

    async def value(self, sql: str, column: int = 0) -> str | None:
        """Return a value of the first row that *sql* answers; None: NULL, or no row."""
        reply = await self.query(sql)
        if not isinstance(reply, ResultSet) or not reply.rows or len(reply.columns) <= column:
            return None
        value = reply.rows[0][column]
        return value.decode(errors="replace") if isinstance(value, bytes) else None

    async def variables(self, names: Iterable[str]) -> dict[str, str]:
        """Return the global system variables of these *names* that the primary has."""
        listed = ", ".join(f"'{name}'" for name in names)
        sql = f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({listed})"
        try:
            reply = await self.query(sql)
        except SqlError:
            return {}  # only a primary says such things: a relay of another kind may not
        if not isinstance(reply, ResultSet) or len(reply.columns) != 2:
            return {}
        return {
            name.decode(errors="replace"): value.decode(errors="replace")
            for name, value in reply.rows
            if isinstance(name, bytes) and isinstance(value, bytes)
        }

    async def start_dump(
        self,
        position: GtidPosition,
        *,
        server_id: int,
        port: int,
        heartbeat_period: float,
        semi_sync: bool = False,
    ) -> DumpTerms:
        """
        Say what a replica says and ask for everything behind *position*.

        Args:
            position: the last GTID that we have in each domain.
            server_id: our own.
            port: the one that we listen on, to be shown by SHOW SLAVE HOSTS.
            heartbeat_period: seconds of silence before the primary sends a heartbeat.
            semi_sync: acknowledge what it asks for, if it knows of that.

        Raises:
            UpstreamRefused: the primary has our server id.
            SqlError: it refuses a statement.
        """
        now = await self.value("SELECT UNIX_TIMESTAMP()")
        self.clock_ahead = int(time.time()) - int(now) if now is not None and now.isdigit() else 0
        theirs = await self.value("SHOW VARIABLES LIKE 'SERVER_ID'", 1)
        self.server_id = int(theirs) if theirs is not None and theirs.isdigit() else 0
        if theirs == str(server_id):
            raise UpstreamRefused(
                f"the primary has our server id {server_id}: set another server_id"
            )
        await self.query(f"SET @master_heartbeat_period= {int(heartbeat_period * 1e9)}")
        try:
            await self.query("SET @master_binlog_checksum= @@global.binlog_checksum")
        except SqlError as error:
            if error.code != codes.UNKNOWN_SYSTEM_VARIABLE.code:
                raise
        checksum = await self.value("SELECT @master_binlog_checksum")
        await self.query(f"SET @mariadb_slave_capability={_CAPABILITY}")
        await self.query("SELECT @@GLOBAL.gtid_domain_id")
        await self.query(f"SET @slave_connect_state='{position}'")
        await self.query("SET @slave_gtid_strict_mode=0")
        await self.query("SET @slave_gtid_ignore_duplicates=0")
        await self._link.send(RegisterSlave(server_id, port=port).encode(), new_command=True)
        answer = await self._link.receive()
        if is_err(answer):
            raise parse_err(answer)
        if semi_sync and await self.value(_KNOWS_SEMI_SYNC, 1) is not None:
            await self.query("SET @rpl_semi_sync_slave= 1")
        else:
            semi_sync = False
        dump = BinlogDump(FIRST_POSITION, DumpFlag.SEND_ANNOTATE_ROWS, server_id, "")
        await self._link.send(dump.encode(), new_command=True)
        return DumpTerms(checksum == "CRC32", semi_sync)

    async def acknowledge(self, acknowledgement: SemiSyncAck) -> None:
        """Tell the primary what is safe here; there is no answer."""
        await self._link.send(acknowledgement.encode(), new_command=True)

    def direct_receiver(self) -> DirectReceiver | None:
        """Return what receives the bytes of the dump, see `PacketLink.direct_receiver`."""
        return self._link.direct_receiver()

    def hand_on(
        self, take: Callable[[bytes], object], end: Callable[[BaseException], None]
    ) -> None:
        """Give away the bytes of the dump as they come, see `PacketLink.hand_on`."""
        self._link.hand_on(take, end)

    def pause(self) -> None:
        """Have nothing come for a while."""
        self._link.pause()

    def resume(self) -> None:
        """Go on behind `pause`."""
        self._link.resume()

    async def close(self) -> None:
        """Drop the connection."""
        await self._link.close()
