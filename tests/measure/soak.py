"""
A relay at work for hours: a primary under load, replicas and a reader; purges, rotations, restarts.

The relay is restarted in the first fifth and then left alone, so that a leak has time to show;
primary and replicas go on being restarted. At the end both replicas must equal the primary, no
log may tell of an error that no restart has caused, and memory and descriptors must be flat.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pymysql

from ibb.demo.dump_client import DumpClient
from ibb.protocol.errors import IbbError
from ibb.protocol.gtid import Gtid, GtidPosition

from ..integration.compare import differences, gtids
from ..integration.conftest import Rig, new_rig
from ..integration.installations import mariadb_10_11
from ..integration.mariadb_server import PASSWORD, USER
from ..integration.waiting import wait_until
from .soak_samples import (
    DESCRIPTOR_GROWTH_MAX,
    MEMORY_GROWTH_MAX,
    Sample,
    draw,
    growth,
    percentile,
    process_figures,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..integration.mariadb_server import MariadbServer

SAMPLE_SECONDS = 5.0
PACE_SECONDS = 0.04  # between groups
ROWS_MAX = 5_000  # of the table that is written round and round
BLOB_BYTES = 2 << 20
LATENCY_SECONDS_MAX = 60.0
POLL_SECONDS = 0.002  # while a row is waited for
CAUSED_SECONDS = 30.0  # around a restart, in which errors are its consequence
CATCH_UP_SECONDS = 300.0
READER_ID = 900
RELAY_RESTARTS = (0.1, 0.2)  # shares of the whole time
OTHER_RESTARTS = 12  # of primary and replicas, evenly over the time
SERVER_ERROR = re.compile(r"^(\d{4}-\d\d-\d\d +\d?\d:\d\d:\d\d) .*\[ERROR\]")


class Soak:
    """
    One soak.

    Args:
        rig: makes the servers.
        seconds: how long.
        say: tells a person how far it is.
    """

    def __init__(self, rig: Rig, seconds: float, say: Callable[[str], None]) -> None:
        installation = mariadb_10_11()
        self._seconds = seconds
        self._say = say
        self.primary = rig.primary(installation, "--max-binlog-size=32M")
        self.relay = rig.ibb(
            "--max-binlog-size=4M", "--max-binlog-total-size=32M", "--log-format=json",
            "--master-connect-retry=1", "--upstream-ssl=off",
        ).relay_from(self.primary.port).start()  # fmt: skip
        self.replicas = [rig.replica(installation) for _ in range(2)]
        self.primary.run(
            "CREATE DATABASE soak",
            "CREATE TABLE soak.ring (id INT PRIMARY KEY, text VARCHAR(600))",
            "CREATE TABLE soak.blobs (id INT PRIMARY KEY, data LONGBLOB)",
            "CREATE TABLE soak.marker (id INT PRIMARY KEY, n INT)",
            "INSERT INTO soak.marker VALUES (1, 0)",
        )
        for replica in self.replicas:
            replica.replicate_from(self.relay.port)
        self.samples: list[Sample] = []
        self.restarts: list[tuple[float, str]] = []
        self.wrong: list[str] = []
        self.read = 0
        self._life = 0
        self._began = time.monotonic()
        self._began_at = time.time()
        self._ended = threading.Event()
        self._present = threading.RLock()  # held while a server is away that a sample needs

    def run(self) -> None:
        """Work for the time that was asked for, then let the replicas catch up and compare."""
        self._began, self._began_at = time.monotonic(), time.time()
        work = (self._write, self._read, self._sample)
        threads = [threading.Thread(target=self._guarded, args=(one,)) for one in work]
        for thread in threads:
            thread.start()
        try:
            for share, restart in self._plan():
                if self._ended.wait(max(share * self._seconds - self._elapsed(), 0)):
                    break
                restart()
            self._ended.wait(max(self._seconds - self._elapsed(), 0))
        finally:
            self._ended.set()
            for thread in threads:
                thread.join()
        self._compare()
        self._look_into_logs()

    def _plan(self) -> list[tuple[float, Callable[[], None]]]:
        """Return what to restart when, in shares of the time."""
        others = [self.replicas[0], self.replicas[1], self.primary]
        plan: list[tuple[float, Callable[[], None]]] = [
            (share, self._restart_relay) for share in RELAY_RESTARTS
        ]
        for number in range(OTHER_RESTARTS):
            server = others[number % len(others)]
            share = 0.05 + 0.85 * number / OTHER_RESTARTS
            plan.append((share, lambda server=server: self._restart_server(server)))
        return sorted(plan, key=lambda entry: entry[0])

    def _restart_relay(self) -> None:
        with self._present:
            self._note("relay")
            if self.relay.stop() != 0:
                self.wrong.append("the relay did not end in order")
            self.relay.start()
            self._life += 1

    def _restart_server(self, server: MariadbServer) -> None:
        with self._present:
            self._note("primary" if server is self.primary else f"replica {server.server_id}")
            server.stop()
            server.start()

    def _note(self, name: str) -> None:
        self.restarts.append((self._elapsed(), name))
        self._say(f"{self._elapsed():7.0f} s  restarting {name}")

    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _guarded(self, work: Callable[[], None]) -> None:
        """Do *work* until the end; what ends it early is a failure of the soak."""
        try:
            while not self._ended.is_set():
                work()
        except Exception as error:  # noqa: BLE001 - told, and ends the soak
            self.wrong.append(f"{work.__name__}: {type(error).__name__}: {error}")
            self._ended.set()

    def _write(self) -> None:
        """Write on one connection; a new one is made when the primary has been away."""
        with suppress(pymysql.err.Error, OSError), self.primary.connection() as connection:
            number = int(time.monotonic() / PACE_SECONDS)
            with connection.cursor() as cursor:
                while not self._ended.wait(PACE_SECONDS):
                    number += 1
                    cursor.execute(_statement(number))
        self._ended.wait(0.2)

    def _read(self) -> None:
        """Read as a program does that remembers where it is; begin anew where that is purged."""
        position = GtidPosition.parse(
            self.primary.binlog_position() if self.primary.running else ""
        )
        with (
            suppress(IbbError, OSError),
            DumpClient(self.relay.port, USER, PASSWORD) as client,
        ):
            for group in client.groups(str(position), server_id=READER_ID, wait=True):
                self.read += 1
                position.set(Gtid(*group.gtid))
                if self._ended.is_set():
                    return
        self._ended.wait(0.5)

    def _sample(self) -> None:
        """Look once, and wait; a server that is away just now is waited for."""
        began = time.monotonic()
        with self._present:
            # Before a commit is waited for, or the replicas would always have caught up.
            applied = min(_last_number(one.replica_position()) for one in self.replicas)
            lag = _last_number(self.primary.binlog_position()) - applied
            latency = self._latency(len(self.samples) + 1)
            figures = process_figures(self.relay.pid)
        self.samples.append(Sample(self._elapsed(), self._life, *figures, max(lag, 0), latency))
        self._ended.wait(max(SAMPLE_SECONDS - (time.monotonic() - began), 0))

    def _latency(self, number: int) -> float:
        """Return how long a commit takes to the first replica; a restart before it counts in."""
        with self.replicas[0].connection() as replica, replica.cursor() as cursor:
            self.primary.run(f"UPDATE soak.marker SET n = {number}")
            began = time.monotonic()
            while time.monotonic() - began < LATENCY_SECONDS_MAX:
                cursor.execute("SELECT n FROM soak.marker")
                (found,) = cursor.fetchone() or (None,)
                if found == number:
                    break
                time.sleep(POLL_SECONDS)
            else:
                self.wrong.append(f"a commit was not on the replica in {LATENCY_SECONDS_MAX} s")
            return time.monotonic() - began

    def _compare(self) -> None:
        position = gtids(self.primary.binlog_position())
        for replica in self.replicas:
            try:
                wait_until(
                    lambda one=replica: gtids(one.replica_position()) == position,
                    CATCH_UP_SECONDS,
                    replica.replica_status,
                )
            except AssertionError as error:
                self.wrong.append(f"replica {replica.server_id}: {error}")
                continue
            if found := differences(self.primary, replica):
                self.wrong.append(f"replica {replica.server_id} differs: {found}")

    def _look_into_logs(self) -> None:
        """Find errors of the relay, and what nobody caused."""
        for line in self.relay.log.read_text().splitlines():
            entry = json.loads(line)
            if entry["level"] not in ("warning", "error"):
                continue
            at = datetime.fromisoformat(entry["timestamp"]).timestamp()
            if entry["level"] == "error" or not self._is_caused(at):
                self.wrong.append(f"log of the relay: {line}")
        for server in (self.primary, *self.replicas):
            for line in server.error_log.read_text(errors="replace").splitlines():
                found = SERVER_ERROR.match(line)
                if found is None:
                    continue
                moment = datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007
                if not self._is_caused(moment.astimezone().timestamp()):
                    self.wrong.append(f"log of server {server.server_id}: {line}")

    def _is_caused(self, at: float) -> bool:
        """Tell whether something of that moment may come from a restart, or from the very start."""
        moments = [0.0, *(moment for moment, _ in self.restarts)]
        return any(-2 <= at - self._began_at - moment <= CAUSED_SECONDS for moment in moments)


def _statement(number: int) -> str:
    """Return the next group's statement: mostly rows, now and then many or a large one."""
    if number % 500 == 0:
        return f"REPLACE INTO soak.blobs VALUES ({number % 8}, REPEAT('b', {BLOB_BYTES}))"
    if number % 100 == 0:
        rows = f"SELECT (seq + {number}) MOD {ROWS_MAX}, MD5(seq + {number}) FROM seq_1_to_500"
        return f"REPLACE INTO soak.ring {rows}"
    return f"REPLACE INTO soak.ring VALUES ({number % ROWS_MAX}, REPEAT('r', {number % 500}))"


def _last_number(position: str) -> int:
    """Return the sequence number of a position of one domain."""
    return int(position.rpartition("-")[2] or 0)


def verdict(soak: Soak, seconds: float) -> tuple[list[str], bool]:
    """Return what to print, and whether all is well."""
    samples, lines, well = soak.samples, [], not soak.wrong
    latencies = [sample.latency for sample in samples]
    lines.append(
        f"{len(samples)} samples, {len(soak.restarts)} restarts, {soak.read} groups read; latency"
        f" {percentile(latencies, 0.5) * 1000:.1f} ms median, {percentile(latencies, 0.99):.2f} s"
        f" at 99 %, lag at most {max(sample.lag for sample in samples)} groups"
    )
    for name, value, unit, most in (
        ("anonymous memory", lambda one: one.anonymous, 2**20, MEMORY_GROWTH_MAX),
        ("descriptors", lambda one: one.descriptors, 1, DESCRIPTOR_GROWTH_MAX),
        ("threads", lambda one: one.threads, 1, DESCRIPTOR_GROWTH_MAX),
    ):
        found = growth(samples, value)
        flat = found.is_noise(seconds, most)
        well = well and flat
        hourly, error = found.slope * 3600 / unit, found.error * 3600 / unit
        lines.append(
            f"{name:<18} {hourly:+.3f} ± {error:.3f} {'MiB' if unit > 1 else ''} an hour: "
            f"{'flat' if flat else 'GROWS'}"
        )
    return [*lines, *soak.wrong], well


def main() -> None:
    """Run a soak, draw it, and say how it went."""
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--minutes", type=float, help="instead of hours, to try the tool itself")
    parser.add_argument("--plot", type=Path, default=Path("build/soak.png"))
    arguments = parser.parse_args()
    seconds = 60 * arguments.minutes if arguments.minutes else 3600 * arguments.hours
    print(f"from {datetime.now(UTC):%F %T} UTC for {seconds:.0f} s", flush=True)
    with new_rig() as rig:
        soak = Soak(rig, seconds, lambda line: print(line, flush=True))
        soak.run()
        lines, well = verdict(soak, seconds)
    draw(soak.samples, soak.restarts, arguments.plot)
    print("\n".join(lines))
    print(f"{'well' if well else 'NOT WELL'}; drawn: {arguments.plot}")
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
