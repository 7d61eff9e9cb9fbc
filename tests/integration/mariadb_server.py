"""A real MariaDB server as a member of a replication topology."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pymysql
from pymysql.cursors import DictCursor

from ibb.demo.scratch_server import ScratchServer

USER = "repl"
PASSWORD = "replpw"
PACKET_BYTES_MAX = 64 << 20  # max_allowed_packet: room for one large blob

PRIMARY_OPTIONS = (
    "--log-bin=bin",
    "--binlog-format=MIXED",
    "--gtid-strict-mode=0",
    "--local-infile=1",
    f"--max-allowed-packet={PACKET_BYTES_MAX}",
)
REPLICA_OPTIONS = (
    f"--max-allowed-packet={PACKET_BYTES_MAX}",
    "--slave-net-timeout=10",  # seconds; the replica asks for heartbeats at half of it
    "--relay-log-recovery=1",
)


class MariadbServer(ScratchServer):
    """A scratch server that tests reach through PyMySQL."""

    def connect(self, **settings: Any) -> "pymysql.Connection[Any]":
        """Return a new connection as root, with autocommit on."""
        connection = pymysql.connect(
            user="root", autocommit=True, charset="utf8mb4", defer_connect=True, **settings
        )
        # Our own socket: PyMySQL leaves one open when the server is away.
        link = socket.socket(socket.AF_UNIX)
        try:
            link.connect(str(self.socket))
            connection.connect(link)
        except BaseException:
            link.close()
            raise
        return connection

    @contextmanager
    def connection(self, **settings: Any) -> Iterator["pymysql.Connection[Any]"]:
        connection = self.connect(**settings)
        try:
            yield connection
        finally:
            connection.close()

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return what *statement* answers."""
        with self.connection() as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def value(self, expression: str) -> Any:
        """Return `SELECT` *expression*."""
        return self.rows(f"SELECT {expression}")[0][0]

    def run(self, *statements: str) -> None:
        """Execute *statements* on one connection."""
        with self.connection() as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def add_replication_user(self) -> None:
        """Make the account that replicas and tools use; outside the binlog, so no group of ours."""
        self.run(
            "SET sql_log_bin = 0",
            f"CREATE USER {USER}@'127.0.0.1' IDENTIFIED BY '{PASSWORD}'",
            f"GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO {USER}@'127.0.0.1'",
        )

    def replicate_from(
        self,
        port: int,
        *,
        host: str = "127.0.0.1",
        user: str = USER,
        password: str = PASSWORD,
        position: str = "",
        tls: str = "MASTER_SSL=0",
    ) -> None:
        """Follow the master on *port* from the GTID *position*; does not wait."""
        self.run(
            "STOP SLAVE",
            f"SET GLOBAL gtid_slave_pos = '{position}'",
            f"CHANGE MASTER TO MASTER_HOST='{host}', MASTER_PORT={port}, MASTER_USER='{user}', "
            f"MASTER_PASSWORD='{password}', {tls}, MASTER_USE_GTID=slave_pos, "
            "MASTER_CONNECT_RETRY=1",
            "START SLAVE",
        )

    def replica_status(self) -> dict[str, Any]:
        """Return the row of SHOW SLAVE STATUS, empty if there is none."""
        with self.connection(cursorclass=DictCursor) as connection, connection.cursor() as cursor:
            cursor.execute("SHOW SLAVE STATUS")
            return cursor.fetchone() or {}

    def binlog_position(self) -> str:
        """Return `gtid_binlog_pos`: the newest GTID of each domain."""
        return str(self.value("@@GLOBAL.gtid_binlog_pos"))

    def replica_position(self) -> str:
        """Return `gtid_slave_pos`."""
        return str(self.value("@@GLOBAL.gtid_slave_pos"))

    def binlog_files(self) -> list[Path]:
        """Return the paths of the binlog files, oldest first."""
        return [self.data / str(row[0]) for row in self.rows("SHOW BINARY LOGS")]
