"""Real servers and `ibb` processes for a module's tests, each set started once and ended surely."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from ibb.demo.installation import Installation

from ..tiny import SERVE_ARGUMENTS
from .ibb_process import IbbProcess
from .installations import mariadb_10_11, mariadb_11_8
from .mariadb_server import PRIMARY_OPTIONS, REPLICA_OPTIONS, MariadbServer
from .workload import mixed_workload


@pytest.fixture(scope="session")
def mariadb_10() -> Installation:
    """MariaDB 10.11."""
    return mariadb_10_11()


@pytest.fixture(scope="session")
def mariadb_11() -> Installation:
    """MariaDB 11.8."""
    return mariadb_11_8()


class Rig:
    """Makes servers and `ibb` processes, each in a folder of its own; ends them all."""

    def __init__(self, folder: Path, ends: ExitStack) -> None:
        self._folder = folder
        self._ends = ends
        self._numbers = count(101)  # server ids, in one topology all different

    def primary(self, installation: Installation, *options: str) -> MariadbServer:
        """Return a running primary with a replication account."""
        server = self._server(installation, (*PRIMARY_OPTIONS, *options))
        server.add_replication_user()
        return server

    def replica(self, installation: Installation, *options: str) -> MariadbServer:
        """Return a running server that `replicate_from` makes a replica."""
        return self._server(installation, (*REPLICA_OPTIONS, *options))

    def ibb(self, *arguments: str, directory: Path | None = None) -> IbbProcess:
        """Return an `ibb serve` that is not started yet."""
        number = next(self._numbers)
        folder = self.new_folder(f"ibb{number}")
        process = IbbProcess(
            directory or folder / "store",
            folder,
            *SERVE_ARGUMENTS,
            f"--server-id={number}",
            *arguments,
        )
        self._ends.callback(process.kill)
        return process

    def _server(self, installation: Installation, options: tuple[str, ...]) -> MariadbServer:
        number = next(self._numbers)
        server = MariadbServer(
            installation, self.new_folder(f"s{number}"), server_id=number, options=options
        )
        server.initialise()
        self._ends.callback(server.kill)
        server.start()
        return server

    def new_folder(self, name: str) -> Path:
        """Return a new folder that goes with the rig."""
        folder = self._folder / name
        folder.mkdir()
        return folder


@contextmanager
def new_rig() -> Iterator[Rig]:
    """Lend a rig in a folder with a short name: that of a unix socket has 107 bytes at most."""
    folder = Path(tempfile.mkdtemp(prefix="ibb-"))
    try:
        with rig_in(folder) as rig:
            yield rig
    finally:
        shutil.rmtree(folder)


@contextmanager
def rig_in(folder: Path) -> Iterator[Rig]:
    """Lend a rig in a folder that stays; its processes end."""
    with ExitStack() as ends:
        yield Rig(folder, ends)


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """A maker of servers that one module shares."""
    with new_rig() as rig:
        yield rig


class Relayed(NamedTuple):
    """A primary with the mixed workload in it, the relay that has it too, and two replicas."""

    primary: MariadbServer
    ibb: IbbProcess
    replicas: list[MariadbServer]
    rig: Rig


@pytest.fixture(scope="session")
def relayed(mariadb_10: Installation, mariadb_11: Installation) -> Iterator[Relayed]:
    """The topology of most tests; those that use it share the xdist_group `relayed`."""
    with new_rig() as rig:
        primary = rig.primary(mariadb_10)
        ibb = rig.ibb("--max-binlog-size=1M").relay_from(primary.port).start()
        replicas = [rig.replica(installation) for installation in (mariadb_10, mariadb_11)]
        for replica in replicas:
            replica.replicate_from(ibb.port)
        mixed_workload(primary)
        yield Relayed(primary, ibb, replicas, rig)
