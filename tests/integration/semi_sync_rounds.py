"""
Commits that wait for a semi-synchronous replica, which is killed at random again and again.

What a commit that returned has promised: its group is on the replica or in its relay log. Sources:
a program that publishes into its store and serves it, and a real primary whose relay, a
semi-synchronous replica itself, acknowledges what its own replica has acknowledged.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from ibb.demo.installation import Installation
from ibb.server.log import set_up_log

from .conftest import Rig, rig_in
from .installations import mariadb_10_11, mariadb_11_8
from .mariadb_server import MariadbServer
from .publisher import SERVER_ID, Publisher, publishing
from .relay_logs import received_gtids
from .waiting import wait_until

SECONDS = 120.0
LONG_MS = 1_000_000
REPLICA_OPTIONS = (
    "--rpl-semi-sync-slave-enabled=1",
    "--innodb-flush-log-at-trx-commit=2",  # what the replica has applied survives its end
    "--skip-slave-start",
)
DEFINITIONS = ("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
VERSIONS = ("10.11", "11.8")


class Source(Protocol):
    """Where commits are made, and which the replica follows."""

    writers: int  # that may commit at a time
    port: int

    def define(self, sql: str) -> object:
        """Run a definition."""

    def commit(self, row: int) -> str:
        """Insert a row; return its GTID when the commit has returned."""

    def disturb(self) -> bool:
        """Kill what stands between the commits and the replica; False: nothing does."""

    def end(self) -> str:
        """Return the newest GTID."""

    def waits(self) -> tuple[str, str]:
        """Return how many commits were acknowledged, and how many were not."""


class PublishingSource:
    """`Server(store)`: the program's own commits wait."""

    writers = 4

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher
        self.port = publisher.port
        self.define = publisher.define

    def commit(self, row: int) -> str:
        return str(self._publisher.change(f"INSERT INTO d.t VALUES ({row})"))

    def disturb(self) -> bool:
        return False

    def end(self) -> str:
        return f"0-{SERVER_ID}-{self._publisher.newest}"

    def waits(self) -> tuple[str, str]:
        status = self._publisher.server.status()
        return status["Rpl_semi_sync_master_yes_tx"], status["Rpl_semi_sync_master_no_tx"]


class RelayedSource:
    """A primary whose commits wait for the relay, which waits for its replica."""

    writers = 4

    def __init__(self, rig: Rig, installation: Installation) -> None:
        self._primary = rig.primary(
            installation,
            "--rpl-semi-sync-master-enabled=1",
            f"--rpl-semi-sync-master-timeout={LONG_MS}",
        )
        self._relay = rig.ibb(
            "--rpl-semi-sync-slave-enabled",
            "--rpl-semi-sync-master-enabled",
            f"--rpl-semi-sync-master-timeout={LONG_MS}",
        )
        self._relay.relay_from(self._primary.port).start()
        self.port = self._relay.port
        self._connections = threading.local()

    def define(self, sql: str) -> None:
        self._primary.run(sql)

    def commit(self, row: int) -> str:
        if not hasattr(self._connections, "mine"):
            self._connections.mine = self._primary.connect()
        with self._connections.mine.cursor() as cursor:
            cursor.execute(f"INSERT INTO d.t VALUES ({row})")
            cursor.execute("SELECT @@last_gtid")
            return str(cursor.fetchone()[0])

    def disturb(self) -> bool:
        self._relay.kill()
        self._relay.start()
        return True

    def end(self) -> str:
        return self._primary.binlog_position()

    def waits(self) -> tuple[str, str]:
        yes, no = (
            self._primary.rows(f"SHOW STATUS LIKE 'Rpl_semi_sync_master_{name}_tx'")[0][1]
            for name in ("yes", "no")
        )
        return yes, no


class Commits:
    """Threads that insert *count* rows; `returned` has the GTIDs of those that returned."""

    def __init__(self, source: Source, count: int) -> None:
        self.returned: set[str] = set()
        self._source = source
        self._rows = iter(range(count))
        self._changed = threading.Condition()
        self._failed: BaseException | None = None
        self._threads = [threading.Thread(target=self._run) for _ in range(source.writers)]
        for thread in self._threads:
            thread.start()

    def _run(self) -> None:
        try:
            while True:
                with self._changed:
                    row = next(self._rows, None)
                if row is None:
                    return
                gtid = self._source.commit(row)
                with self._changed:
                    self.returned.add(gtid)
                    self._changed.notify()
        except BaseException as error:  # noqa: BLE001 - `join` raises it
            self._failed = error

    def wait_for(self, count: int) -> None:
        """Return as soon as *count* have returned."""
        with self._changed:
            enough = self._changed.wait_for(lambda: len(self.returned) >= count, SECONDS)
        assert enough, (len(self.returned), self._failed)

    def so_far(self) -> set[str]:
        """Return the GTIDs of the commits that have returned."""
        with self._changed:
            return set(self.returned)

    def join(self) -> None:
        for thread in self._threads:
            thread.join(SECONDS)
            assert not thread.is_alive(), len(self.returned)
        if self._failed is not None:
            raise self._failed


def run_rounds(
    source: Source, replica: MariadbServer, *, commits: int, kills: int, seed: int
) -> Counter[str]:
    """
    Commit while the replica is killed; fail if anything that returned is not there.

    Returns:
        What was counted: commits, kills, what was found where.
    """
    chance = random.Random(seed)
    counts = Counter(commits=commits, kills=kills)
    replica.replicate_from(source.port)
    for sql in DEFINITIONS:
        source.define(sql)
    begin = source.end()
    working = Commits(source, commits)
    received: set[str] = set()  # ever: a replica that starts drops its relay log and asks again
    for at in sorted(chance.sample(range(commits * 9 // 10), kills)):
        working.wait_for(at)
        if chance.random() < 0.25 and source.disturb():
            counts["kills of the relay"] += 1
            continue
        replica.kill()
        received |= received_gtids(replica.data)
        replica.start()
        applied = replica.replica_position()
        returned = working.so_far()  # no replica is there: nothing returns any more
        missing = {gtid for gtid in returned - received if not covers(applied, gtid)}
        assert not missing, (seed, at, missing)
        only_received = {gtid for gtid in returned & received if not covers(applied, gtid)}
        counts["acknowledged, in the relay log only"] += len(only_received)
        early = {gtid for gtid in received - returned if not covers(begin, gtid)}
        counts["received, not acknowledged"] += len(early)
        replica.run("START SLAVE")
    working.join()
    assert len(working.returned) == commits
    wait_until(lambda: replica.replica_position() == source.end(), SECONDS, replica.replica_status)
    assert replica.rows("SELECT COUNT(*) FROM d.t") == [(commits,)]
    counts["acknowledged"], counts["not acknowledged"] = map(int, source.waits())
    return counts


def covers(position: str, gtid: str) -> bool:
    """Tell whether a position in one domain is at or behind a GTID of the same server."""
    if not position:
        return False
    domain, server, seq = position.split("-")
    other = gtid.split("-")
    assert other[:2] == [domain, server]
    return int(other[2]) <= int(seq)


@contextmanager
def source_of(kind: str, rig: Rig, installation: Installation, folder: Path) -> Iterator[Source]:
    """Lend a source: `publisher`, or `relay` of a primary of that installation."""
    if kind == "relay":
        yield RelayedSource(rig, installation)
        return
    waiting = {"rpl_semi_sync_master_enabled": True, "rpl_semi_sync_master_timeout": LONG_MS}
    with publishing(folder / "store", **waiting) as publisher:
        yield PublishingSource(publisher)


def main() -> None:
    """Run every source with replicas of both versions; print what was counted."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--commits", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    settings = parser.parse_args()
    primary = mariadb_10_11()
    versions = dict(zip(VERSIONS, (primary, mariadb_11_8()), strict=True))
    set_up_log(level="error", shape="text")
    print(f"seed {settings.seed}", flush=True)
    for kind in ("publisher", "relay"):
        for version, installation in versions.items():
            begun = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="ibb-") as name, rig_in(Path(name)) as rig:
                replica = rig.replica(installation, *REPLICA_OPTIONS)
                with source_of(kind, rig, primary, Path(name)) as source:
                    counts = run_rounds(source, replica, **vars(settings))
            told = ", ".join(f"{what} {count:,}" for what, count in counts.items())
            seconds = time.monotonic() - begun
            print(f"{kind}, replica {version}: {told}; {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
