"""Rounds of SIGKILL on `ibb pipeline run`, under load from the snapshot on; then a comparison."""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from select import select
from threading import Event
from typing import TYPE_CHECKING

from ibb.protocol.errors import IbbError

from ..integration.conftest import Rig, new_rig
from ..integration.installations import mariadb_10_11
from ..pipeline.tables.topology import ROW_OPTIONS, Topology
from .pipeline_load import MixedLoad, WideLoad

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from .pipeline_load import Load

LIFE_SECONDS = (0.2, 3.0)
RUN_SECONDS_MAX = 120.0
BEGIN_SECONDS_MAX = 20.0  # until a pipeline says what it did first
REPORT_SECONDS = 2.0
PAUSE_SECONDS = 0.005  # between two statements
ROWS_A_SECOND_MIN = 300  # that the pipeline applies in the end, whatever the machine


class PipelineRounds:
    """
    A primary under load, its relay, and a pipeline that is killed.

    Args:
        rig: makes the servers.
        folder: for the tables.
        seed: of when kills come, and of the load.
        load: what is written; None: a few tables, as long as kills come.
        life_seconds: of a pipeline, at most.
        histories: whether the tables' histories are kept and compared, too.
    """

    def __init__(
        self,
        rig: Rig,
        folder: Path,
        seed: int,
        load: Load | None = None,
        life_seconds: float = LIFE_SECONDS[1],
        *,
        histories: bool = True,
    ) -> None:
        self._random = random.Random(seed)
        self.load = load or MixedLoad(random.Random(seed))
        self._life = (LIFE_SECONDS[0], life_seconds)
        self._histories = ("shop.*",) if histories else ()
        self._primary = rig.primary(mariadb_10_11(), *ROW_OPTIONS)
        relay = rig.ibb().relay_from(self._primary.port).start()
        self._topology = Topology(self._primary, relay)
        self._config = folder / "pipeline.toml"
        self._config.write_text(
            f'[source]\npath = "{relay.directory}"\n[target]\npath = "lake"\n[pipeline]\n'
            f'name = "test"\n[tables]\ninclude = ["shop.*"]\n'
            f"history = {list(self._histories)}\n[batch]\ngroups = {20 if histories else 200}\n"
            f'seconds = 1\n[server]\nsocket = "{self._primary.socket}"\nchunk_rows = 100\n'
        )
        self._folder = folder
        self.kills = 0

    def prepare(self) -> None:
        """Make the tables, with some rows."""
        self._primary.run("CREATE DATABASE shop", "USE shop", *self.load.first)

    def run(self, rounds: int, report: Callable[[str], None] = lambda _: None) -> list[str]:
        """
        Kill the pipeline *rounds* times while rows change; return what differs in the end.

        Args:
            rounds: kills.
            report: told how far it is.
        """
        ended = Event()
        moments = sorted(self._random.random() for _ in range(rounds))

        def tell() -> None:
            report(f"{self.load.changed} rows changed, {self.kills} of {rounds} kills")

        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(self._write, ended)
            try:
                while self.kills < rounds:
                    self._kill_once(moments[self.kills], writing, tell)
                while self.load.share < 1 and not writing.done():
                    ended.wait(REPORT_SECONDS)
                    tell()
            finally:
                ended.set()
            writing.result()
        report("applying what is left")
        self._topology.caught_up()
        done = subprocess.run(
            [*self._command(), "--once"],
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS_MAX + self.load.changed / ROWS_A_SECOND_MIN,
            check=False,
        )
        if done.returncode:
            return [done.stderr.strip()]
        report("comparing")
        config = self._topology.config(self._folder, include=("shop.*",), history=self._histories)
        different, tables = self._topology.differences(config)
        assert tables == self.load.tables * (1 + bool(self._histories))
        return different

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "ibb", "pipeline", "run", str(self._config)]

    def _kill_once(self, share: float, writing: Future[None], tell: Callable[[], None]) -> None:
        """Let a pipeline run until *share* of all was written, and somewhat longer."""
        process = subprocess.Popen(
            self._command(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        if self._random.random() < 0.8:  # else it dies while it starts
            select([process.stdout], [], [], BEGIN_SECONDS_MAX)  # there may be nothing to do
        while True:
            try:
                _, error = process.communicate(timeout=self._random.uniform(*self._life))
            except subprocess.TimeoutExpired:
                tell()
                if self.load.share < share and not writing.done():
                    continue
                process.kill()
                process.communicate()
                self.kills += 1
                return
            raise IbbError(f"the pipeline ended by itself: {error}")

    def _write(self, ended: Event) -> None:
        with self._primary.connection(database="shop") as connection:
            while not (ended.is_set() or self.load.is_done):
                with connection.cursor() as cursor:
                    self.load.step(cursor)
                ended.wait(PAUSE_SECONDS)


def main() -> None:
    """Run the rounds that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="kills")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, help="changed rows, of tables of all types")
    parser.add_argument("--tables", type=int, default=40, help="of these")
    parser.add_argument("--life", type=float, default=LIFE_SECONDS[1], help="seconds, at most")
    arguments = parser.parse_args()
    load = None
    if arguments.rows is not None:
        load = WideLoad(random.Random(arguments.seed), arguments.tables, arguments.rows)
    with new_rig() as rig, tempfile.TemporaryDirectory() as folder:
        rounds = PipelineRounds(
            rig, Path(folder), arguments.seed, load, arguments.life, histories=load is None
        )
        rounds.prepare()
        different = rounds.run(arguments.rounds, _show)
        print(file=sys.stderr)
        load = rounds.load
        print(f"{rounds.kills} kills, {load.statements} statements, {load.changed} rows changed")
        equal = f"all {load.tables} tables are equal to the source"
        print("\n".join(different) if different else equal)
        sys.exit(1 if different else 0)


def _show(text: str) -> None:
    """Show how far it is, in one line."""
    print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
