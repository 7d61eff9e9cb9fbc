"""Rounds of SIGKILL on `ibb pipeline run`, under load from the snapshot on; then a comparison."""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from threading import Event, Thread

from ibb.protocol.errors import IbbError

from ..integration.conftest import Rig, new_rig
from ..integration.installations import mariadb_10_11
from ..pipeline.tables.topology import ROW_OPTIONS, Topology

LIFE_SECONDS = (0.2, 3.0)
RUN_SECONDS_MAX = 120.0
TABLES = ("words", "bag", "pair")
STATEMENTS = (
    "INSERT INTO words VALUES ('k{n}', {n}, 'x') ON DUPLICATE KEY UPDATE n = {n}",
    "UPDATE IGNORE words SET w = 'K{n}', n = n + 1 WHERE w = 'k{m}'",
    "DELETE FROM words WHERE n MOD 7 = {n} MOD 7 LIMIT 3",
    "INSERT INTO bag SELECT {n} MOD 3, 'x' FROM seq_1_to_20",
    "DELETE FROM bag WHERE n = {n} MOD 3 LIMIT 15",
    "UPDATE bag SET w = CONCAT(w, 'y') WHERE n = {m} MOD 3 AND LENGTH(w) < 4 LIMIT 2",
    "REPLACE INTO pair (a, b, v) SELECT seq, CHAR({n} MOD 3), {n} / 3 FROM seq_1_to_50",
    "UPDATE IGNORE pair SET a = a + 1000 WHERE a > 40 AND a < 60 AND b = CHAR({n} MOD 3)",
    "DELETE FROM pair WHERE a > 1000",
    "TRUNCATE TABLE bag",
    "ALTER TABLE pair ADD COLUMN c{n} INT DEFAULT {n}",
)
RARE = 2  # of the last statements, which come once in so many
RARE_IN = 40


class PipelineRounds:
    """
    A primary under load, its relay, and a pipeline that is killed.

    Args:
        rig: makes the servers.
        folder: for the tables.
        seed: of when kills come, and of the load.
    """

    def __init__(self, rig: Rig, folder: Path, seed: int) -> None:
        self._random = random.Random(seed)
        self._primary = rig.primary(mariadb_10_11(), *ROW_OPTIONS)
        relay = rig.ibb().relay_from(self._primary.port).start()
        self._topology = Topology(self._primary, relay)
        self._config = folder / "pipeline.toml"
        self._config.write_text(
            f'[source]\npath = "{relay.directory}"\n[target]\npath = "lake"\n[pipeline]\n'
            f'name = "test"\n[tables]\ninclude = ["shop.*"]\nhistory = ["shop.*"]\n'
            f"[batch]\ngroups = 20\n"
            f'[server]\nsocket = "{self._primary.socket}"\nchunk_rows = 100\n'
        )
        self._folder = folder
        self._number = 0
        self.kills = 0

    def prepare(self) -> None:
        """Make the tables, with some rows."""
        self._primary.run(
            "CREATE DATABASE shop",
            "USE shop",
            "CREATE TABLE words (w VARCHAR(20) PRIMARY KEY, n INT, b BLOB) CHARSET=utf8mb4",
            "CREATE TABLE bag (n INT, w VARCHAR(9))",
            "CREATE TABLE pair (a INT, b BINARY(3), v DOUBLE, PRIMARY KEY (b, a))",
            "INSERT INTO words SELECT CONCAT('k', seq), seq, NULL FROM seq_1_to_2000",
            "INSERT INTO bag SELECT seq MOD 5, 'x' FROM seq_1_to_500",
        )

    def run(self, rounds: int) -> list[str]:
        """Kill the pipeline *rounds* times while rows change; return what differs in the end."""
        ended = Event()
        load = Thread(target=self._load, args=(ended,))
        load.start()
        try:
            for _ in range(rounds):
                self._kill_once()
        finally:
            ended.set()
            load.join()
        self._topology.caught_up()
        done = subprocess.run(
            [*self._command(), "--once"],
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS_MAX,
            check=False,
        )
        if done.returncode:
            return [done.stderr.strip()]
        config = self._topology.config(self._folder, include=("shop.*",), history=("shop.*",))
        different, tables = self._topology.differences(config)
        assert tables == 2 * len(TABLES)  # each with its history
        return different

    @property
    def statements(self) -> int:
        """How many statements the load has run."""
        return self._number

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "ibb", "pipeline", "run", str(self._config)]

    def _kill_once(self) -> None:
        process = subprocess.Popen(
            self._command(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        if self._random.random() < 0.8:  # else it dies while it starts
            process.stdout.readline()
        try:
            _, error = process.communicate(timeout=self._random.uniform(*LIFE_SECONDS))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            self.kills += 1
        else:
            raise IbbError(f"the pipeline ended by itself: {error}")

    def _load(self, ended: Event) -> None:
        with self._primary.connection(database="shop") as connection:
            while not ended.is_set():
                self._number += 1
                rare = self._number % RARE_IN == 0
                choice = STATEMENTS[-RARE:] if rare else STATEMENTS[:-RARE]
                statement = self._random.choice(choice)
                with connection.cursor() as cursor:
                    cursor.execute(statement.format(n=self._number, m=self._random.randrange(2000)))
                ended.wait(0.005)


def main() -> None:
    """Run the rounds that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with new_rig() as rig, tempfile.TemporaryDirectory() as folder:
        rounds = PipelineRounds(rig, Path(folder), arguments.seed)
        rounds.prepare()
        different = rounds.run(arguments.rounds)
        print(f"{rounds.kills} kills, {rounds.statements} statements, {len(TABLES)} tables")
        print("\n".join(different) if different else "all tables are equal to the source")
        sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
