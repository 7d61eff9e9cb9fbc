"""
A relay at work for hours: a primary under load, replicas, a reader, change tables, Spark.

Relay and pipeline are restarted in the first quarter and then left alone, so that a leak has time
to show; primary and replicas go on being restarted. At the end replicas and change tables must
equal the primary, the reader and the Spark stream must have had every group once, and no log may
tell of an error that no restart has caused.
"""

from __future__ import annotations

import json
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING

import pymysql

from ibb.demo.dump_client import DumpClient

from ..integration.compare import differences, gtids
from ..integration.installations import mariadb_10_11
from ..integration.mariadb_server import PASSWORD, USER
from ..integration.waiting import wait_until
from ..pipeline.tables.topology import ROW_OPTIONS
from .soak_causes import Causes
from .soak_load import DATABASE, READER_ID, TABLES, SteadyReader, statement
from .soak_pipeline import SoakPipeline
from .soak_samples import Sample, process_figures
from .soak_spark import SoakSpark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..integration.conftest import Rig
    from ..integration.mariadb_server import MariadbServer

SAMPLE_SECONDS_MAX = 5.0
SAMPLES_MIN = 60  # a short soak looks more often
PACE_SECONDS = 0.04  # between groups
LATENCY_SECONDS_MAX = 60.0
POLL_SECONDS = 0.002  # while a row is waited for
STOP_SECONDS = 0.5  # between looks at whether it shall end
CATCH_UP_SECONDS = 300.0
RELAY_RESTARTS = (0.07, 0.14)  # shares of the whole time
PIPELINE_RESTARTS = (0.1, 0.17)
BUSY = 0.19
VISITORS = 8  # at once: more than any pool of the relay has threads
VISITS = 100  # statements of each visitor, so that no pool's thread is idle at some moment
OTHER_RESTARTS = 12  # of primary and replicas, evenly over the time
AWAY = (0, 1053, 1927, 2003, 2006, 2013)  # what a client is told by a server that goes
SERVER_ERROR = re.compile(r"^(\d{4}-\d\d-\d\d +\d?\d:\d\d:\d\d) .*\[ERROR\]")


class Soak:
    """
    One soak.

    Args:
        rig: makes the servers.
        seconds: how long.
        say: tells a person how far it is.
        stopped: tells that somebody wants it to end; asked where that leaves nothing behind.
        with_spark: have a Spark stream follow the relay, too.
    """

    def __init__(
        self,
        rig: Rig,
        seconds: float,
        say: Callable[[str], None],
        stopped: Callable[[], bool] = lambda: False,
        *,
        with_spark: bool = False,
    ) -> None:
        installation = mariadb_10_11()
        self._seconds = seconds
        self._say = say
        self._stopped = stopped
        self.primary = rig.primary(installation, *ROW_OPTIONS, "--max-binlog-size=32M")
        self.relay = rig.ibb(
            "--max-binlog-size=4M", "--max-binlog-total-size=12M", "--log-format=json",
            "--master-connect-retry=1", "--upstream-ssl=off",
        ).relay_from(self.primary.port).start()  # fmt: skip
        self.replicas = [rig.replica(installation) for _ in range(2)]
        self.primary.run(*TABLES)
        for replica in self.replicas:
            replica.replicate_from(self.relay.port)
        self.pipeline = SoakPipeline(
            rig.new_folder("tables"), self.relay.directory, self.primary.socket, DATABASE
        )
        self.spark = SoakSpark(rig.new_folder("spark"), self.relay.port) if with_spark else None
        self.reader = SteadyReader(self.relay.port)
        self.samples: list[Sample] = []
        self.restarts: list[tuple[float, str]] = []
        self.wrong: list[str] = []
        self._at_restart = ""  # the reader's position then
        self._lives = {"relay": 0, "pipeline": 0}
        self._began = time.monotonic()
        self._causes = Causes()
        self._ended = threading.Event()  # for who writes and samples
        self._done = threading.Event()  # for who reads: when the last group has come
        self._present = threading.RLock()  # held while a server is away that a sample needs

    def run(self) -> None:
        """Work for the time that was asked for, then let all catch up and compare."""
        self._began = time.monotonic()
        with self._causes.cause():
            self.pipeline.start()
            if self.spark is not None:
                self.spark.start()
        work = ((self._write, self._ended), (self._sample, self._ended), (self._read, self._done))
        threads = [threading.Thread(target=self._guarded, args=one) for one in work]
        writing, sampling, _ = threads
        for thread in threads:
            thread.start()
        try:
            for share, restart in self._plan():
                if not self._works_until(share * self._seconds):
                    break
                restart()
            self._works_until(self._seconds)
            self._ended.set()
            for thread in (writing, sampling):
                thread.join()  # both write: what is compared must not change any more
            if not self._stopped():
                self._compare()
        finally:
            self._ended.set()
            self._done.set()
            with self._causes.cause():
                self.pipeline.kill()
                if self.spark is not None:
                    self.spark.kill()
                self.relay.kill()  # or the reader would wait for what comes next
            for thread in threads:
                thread.join()
        self._look_into_logs()

    def _works_until(self, moment: float) -> bool:
        """Wait until so many seconds after the beginning; tell whether nothing has ended it."""
        while not (self._stopped() or self._ended.is_set()):
            left = moment - self._elapsed()
            if left <= 0:
                return True
            self._ended.wait(min(left, STOP_SECONDS))
        return False

    def _plan(self) -> list[tuple[float, Callable[[], None]]]:
        """Return what to restart when, in shares of the time."""
        others = [self.replicas[0], self.replicas[1], self.primary]
        plan: list[tuple[float, Callable[[], None]]] = [
            *((share, self._restart_relay) for share in RELAY_RESTARTS),
            *((share, self._restart_pipeline) for share in PIPELINE_RESTARTS),
            (BUSY, self._fill),
        ]
        for number in range(OTHER_RESTARTS):
            server = others[number % len(others)]
            share = 0.05 + 0.85 * number / OTHER_RESTARTS
            plan.append((share, lambda server=server: self._restart_server(server)))
        return sorted(plan, key=lambda entry: entry[0])

    def _restart_relay(self) -> None:
        with self._restarting("relay"):
            if self.relay.stop() != 0:
                self.wrong.append("the relay did not end in order")
            self.relay.start()
            self._lives["relay"] += 1
            self._at_restart = str(self.reader.position)

    def _fill(self) -> None:
        """
        Have the relay at its busiest, so that its cache of pages is full and its pools are.

        A pool's thread stays once it was needed: what comes later is not one of a pool's. A purge
        may wait for those who read, and say so.
        """
        with self._causes.cause(), ThreadPoolExecutor(VISITORS) as pool:
            groups = sum(pool.map(self._visit, range(1, VISITORS + 1)))
        self._say(f"{self._elapsed():7.0f} s  {groups} groups read again by {VISITORS} at once")

    def _visit(self, number: int) -> int:
        """Read as one who was away since the restart, and ask; return how many groups came."""
        with DumpClient(self.relay.port, USER, PASSWORD) as client:
            for _ in range(VISITS):
                client.query("SHOW BINARY LOGS")
            client.query("SHOW BINLOG EVENTS")
            again = client.groups(self._at_restart, server_id=READER_ID + number, wait=False)
            return sum(1 for _ in again)

    def _restart_pipeline(self) -> None:
        with self._restarting("pipeline"):
            if self.pipeline.stop() != 0:
                self.wrong.append("the pipeline did not end in order")
            self.pipeline.start()
            self._lives["pipeline"] += 1

    def _restart_server(self, server: MariadbServer) -> None:
        name = "primary" if server is self.primary else f"replica {server.server_id}"
        with self._restarting(name):
            server.stop()
            server.start()

    @contextmanager
    def _restarting(self, name: str) -> Iterator[None]:
        """Tell of a restart, and keep samples away while it goes on."""
        with self._present, self._causes.cause():
            self.restarts.append((self._elapsed(), name))
            self._say(f"{self._elapsed():7.0f} s  restarting {name}")
            yield

    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _guarded(self, work: Callable[[], None], ended: threading.Event) -> None:
        """Do *work* until *ended*; what ends it early is a failure of the soak."""
        try:
            while not ended.is_set():
                work()
        except Exception as error:  # noqa: BLE001 - told, and ends the soak
            self.wrong.append(f"{work.__name__}: {type(error).__name__}: {error}")
            self._ended.set()

    def _write(self) -> None:
        """Write on one connection; a new one is made when the primary has been away."""
        number = int(time.monotonic() / PACE_SECONDS)
        try:
            with (
                suppress(OSError),
                self.primary.connection(database=DATABASE) as connection,
                connection.cursor() as cursor,
            ):
                while not self._ended.wait(PACE_SECONDS):
                    number += 1
                    cursor.execute(statement(number))
        except pymysql.err.Error as error:
            if error.args[0] not in AWAY:
                raise
        self._ended.wait(0.2)

    def _read(self) -> None:
        """Read until the connection ends; groups that are purged before they came are an error."""
        self.reader.read()
        self._done.wait(0.5)

    def _sample(self) -> None:
        """Look once, and wait; a server that is away just now is waited for."""
        began = time.monotonic()
        with self._present:
            # Before a commit is waited for, or the replicas would always have caught up.
            numbers = (
                min(_last_number(one.replica_position()) for one in self.replicas),
                self.reader.number,
                self.pipeline.number,
                0 if self.spark is None else self.spark.look(),
            )
            newest = _last_number(self.primary.binlog_position())
            lags = [max(newest - number, 0) for number in numbers]
            latency = self._latency(len(self.samples) + 1)
            figures = [
                process_figures([process.pid], self._lives[name])
                for name, process in (("relay", self.relay), ("pipeline", self.pipeline))
            ]
            if self.spark is not None:
                figures.append(process_figures(self.spark.processes(), 0))
        self.samples.append(Sample(self._elapsed(), *lags, latency, *figures))
        pause = min(SAMPLE_SECONDS_MAX, self._seconds / SAMPLES_MIN)
        self._ended.wait(max(pause - (time.monotonic() - began), 0))

    def _latency(self, number: int) -> float:
        """Return how long a commit takes to the first replica; a restart before it counts in."""
        with self.replicas[0].connection() as replica, replica.cursor() as cursor:
            self.primary.run(f"UPDATE {DATABASE}.marker SET n = {number}")
            began = time.monotonic()
            while not self._ended.is_set():
                cursor.execute(f"SELECT n FROM {DATABASE}.marker")
                (found,) = cursor.fetchone() or (None,)
                if found == number:
                    break
                if time.monotonic() - began > LATENCY_SECONDS_MAX:
                    self.wrong.append(f"a commit was not on the replica in {LATENCY_SECONDS_MAX} s")
                    break
                time.sleep(POLL_SECONDS)
            return time.monotonic() - began

    def _compare(self) -> None:
        """Wait for all who follow, and compare what they have; then end what is soaked."""
        position = self.primary.binlog_position()
        for replica in self.replicas:
            name = f"replica {replica.server_id}"
            if self._reaches(
                name, lambda one=replica: gtids(one.replica_position()) == gtids(position)
            ) and (found := differences(self.primary, replica)):
                self.wrong.append(f"{name} differs: {found}")
        self._reaches("the reader", lambda: self.reader.number == _last_number(position))
        self.wrong += self.reader.wrong
        self._reaches("the pipeline", lambda: self.pipeline.number == _last_number(position))
        if self.spark is not None:
            self._compare_spark(self.spark, _last_number(position))
        with self._causes.cause():
            if self.pipeline.stop() != 0:
                self.wrong.append("the pipeline did not end in order")
        self.wrong += [f"change tables: {line}" for line in self.pipeline.differences()]
        self.wrong += [f"log of the pipeline: {line}" for line in self.pipeline.errors]
        with self._causes.cause():
            if self.relay.stop() != 0:
                self.wrong.append("the relay did not end in order")

    def _compare_spark(self, spark: SoakSpark, number: int) -> None:
        """Wait for the stream, end it, and see whether it had each group once."""
        self._reaches("the Spark stream", lambda: spark.look() == number)
        with self._causes.cause():  # it may be in the middle of a login
            spark.stop()
        self.wrong += spark.wrong
        for failure in spark.failures:
            if not self._causes.explain(failure.at):
                self.wrong.append(f"the Spark stream ended: {failure.text}")

    def _reaches(self, name: str, is_there: Callable[[], bool]) -> bool:
        """Wait until somebody has caught up."""
        try:
            wait_until(lambda: self._stopped() or is_there(), CATCH_UP_SECONDS)
        except AssertionError:
            self.wrong.append(f"{name} did not catch up within {CATCH_UP_SECONDS:.0f} s")
            return False
        return True

    def _look_into_logs(self) -> None:
        """Find errors of the relay, and what nobody caused."""
        for line in self.relay.log.read_text().splitlines():
            entry = json.loads(line)
            if entry["level"] not in ("warning", "error"):
                continue
            at = datetime.fromisoformat(entry["timestamp"]).timestamp()
            if entry["level"] == "error" or not self._causes.explain(at):
                self.wrong.append(f"log of the relay: {line}")
        for server in (self.primary, *self.replicas):
            for line in server.error_log.read_text(errors="replace").splitlines():
                found = SERVER_ERROR.match(line)
                if found is None:
                    continue
                moment = datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007
                if not self._causes.explain(moment.astimezone().timestamp()):
                    self.wrong.append(f"log of server {server.server_id}: {line}")


def _last_number(position: str) -> int:
    """Return the sequence number of a position of one domain."""
    return int(position.rpartition("-")[2] or 0)
