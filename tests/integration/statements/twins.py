"""A real 10.11 and an `ibb serve` with the same history, and who may log in at both."""

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from ibb.demo.serve_process import run_ibb
from ibb.protocol.gtid import GtidPosition

from .. import workload
from ..waiting import wait_until
from .statement_client import StatementClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ibb.demo.installation import Installation

    from ..conftest import Rig
    from ..ibb_process import IbbProcess
    from ..mariadb_server import MariadbServer

PASSWORD = "open sesame"
# A primary that writes what `ibb` stores, with the defaults that both have a setting for.
OPTIONS = (
    "--binlog-format=ROW",
    "--character-set-server=utf8mb4",
    "--max-binlog-size=64M",
    "--max-allowed-packet=1M",
    "--max-connections=512",
    "--sync-binlog=1",
    "--skip-name-resolve=0",
)
ACCOUNTS = {
    "dba": ("ALL PRIVILEGES",),
    "watcher": ("REPLICATION SLAVE", "BINLOG MONITOR", "PROCESS", "SLAVE MONITOR"),
    "poor": ("USAGE",),
}
SECONDS = 60


class Twins(NamedTuple):
    """Both, running."""

    primary: "MariadbServer"
    ibb: "IbbProcess"

    def _logged_in(self, port: int, account: str) -> StatementClient:
        with StatementClient(port, "dba", PASSWORD) as administrator:
            (files,) = administrator.query("SHOW BINARY LOGS")
        client = StatementClient(port, account, PASSWORD)
        client.oldest_file = files.rows[0][0].decode()
        return client

    @contextmanager
    def clients(self, account: str) -> "Iterator[tuple[StatementClient, StatementClient]]":
        """Lend a connection to each."""
        with (
            self._logged_in(self.primary.port, account) as real,
            self._logged_in(self.ibb.port, account) as ours,
        ):
            if account == "dba":
                real.query("SET sql_log_bin = 0")  # what changes nothing here is not logged there
            yield real, ours


def start_twins(rig: "Rig", installation: "Installation") -> Twins:
    """Start a primary, fill an `ibb` from it, and start that again as a server of its own."""
    primary = rig.primary(installation, *OPTIONS)
    with primary.connection() as connection:
        for write in (workload.definitions, workload.row_changes, workload.statement_changes):
            write(connection)
    filling = rig.ibb().relay_from(primary.port).start()
    wanted = GtidPosition.parse(primary.binlog_position())
    with StatementClient(filling.port, "repl", "replpw") as client:
        wait_until(lambda: _position(client) == wanted, SECONDS)
    filling.stop()
    _end_dumps(primary)
    server_id = primary.value("@@server_id")
    ibb = rig.ibb(
        "--skip-ssl",  # as the primary, which has no certificate
        f"--server-id={server_id}",
        f"--server-version={primary.value('VERSION()')}",
        directory=filling.directory,
    )
    file = ibb.folder / "accounts.toml"
    primary.run("SET sql_log_bin = 0")
    for name, grants in ACCOUNTS.items():
        words = [word for grant in grants if grant != "USAGE" for word in ("--grant", grant)]
        done = run_ibb(
            *("account", "add", "--file", str(file), "--host", "%"),
            *(*words, "--password-stdin", name),
            stdin=PASSWORD,
        )
        assert done.returncode == 0, done.stderr
        primary.run(
            "SET sql_log_bin = 0",
            f"CREATE USER {name}@'%' IDENTIFIED BY '{PASSWORD}'",
            f"GRANT {', '.join(grants)} ON *.* TO {name}@'%'",
        )
    ibb.start()
    return Twins(primary, ibb)


def _end_dumps(primary: "MariadbServer") -> None:
    """End what the primary still sends to a reader that has gone: it has not noticed yet."""
    dumps = "SELECT id FROM information_schema.processlist WHERE command = 'Binlog Dump'"
    for (number,) in primary.rows(dumps):
        primary.run(f"KILL {number}")
    wait_until(lambda: not primary.rows(dumps), SECONDS)


def _position(client: StatementClient) -> GtidPosition:
    (answer,) = client.query("SELECT @@gtid_binlog_pos")
    return GtidPosition.parse(answer.rows[0][0].decode())
