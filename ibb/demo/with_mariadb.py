"""The demonstration with real MariaDB servers: primary, `ibb serve --upstream`, replica."""

import os
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from .installation import Installation
from .live_view import LiveView
from .scratch_server import ScratchServer, ScratchServerError
from .serve_process import ServeProcess
from .workload import DATABASE, Workload

USER = "repl"
PASSWORD = "demo"  # noqa: S105 (of scratch servers on loopback, gone in a minute)
POLL_SECONDS = 0.2
STALL_SECONDS_MAX = 60.0
BINLOG_BYTES_MAX = 64 << 20  # two files of this size are allocated at once
PRIMARY_ID, IBB_ID, REPLICA_ID = 1, 2, 3


class Topology:
    """
    A primary, a relay and a replica in *folder*, all started; each `positions` shows.

    Args:
        installation: the MariaDB to run.
        folder: an existing empty folder with a short name.
        ends: gets what ends them all.
    """

    def __init__(self, installation: Installation, folder: Path, ends: ExitStack) -> None:
        self._installation = installation
        self._ends = ends
        self._folder = folder
        self.primary = self._server("primary", PRIMARY_ID, "--log-bin=bin")
        self.primary.sql(
            "SET sql_log_bin = 0;"
            f"CREATE USER {USER}@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';"
            f"GRANT REPLICATION SLAVE ON *.* TO {USER}@'127.0.0.1';"
        )
        ibb_folder = folder / "ibb"
        ibb_folder.mkdir()
        self.ibb = ServeProcess(
            folder / "store",
            ibb_folder,
            user=USER,
            password=PASSWORD,
            arguments=[f"--server-id={IBB_ID}", f"--max-binlog-size={BINLOG_BYTES_MAX}"],
        ).relay_from(self.primary.port)
        ends.callback(self.ibb.kill)
        self.ibb.start()
        self.replica = self._server("replica", REPLICA_ID)
        self.replica.sql(
            f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={self.ibb.port},"
            f" MASTER_USER='{USER}', MASTER_PASSWORD='{PASSWORD}', MASTER_SSL=0,"
            " MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1; START SLAVE;"
        )

    def positions(self) -> dict[str, str]:
        """Return the GTID position of each place."""
        return {
            "primary": self.primary.sql("SELECT @@gtid_binlog_pos;")[0][0],
            "ibb": self._ibb_position(),
            "replica": self.replica.sql("SELECT @@gtid_slave_pos;")[0][0],
        }

    def check(self) -> None:
        """
        Do nothing while the replica runs well.

        Raises:
            ScratchServerError: it stopped, with its own words.
        """
        status = self.replica.sql("SHOW SLAVE STATUS\\G")
        fields = dict(line[0].strip().split(": ", 1) for line in status if ": " in line[0])
        for name in ("Last_IO_Error", "Last_SQL_Error"):
            if fields.get(name):
                raise ScratchServerError(f"the replica stopped: {fields[name]}")

    def checksums(self, server: ScratchServer) -> dict[str, str]:
        """Return CHECKSUM TABLE of every table of the workload, by name."""
        tables = server.sql(f"SHOW TABLES FROM {DATABASE};")
        names = ", ".join(f"{DATABASE}.{table}" for (table,) in tables)
        return {row[0]: row[1] for row in server.sql(f"CHECKSUM TABLE {names};")}

    def _server(self, name: str, server_id: int, *options: str) -> ScratchServer:
        folder = self._folder / name
        folder.mkdir()
        server = ScratchServer(self._installation, folder, server_id=server_id, options=options)
        server.initialise()
        self._ends.callback(server.kill)
        server.start()
        return server

    def _ibb_position(self) -> str:
        command = self._installation.command(
            *("mariadb", "--no-defaults", "--skip-ssl", "--batch", "--skip-column-names"),
            *("--host=127.0.0.1", f"--port={self.ibb.port}", f"--user={USER}"),
            "--execute=SELECT @@gtid_binlog_pos",
        )
        done = subprocess.run(
            command,
            env=os.environ | {"MYSQL_PWD": PASSWORD},
            capture_output=True,
            text=True,
            timeout=STALL_SECONDS_MAX,
            check=False,
        )
        if done.returncode != 0:
            raise ScratchServerError(f"ibb: {done.stderr}{self.ibb.log_tail()}")
        return done.stdout.strip()


def groups_in(position: str) -> int:
    """Return how many groups led to *position*, each domain counting from 1 without gaps."""
    return sum(int(gtid.rpartition("-")[2]) for gtid in position.split(",") if gtid)


def watch(topology: Topology, workload: Workload, view: LiveView, groups: int) -> dict[str, str]:
    """
    Show the groups' way until all places have *groups*; return the last positions.

    Returns before that when nothing has moved for `STALL_SECONDS_MAX`.

    Raises:
        ScratchServerError: the workload or the replica failed.
    """
    counts: dict[str, int] = {}
    moved = time.monotonic()
    while True:
        positions = topology.positions()
        before, counts = counts, {place: groups_in(text) for place, text in positions.items()}
        moved = moved if counts == before else time.monotonic()
        done = min(counts.values()) >= groups or time.monotonic() - moved > STALL_SECONDS_MAX
        view.show(counts, last=done)
        if done:
            return positions
        workload.check()
        topology.check()
        time.sleep(POLL_SECONDS)


def run_with_mariadb(console: Console, installation: Installation, groups: int) -> bool:
    """
    Run the whole demonstration and return whether primary and replica are equal.

    Args:
        console: for the live view and the result.
        installation: the MariaDB to run as primary and replica.
        groups: event groups to write.
    """
    with ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="ibb-demo-")))
        console.print(f"starting a primary, ibb and a replica in {folder}", highlight=False)
        topology = Topology(installation, folder, ends)
        workload = Workload(topology.primary, groups)
        workload.start()
        try:
            with LiveView(console, ("primary", "ibb", "replica"), groups) as view:
                positions = watch(topology, workload, view, groups)
        finally:
            workload.join()
        sets = {place: set(text.split(",")) for place, text in positions.items()}
        checksums = [topology.checksums(s) for s in (topology.primary, topology.replica)]
        console.print(f"GTID position: {positions['replica']}", highlight=False)
        console.print(f"CHECKSUM TABLE: {len(checksums[0])} tables", highlight=False)
        return sets["primary"] == sets["ibb"] == sets["replica"] and checksums[0] == checksums[1]
