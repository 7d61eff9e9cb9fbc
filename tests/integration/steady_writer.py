"""A client that keeps writing to a primary, whatever happens to it."""

import threading
from itertools import count
from typing import Self

import pymysql

from .mariadb_server import MariadbServer
from .waiting import wait_until

RETRY_SECONDS = 0.05
PAUSE_SECONDS_MAX = 30.0
DOMAINS = (0, 3, 12)


class SteadyWriter:
    """
    Writes small groups of several kinds and domains while a `with` block runs.

    Args:
        primary: where to; connections that it drops are made anew.
        pace_seconds: between groups.
    """

    def __init__(self, primary: MariadbServer, pace_seconds: float = 0.001) -> None:
        self._primary = primary
        self._pace = pace_seconds
        self._ended = threading.Event()
        self._go = threading.Event()
        self._idle = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._numbers = count()
        self.written = 0

    def __enter__(self) -> Self:
        self._primary.run(
            "CREATE DATABASE steady",
            "CREATE TABLE steady.row (id INT PRIMARY KEY AUTO_INCREMENT, n INT)",
            "CREATE TABLE steady.myisam (id INT PRIMARY KEY AUTO_INCREMENT, n INT) ENGINE=MyISAM",
        )
        self._go.set()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._go.set()
        self._thread.join()

    def pause(self) -> None:
        """Return when nothing is being written any more."""
        self._idle.clear()
        self._go.clear()
        assert self._idle.wait(PAUSE_SECONDS_MAX)

    def resume(self) -> None:
        """Write on."""
        self._go.set()

    def wait_for_more(self, groups: int, seconds: float = 60.0) -> None:
        """Return when *groups* more have been written."""
        goal = self.written + groups
        wait_until(lambda: self.written >= goal, seconds, lambda: f"{self.written} of {goal}")

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                with self._primary.connection() as connection, connection.cursor() as cursor:
                    while not self._ended.wait(self._pace):
                        if not self._go.is_set():
                            self._idle.set()
                            self._go.wait()
                        for statement in self._group(next(self._numbers)):
                            cursor.execute(statement)
                        self.written += 1
            except (pymysql.err.Error, OSError):
                self._ended.wait(RETRY_SECONDS)  # the primary is away for a moment

    def _group(self, number: int) -> list[str]:
        domain = f"SET gtid_domain_id = {DOMAINS[number % len(DOMAINS)]}"
        if number % 50 == 0:
            return [domain, f"CREATE TABLE steady.t{number} (id INT PRIMARY KEY)"]
        if number % 7 == 0:
            return [domain, f"INSERT INTO steady.myisam (n) VALUES ({number})"]
        if number % 11 == 0:
            rows = f"INSERT INTO steady.row (n) SELECT seq + {number} FROM seq_1_to_500"
            return [
                domain,
                "BEGIN",
                rows,
                f"DELETE FROM steady.row WHERE n < {number - 400}",
                "COMMIT",
            ]
        return [domain, f"INSERT INTO steady.row (n) VALUES ({number})"]
