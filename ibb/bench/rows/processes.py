"""What servers take: idle readers, a huge group, restarts; and what a check of everything takes."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.bench.errors import BenchError
from ibb.bench.figures import Sample, value, value_at_most
from ibb.bench.peer import CONNECTIONS_MAX, Peer, mariadb_peer
from ibb.bench.process_usage import MemoryWatch, anonymous_bytes, processor_seconds
from ibb.bench.readers import Readers, ReplicaConnection, allow_descriptors, read
from ibb.bench.row import Row
from ibb.bench.synthetic_primary import synthetic_primary
from ibb.bench.waiting import wait_until
from ibb.bench.workbench import MIB, check, in_turn

from .ingest import follow, wait_for_groups
from .seek import first_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ibb.bench.data_set import DataSet
    from ibb.bench.workbench import Workbench

SETTLE_SECONDS_MAX: Final = 60.0
VERIFY_SECONDS_MAX: Final = 3600.0


class _Idle(NamedTuple):
    percent: float  # of a processor
    mebibytes: float  # more than without readers


def _idle(peer: Peer, readers: int, seconds: float, start: str) -> _Idle:
    """Watch a server whose readers all wait; each gets a heartbeat in that time."""
    allow_descriptors(readers)
    assert readers < CONNECTIONS_MAX
    before = anonymous_bytes(peer.pid)
    connections = [
        ReplicaConnection(peer, start, heartbeat_seconds=seconds) for _ in range(readers)
    ]
    with Readers(connections, wait=True, silence_seconds=10 * seconds + 60) as reading:
        reading.go()
        _settle(peer, readers)
        used, begun = processor_seconds(peer.pid), time.monotonic()
        time.sleep(seconds)
        used = processor_seconds(peer.pid) - used
        took, memory = time.monotonic() - begun, anonymous_bytes(peer.pid) - before
        reading.result(expect="stopped")
    return _Idle(used / took * 100, memory / MIB)


def _settle(peer: Peer, readers: int) -> None:
    """Return when all readers are shown as ones that have everything: to begin is no waiting."""
    sql = (
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST "
        "WHERE COMMAND = 'Binlog Dump' AND STATE LIKE 'Master has sent all binlog to slave%'"
    )
    wait_until(
        lambda: int(peer.query(sql) or 0) >= readers,
        SETTLE_SECONDS_MAX,
        f"{peer.name} has not taken {readers} readers",
    )


@contextmanager
def _idle_readers(bench: Workbench) -> Iterator[Callable[[int], list[Sample]]]:
    data, scale = bench.data("one-row"), bench.scale

    def one(make: Callable[[], object]) -> _Idle:
        with make() as peer:  # type: ignore[attr-defined]
            return _idle(peer, scale.idle_readers, scale.idle_seconds, str(data.facts.last))

    def measure(turn: int) -> list[Sample]:
        installation = bench.installation
        own, other = in_turn(
            turn,
            lambda: one(lambda: bench.ibb(data.store)),
            (lambda: one(lambda: mariadb_peer(installation, bench.folder, data)))
            if installation
            else None,
        )
        return [
            Sample("readers", "", scale.idle_readers),
            Sample("processor", "% of one", own.percent, other and other.percent, value_at_most(5)),
            Sample(
                "memory over none",
                "MiB",
                own.mebibytes,
                other and other.mebibytes,
                value_at_most(200),
            ),
        ]

    yield measure


@contextmanager
def _huge_group(bench: Workbench) -> Iterator[Callable[[int], list[Sample]]]:
    data = bench.data("huge")
    stream = data.stream()

    def serving(peer: Peer) -> float:
        with MemoryWatch(peer.pid) as memory:
            check(peer, read(peer), data)
        return memory.grown / MIB

    def relaying() -> float:
        directory = bench.folder / "relayed"
        with (
            synthetic_primary(stream) as primary,
            bench.ibb(directory, "--upstream-ssl=off") as peer,
            MemoryWatch(peer.pid) as memory,
        ):
            follow(peer, primary.port)
            wait_for_groups(peer, data.facts.groups)
        shutil.rmtree(directory)
        return memory.grown / MIB

    def measure(turn: int) -> list[Sample]:
        with bench.both(data) as (ours, theirs):
            own, other = in_turn(
                turn, lambda: serving(ours), (lambda: serving(theirs)) if theirs else None
            )
        return [
            Sample("serving, over idle", "MiB", own, other, value_at_most(64, 16)),
            Sample("relaying, over idle", "MiB", relaying(), None, value_at_most(64, 16)),
        ]

    yield measure


@contextmanager
def _restart(bench: Workbench) -> Iterator[Callable[[int], list[Sample]]]:
    data = bench.data("one-row")
    stream = data.stream()

    def ours() -> tuple[float, float]:
        directory = bench.folder / "killed"
        with (
            synthetic_primary(stream) as primary,
            bench.ibb(directory, "--upstream-ssl=off") as peer,
        ):
            follow(peer, primary.port)
            wait_for_groups(peer, data.facts.groups)
            peer.process.kill()  # the newest groups are in the redo log only
        begun = time.monotonic()
        with bench.ibb(directory) as peer:
            ready = time.monotonic() - begun
            first_groups(peer, [data.facts.groups])
            whole = time.monotonic() - begun
        shutil.rmtree(directory)
        return ready, whole

    def theirs() -> tuple[float, float]:
        assert bench.installation is not None
        with mariadb_peer(bench.installation, bench.folder, data) as peer:
            peer.process.kill()
            begun = time.monotonic()
            peer.process.start()
            ready = time.monotonic() - begun
            first_groups(peer, [data.facts.groups])
            return ready, time.monotonic() - begun

    def measure(turn: int) -> list[Sample]:
        own, other = in_turn(turn, ours, theirs if bench.installation else None)
        return [
            Sample("until it accepts connections", "s", own[0], other and other[0]),
            Sample("until the newest group is sent", "s", own[1], other and other[1]),
        ]

    yield measure


def _verify(directory: Path) -> tuple[float, float]:
    """Return the seconds and processor seconds of `ibb verify`."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "ibb", "verify", "--json", str(directory)],
        capture_output=True,
        timeout=VERIFY_SECONDS_MAX,
        check=False,
    )
    seconds, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise BenchError(f"ibb verify: {(done.stdout + done.stderr).decode()[:500]}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, used


@contextmanager
def _verification(bench: Workbench) -> Iterator[Callable[[int], list[Sample]]]:
    sets: list[tuple[str, DataSet]] = [(kind, bench.data(kind)) for kind in ("bulk", "one-row")]

    def measure(turn: int) -> list[Sample]:
        del turn  # mariadbd has no such tool
        samples = []
        for kind, data in sets:
            _, used = _verify(data.store)
            samples.append(
                Sample(kind, "MB/s a core", data.facts.size / used / 1e6, None, value(1000, 2500))
            )
        return samples

    yield measure


ROWS = (
    Row("restart", "killed with SIGKILL; from starting it to connections, and to the newest group",
        "page cache warm; the redo log holds the newest groups", _restart),
    Row("verify", "`ibb verify` of a whole directory, start of the program included",
        "page cache warm", _verification),
    Row("memory", "anonymous memory over idle as a huge group passes, from files and by a relay",
        "page cache warm", _huge_group),
    Row("idle", "readers that wait at the end, with heartbeats; as many as the scale says",
        "warm", _idle_readers),
)  # fmt: skip
