"""
What a server has: its binlog state, and where its files begin, as places for partitions.

BINLOG_GTID_POS(file, 4) is the GTID position before a file's first group, on MariaDB's servers and
on ours.
"""

from __future__ import annotations

import re
from contextlib import closing
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.error_codes import MASTER_FATAL_ERROR_READING_BINLOG
from ibb.protocol.errors import FormatError, ProtocolError, SqlError
from ibb.protocol.gtid import GtidPosition

from .errors import ServerRefused
from .server_connection import ServerConnection
from .server_dump import DumpedGroups

if TYPE_CHECKING:
    from collections.abc import Generator

    from .server_address import ServerAddress
    from .server_dump import ReceivedGroup

FILES_MAX: Final = 100_000
_NUMBER: Final = re.compile(r"(\d{1,9})(?:\.ibb)?$", re.ASCII)


class ServerFile(NamedTuple):
    """
    A binlog file of a server.

    Attributes:
        name: as SHOW BINARY LOGS has it.
        size: bytes.
    """

    name: str
    size: int

    @property
    def number(self) -> int:
        """The number in its name."""
        found = _NUMBER.search(self.name)
        if found is None:
            raise FormatError(f"binlog file {self.name} has no number")
        return int(found[1])


class ServerHistory:
    """
    A connection that tells what there is; reconnects when it was lost.

    Args:
        address: the server.
    """

    def __init__(self, address: ServerAddress) -> None:
        self.address = address
        self._connection: ServerConnection | None = None

    def close(self) -> None:
        """Drop the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def state(self) -> tuple[BinlogState, GtidPosition]:
        """
        Return the binlog state now, and a position that it has.

        Raises:
            ServerRefused: the server is not there, or has no binlog.
        """
        ((position, state),) = self._rows(
            "SELECT @@global.gtid_binlog_pos, @@global.gtid_binlog_state"
        )
        return BinlogState.parse(state or ""), GtidPosition.parse(position or "")

    def files(self) -> list[ServerFile]:
        """Return the binlog files, oldest first; raises as `state` does."""
        rows = self._rows("SHOW BINARY LOGS")
        if len(rows) > FILES_MAX:
            raise ServerRefused(f"server {self.address} has more than {FILES_MAX} binlog files")
        return [ServerFile(str(row[0]), int(row[1] or 0)) for row in rows]

    def position_before(self, file_name: str) -> GtidPosition | None:
        """
        Return the position before the first group of a file; None: the server does not say.

        Args:
            file_name: empty for the oldest that is there.
        """
        literal = file_name.replace("\\", "\\\\").replace("'", "''")
        ((text,),) = self._rows(f"SELECT BINLOG_GTID_POS('{literal}', 4)")
        return None if text is None else GtidPosition.parse(text)

    def oldest(self) -> GtidPosition:
        """
        Return the position of who had all that was purged, and nothing of what is there.

        Raises:
            ServerRefused: the server does not say.
        """
        position = self.position_before("")
        if position is None:
            raise ServerRefused(f"server {self.address} does not say where its binlog begins")
        return position

    def first_behind(self, position: GtidPosition) -> ReceivedGroup | None:
        """
        Return the first group behind a position, its contents gone; None: there is none.

        Raises:
            SqlError: 1236, the position is not in the history, or groups behind it were purged.
            ServerRefused: the server is not there.
        """
        with closing(groups_behind(self.address, position)) as groups:
            return next(groups, None)

    def _rows(self, sql: str) -> list[tuple[str | None, ...]]:
        """Ask, once more on a new connection if the old one was lost."""
        for is_new in (False, True):
            if self._connection is None or is_new:
                self.close()
                self._connection = ServerConnection(self.address)
            try:
                return self._connection.rows(sql)
            except SqlError as error:
                raise ServerRefused(f"server {self.address}, {sql}: {error}") from error
            except (OSError, ProtocolError, FormatError) as error:
                if is_new:
                    raise ServerRefused(f"server {self.address}: {error}") from error
        raise AssertionError


def groups_behind(
    address: ServerAddress, position: GtidPosition
) -> Generator[ReceivedGroup, None, None]:
    """
    Yield the groups behind a position that a server has now, in its order.

    Raises:
        SqlError: 1236, the position is not in the history, or groups behind it were purged.
        ServerRefused: the server is not there, or the connection broke.
        FormatError: what came is damaged.
    """
    taken = DumpedGroups()
    try:
        with ServerConnection(address) as connection:
            yield from taken.groups(connection.dump(position))
    except (OSError, ProtocolError) as error:
        raise ServerRefused(f"server {address}: {error}") from error
    finally:
        taken.close()


def is_refused_position(error: SqlError) -> bool:
    """Tell whether a server refused a dump for its position (1236)."""
    return error.code == MASTER_FATAL_ERROR_READING_BINLOG.code


def is_unclear_position(error: SqlError) -> bool:
    """Tell whether it refused as it met a higher number first: there is no code for that alone."""
    return is_refused_position(error) and "both a prior and a subsequent" in error.message
