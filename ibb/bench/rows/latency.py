"""How much later a group arrives through a relay than from its primary."""

from __future__ import annotations

import functools
import os
import shutil
import statistics
import struct
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ibb.bench.committers import Committers
from ibb.bench.errors import BenchError
from ibb.bench.figures import Goal, Sample, value_at_most
from ibb.bench.peer import Peer
from ibb.bench.readers import Readers, ReplicaConnection
from ibb.bench.row import Row

from .ingest import follow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ibb.bench.workbench import Workbench

_ARRIVAL: Final = struct.Struct("<QQQ")  # connection, sequence number, time
_SYNCS: Final = 200
_SYNC_BYTES: Final = 700  # about what a one-row group takes in the redo log
_FILE_BYTES: Final = 1 << 20


def sync_ms(folder: Path) -> float:
    """Return the median time of a small write and its fdatasync, in ms, on the disk of *folder*."""
    path, taken, data = folder / "synced", [], b"x" * _SYNC_BYTES
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.pwrite(descriptor, bytes(_FILE_BYTES), 0)
        os.fsync(descriptor)
        for number in range(_SYNCS):
            begun = time.perf_counter()
            os.pwrite(descriptor, data, number * _SYNC_BYTES)
            os.fdatasync(descriptor)
            taken.append(time.perf_counter() - begun)
    finally:
        os.close(descriptor)
        path.unlink()
    return statistics.median(taken) * 1e3


def later_by(arrivals: bytes) -> list[float]:
    """
    Return for each group how many ms the second connection had it after the first, ascending.

    Raises:
        BenchError: they did not have the same groups.
    """
    times: tuple[dict[int, int], dict[int, int]] = ({}, {})
    for connection, seq, at in _ARRIVAL.iter_unpack(arrivals):
        times[connection][seq] = at
    if times[0].keys() != times[1].keys() or not times[0]:
        raise BenchError(f"the primary sent {len(times[0])} groups, the relay {len(times[1])}")
    return sorted((times[1][seq] - times[0][seq]) / 1e6 for seq in times[0])


@contextmanager
def _latency(
    bench: Workbench, rate: float, goal: Goal | None
) -> Iterator[Callable[[int], list[Sample]]]:
    groups = max(20, round(rate * bench.scale.live_seconds))
    with bench.mariadb() as primary:

        def measure(turn: int) -> list[Sample]:
            directory, file = bench.folder / "through", bench.folder / f"arrivals-{turn}"
            sync = sync_ms(bench.folder)
            with bench.ibb(directory, "--upstream-ssl=off") as relay:
                follow(relay, primary.port)
                committed = _commit(primary, relay, groups, rate, file)
            shutil.rmtree(directory)
            late = later_by(file.read_bytes())
            file.unlink()
            p50 = statistics.median(late)
            return [
                Sample("p50 beyond the primary's own", "ms", p50),
                Sample("p99 beyond the primary's own", "ms", late[len(late) * 99 // 100]),
                Sample("one fdatasync", "ms", sync),
                Sample("p50 without one fdatasync", "ms", p50 - sync, None, goal),
                Sample("commits", "/s", committed),
            ]

        yield measure


def _commit(primary: Peer, relay: Peer, groups: int, rate: float, file: Path) -> float:
    """Commit at a rate, read from both at once, and return the rate that came about."""
    start = primary.query("SELECT @@gtid_binlog_pos")
    if start:
        _wait_for(relay, start)
    connections = [ReplicaConnection(peer, start) for peer in (primary, relay)]
    with (
        Readers(connections, wait=True, groups=groups, arrivals=file) as readers,
        Committers(primary, groups, rate) as committers,
    ):
        readers.go()
        done = committers.run()
        readers.result(expect="full")
    return done.rate


def _wait_for(relay: Peer, position: str) -> None:
    if relay.query(f"SELECT MASTER_GTID_WAIT('{position}', 60)") != "0":
        raise BenchError(f"the relay did not reach {position} in a minute")


def _row(rate: float, goal: Goal | None = None) -> Row:
    return Row(
        f"latency-{rate:g}",
        f"from a reader of the primary having a group to one of the relay having it, {rate:g} "
        "commits/s, synced by the relay, not by the primary",
        "warm: everything goes through memory",
        functools.partial(_latency, rate=rate, goal=goal),
        needs_mariadb=True,
    )


ROWS = (_row(100), _row(1000, value_at_most(0.3, 0.1)), _row(5000))
