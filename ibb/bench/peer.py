"""The two sides that are measured: a real mariadbd, and `ibb serve`, each a process of its own."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ibb.demo.dump_client import DumpClient
from ibb.demo.scratch_server import ScratchServer
from ibb.demo.serve_process import ServeProcess

from .data_set import LEGACY_NAME
from .errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ibb.demo.installation import Installation

    from .data_set import DataSet

USER: Final = "bench"
PASSWORD: Final = "bench"  # noqa: S105 - of servers on loopback that live for a measurement
CONNECTIONS_MAX: Final = 4096
FOLDER_CHARACTERS_MAX: Final = 80  # a unix socket's path has 107
_MARIADB_SERVER_ID: Final = 1001
_MARIADB_OPTIONS: Final = (
    "--log-bin=binlog",
    "--binlog-format=ROW",
    "--binlog-checksum=CRC32",
    "--binlog-row-event-max-size=8192",
    "--log-slave-updates=0",
    "--max-binlog-size=1G",
    f"--max-connections={CONNECTIONS_MAX}",
)
_TABLE: Final = """
SET sql_log_bin = 0;
CREATE DATABASE bench;
CREATE TABLE bench.orders
    (id INT NOT NULL, note VARCHAR(8000) CHARACTER SET latin1 NOT NULL) ENGINE=InnoDB;
"""


@dataclass(frozen=True)
class Peer:
    """
    A server that is up.

    Attributes:
        name: `ibb` or `mariadbd`.
        pid: of the process whose processor time and memory count.
        port: on loopback.
        process: what runs it.
    """

    name: str
    pid: int
    port: int
    process: ServeProcess | ScratchServer
    user: str = USER
    password: str = PASSWORD

    def query(self, statement: str) -> str:
        """Run a statement over a connection of its own; return the first value of its answer."""
        with DumpClient(self.port, self.user, self.password) as client:
            return first_value(client, statement)


def first_value(client: DumpClient, statement: str) -> str:
    """Run a statement; return the first value of its answer as text, empty for none."""
    reply = client.query(statement)
    rows = getattr(reply, "rows", ())
    value = rows[0][0] if rows else b""
    return value.decode() if isinstance(value, bytes) else str(value or "")


@contextmanager
def ibb_peer(directory: Path, folder: Path, arguments: Sequence[str] = ()) -> Iterator[Peer]:
    """
    Run `ibb serve` over *directory* for a block.

    Args:
        directory: of the `.ibb` files.
        folder: where a folder for its accounts and log is made.
        arguments: more of `ibb serve`'s.
    """
    own, accounts = _new_folder(folder, "ibb"), folder / "accounts.toml"
    if accounts.exists():  # made once in a run: it is a process that hashes a password
        shutil.copy(accounts, own / accounts.name)
    process = ServeProcess(
        directory,
        own,
        user=USER,
        password=PASSWORD,
        arguments=[f"--max-connections={CONNECTIONS_MAX}", "--log-level=warning", *arguments],
        grants="ALL PRIVILEGES",
    )
    try:
        process.start()
        shutil.copy(own / accounts.name, accounts)
        yield Peer("ibb", process.pid, process.port, process)
    finally:
        process.kill()
        shutil.rmtree(own, ignore_errors=True)


@contextmanager
def mariadb_peer(
    installation: Installation, folder: Path, data: DataSet | None = None
) -> Iterator[Peer]:
    """
    Run a new mariadbd for a block.

    Args:
        installation: its programs.
        folder: where its folder is made.
        data: the binlog that it has; None: an empty one.

    Raises:
        BenchError: the folder's name is too long for a unix socket.
    """
    own = _new_folder(folder, "mariadbd")
    if len(str(own)) > FOLDER_CHARACTERS_MAX:
        raise BenchError(f"{own} is too long for the name of a unix socket: take another --data")
    server = ScratchServer(
        installation, own, server_id=_MARIADB_SERVER_ID, options=_MARIADB_OPTIONS
    )
    try:
        server.initialise()
        if data is not None:
            _give_binlog(server.data, data)
        server.start()
        server.sql(
            f"{_TABLE} CREATE USER {USER}@'%' IDENTIFIED BY '{PASSWORD}';"
            f"GRANT ALL ON *.* TO {USER}@'%';"
        )
        yield Peer("mariadbd", server.pid, server.port, server)
    finally:
        server.kill()
        shutil.rmtree(own, ignore_errors=True)


def _new_folder(folder: Path, name: str) -> Path:
    for number in range(1000):
        path = folder / f"{name}-{os.getpid()}-{number}"
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise BenchError(f"{folder} is full of folders of earlier measurements: remove them")


def _give_binlog(folder: Path, data: DataSet) -> None:
    """Make a data set's binlog the one that a server finds when it starts."""
    try:
        os.link(data.legacy, folder / LEGACY_NAME)  # it only reads files before its newest
    except OSError:
        shutil.copy(data.legacy, folder / LEGACY_NAME)
    stem = LEGACY_NAME.partition(".")[0]
    (folder / f"{stem}.index").write_text(f"./{LEGACY_NAME}\n")
    (folder / f"{stem}.state").write_text(f"{data.facts.last}\n")
