"""What a soak has the relay carry, and a program that reads it and remembers where it is."""

from __future__ import annotations

from contextlib import suppress

from ibb.demo.dump_client import DumpClient
from ibb.protocol.error_codes import SERVER_SHUTDOWN
from ibb.protocol.errors import ProtocolError, SqlError
from ibb.protocol.gtid import Gtid, GtidPosition

from ..integration.mariadb_server import PASSWORD, USER

ROWS_MAX = 5_000  # of the table that is written round and round
BLOB_BYTES = 2 << 20
BLOBS = 8
READER_ID = 900

DATABASE = "soak"
TABLES = (
    f"CREATE DATABASE {DATABASE}",
    f"CREATE TABLE {DATABASE}.ring (id INT PRIMARY KEY, text VARCHAR(600))",
    f"CREATE TABLE {DATABASE}.blobs (id INT PRIMARY KEY, data LONGBLOB)",
    f"CREATE TABLE {DATABASE}.marker (id INT PRIMARY KEY, n INT)",
    f"INSERT INTO {DATABASE}.marker VALUES (1, 0)",
)


def statement(number: int) -> str:
    """Return the statement of group *number*: mostly a row, now and then many or a large one."""
    if number % 500 == 0:
        return f"REPLACE INTO blobs VALUES ({number % BLOBS}, REPEAT('b', {BLOB_BYTES}))"
    if number % 100 == 0:
        rows = f"SELECT (seq + {number}) MOD {ROWS_MAX}, MD5(seq + {number}) FROM seq_1_to_500"
        return f"REPLACE INTO ring {rows}"
    return f"REPLACE INTO ring VALUES ({number % ROWS_MAX}, REPEAT('r', {number % 500}))"


class SteadyReader:
    """
    A program that reads a server of one domain as it goes, and goes on where it was.

    Numbers of a domain have no holes, so that what is lost or comes twice is seen.

    Args:
        port: of the server, on loopback.

    Attributes:
        position: behind the newest group that came.
        groups: how many came.
        wrong: what was lost or came twice, in lines.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self.position = GtidPosition.parse("")
        self.groups = 0
        self.wrong: list[str] = []

    @property
    def number(self) -> int:
        """The newest sequence number."""
        return max((gtid.seq for gtid in self.position), default=0)

    def read(self) -> None:
        """
        Read over one connection until that ends.

        Raises:
            SqlError: the server does not have what is next, or refuses for another reason.
            FormatError: a group is damaged.
        """
        try:
            with (
                suppress(ProtocolError, OSError),
                DumpClient(self._port, USER, PASSWORD) as client,
            ):
                groups = client.groups(str(self.position), server_id=READER_ID, wait=True)
                for group in groups:
                    self.take(group.gtid)
        except SqlError as error:
            if error.code != SERVER_SHUTDOWN.code:
                raise

    def take(self, gtid: Gtid) -> None:
        """Note a group that came."""
        if gtid.seq != self.number + 1:
            self.wrong.append(f"the reader got {gtid} behind {self.position}")
        self.position.set(gtid)
        self.groups += 1
