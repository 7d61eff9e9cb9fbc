"""How fast a relay stores what its primary sends."""

from __future__ import annotations

import functools
import shutil
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

from ibb.bench.errors import BenchError
from ibb.bench.figures import Goal, Sample, value
from ibb.bench.peer import PASSWORD, USER, Peer, first_value, mariadb_peer
from ibb.bench.process_usage import processor_seconds
from ibb.bench.readers import read
from ibb.bench.row import Row
from ibb.bench.synthetic_primary import synthetic_primary
from ibb.bench.workbench import check
from ibb.demo.dump_client import DumpClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ibb.bench.data_set import DataSet
    from ibb.bench.workbench import Workbench

POLL_SECONDS: Final = 0.01
STILL_SECONDS_MAX: Final = 60.0  # without any progress
_MODES: Final = {"durable": "--flush-log-at-commit=1", "unsynced": "--flush-log-at-commit=0"}


def follow(peer: Peer, port: int) -> None:
    """Have the ibb at *peer* relay from the primary on loopback *port*, from the beginning."""
    peer.query(
        f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, "
        f"MASTER_USER='{USER}', MASTER_PASSWORD='{PASSWORD}', MASTER_USE_GTID=slave_pos"
    )
    peer.query("START SLAVE")


def wait_for_groups(peer: Peer, groups: int) -> None:
    """
    Return as soon as *peer* says that it has stored *groups*.

    Raises:
        BenchError: no progress for `STILL_SECONDS_MAX`.
    """
    wanted, seen, since = f"0-1-{groups}", "", time.monotonic()
    with DumpClient(peer.port, peer.user, peer.password) as client:
        while (now := first_value(client, "SELECT @@gtid_binlog_pos")) != wanted:
            if now != seen:
                seen, since = now, time.monotonic()
            if time.monotonic() - since > STILL_SECONDS_MAX:
                raise BenchError(f"the relay stays at '{now}' before {wanted}")
            time.sleep(POLL_SECONDS)


def _ingest(
    bench: Workbench, data: DataSet, port: int, arguments: Sequence[str]
) -> tuple[float, float]:
    """Relay all of it into a new directory; return seconds, and processor seconds of the relay."""
    directory = bench.folder / "relayed"
    try:
        with bench.ibb(directory, *arguments) as peer:
            before, begun = processor_seconds(peer.pid), time.monotonic()
            follow(peer, port)
            wait_for_groups(peer, data.facts.groups)
            seconds, used = time.monotonic() - begun, processor_seconds(peer.pid) - before
            peer.query("STOP SLAVE")
            check(peer, read(peer), data)
            return seconds, used
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _told(
    source: str, data: DataSet, taken: tuple[float, float], goals: Sequence[Goal | None]
) -> list[Sample]:
    seconds, used = taken
    size, groups = data.facts.size, data.facts.groups
    return [
        Sample(f"from {source}", "MB/s", size / seconds / 1e6, None, goals[0]),
        Sample(f"from {source}, groups", "/s", groups / seconds, None, goals[1]),
        Sample(f"from {source}, processor", "s/GB", used / size * 1e9),
    ]


@contextmanager
def _row_of(
    bench: Workbench, kind: str, mode: str, goals: tuple[Goal | None, Goal | None]
) -> Iterator[Callable[[int], list[Sample]]]:
    data = bench.data(kind)
    arguments = [_MODES[mode], "--upstream-ssl=off"]
    with ExitStack() as stack:
        ports: list[tuple[str, int]] = []
        if bench.installation is not None:
            peer = stack.enter_context(mariadb_peer(bench.installation, bench.folder, data))
            ports.append(("mariadbd", peer.port))
        bench.tell("making the stream")
        ports.append(("a fast source", stack.enter_context(synthetic_primary(data.stream())).port))

        def measure(turn: int) -> list[Sample]:
            samples = {
                source: _told(source, data, _ingest(bench, data, port, arguments), goals)
                for source, port in (ports if turn % 2 else reversed(ports))
            }
            return [sample for source, _ in ports for sample in samples[source]]

        yield measure


def _row(kind: str, mode: str, speed: Goal | None, rate: Goal | None) -> Row:
    synced = "each group synced before it counts" if mode == "durable" else "synced once a second"
    return Row(
        f"ingest-{kind}-{mode}",
        f"a relay stores {kind} groups, {synced}",
        "source warm; into new files",
        functools.partial(_row_of, kind=kind, mode=mode, goals=(speed, rate)),
    )


ROWS = (
    _row("bulk", "durable", value(300, 700), None),
    _row("one-row", "durable", None, value(250_000, 600_000)),
    _row("bulk", "unsynced", None, None),
    _row("one-row", "unsynced", None, None),
)
