"""Readers at the end of a live load: what each delivered byte costs the server."""

from __future__ import annotations

import functools
import shutil
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.bench.committers import Committers
from ibb.bench.data_set import packet_bytes
from ibb.bench.events import one_row_group
from ibb.bench.figures import Goal, Sample, ratio_at_most
from ibb.bench.peer import Peer
from ibb.bench.process_usage import processor_seconds
from ibb.bench.readers import Readers, ReplicaConnection, allow_descriptors
from ibb.bench.row import Row
from ibb.bench.synthetic_primary import synthetic_primary
from ibb.bench.workbench import in_turn

from .ingest import follow, wait_for_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ibb.bench.workbench import Workbench

_WARM: Final = "warm: everything goes through memory"


class _Load(NamedTuple):
    """What a live load of a few seconds took the server."""

    processor: float  # seconds
    delivered: int  # bytes to all readers
    rate: float  # groups a second that came about
    behind: float  # seconds from the first reader's end to the last one's


def _while_read(
    peer: Peer, readers: int, groups: int, load: Callable[[], object], start: str
) -> _Load:
    """Have *readers* wait at the end and run *load*, until all of them have its groups."""
    allow_descriptors(readers)
    connections = [ReplicaConnection(peer, start) for _ in range(readers)]
    with ExitStack() as stack:
        reading = None
        if connections:
            reading = stack.enter_context(Readers(connections, wait=True, groups=groups))
            reading.go()
        before = processor_seconds(peer.pid)
        load()
        if reading is None:
            return _Load(processor_seconds(peer.pid) - before, 0, 0.0, 0.0)
        result = reading.result(expect="full")
        used = processor_seconds(peer.pid) - before
    ends = [one.end_ns for one in result.outcomes]
    first = min(one.first_ns for one in result.outcomes)
    seconds = (max(ends) - first) / 1e9
    return _Load(used, result.size, groups / seconds, (max(ends) - min(ends)) / 1e9)


def _cost(alone: _Load, read: _Load) -> float:
    """Return the processor seconds for a delivered GB, those of the load itself taken off."""
    return max(0.0, read.processor - alone.processor) / read.delivered * 1e9


def _ours(
    bench: Workbench, stream: Path, groups: int, rate: float, readers: int
) -> tuple[float, _Load]:
    """Relay a stream at a steady rate, once to nobody and once to all."""
    loads = []
    for count in (0, readers):
        directory = bench.folder / "live"
        source = synthetic_primary(stream, group_bytes=packet_bytes(one_row_group()), rate=rate)
        with source as primary, bench.ibb(directory, "--upstream-ssl=off") as peer:

            def load(peer: Peer = peer, port: int = primary.port) -> None:
                follow(peer, port)
                wait_for_groups(peer, groups)

            loads.append(_while_read(peer, count, groups, load, ""))
        shutil.rmtree(directory, ignore_errors=True)
    return _cost(*loads), loads[1]


def _theirs(peer: Peer, groups: int, rate: float, readers: int) -> tuple[float, _Load]:
    """Commit at a steady rate, once to nobody and once to all."""
    loads = []
    for count in (0, readers):
        with Committers(peer, groups, rate) as committers:
            start = peer.query("SELECT @@gtid_binlog_pos")
            loads.append(_while_read(peer, count, groups, committers.run, start))
    return _cost(*loads), loads[1]


@contextmanager
def _tail(
    bench: Workbench, rate: float, readers: int | None, goal: Goal | None
) -> Iterator[Callable[[int], list[Sample]]]:
    groups = max(10, round(rate * bench.scale.live_seconds))
    count = bench.scale.crowd if readers is None else min(readers, bench.scale.tail_readers)
    size = len(one_row_group().piece(1).data) * groups
    stream = bench.sized("one-row", size).stream()
    with ExitStack() as stack:
        theirs = None
        if bench.installation is not None:
            theirs = stack.enter_context(bench.mariadb())

        def measure(turn: int) -> list[Sample]:
            own, other = in_turn(
                turn,
                lambda: _ours(bench, stream, groups, rate, count),
                (lambda: _theirs(theirs, groups, rate, count)) if theirs else None,
            )
            (cost, load), (their_cost, their_load) = own, other or (None, None)
            return [
                Sample("readers", "", count, None if other is None else count),
                Sample("processor a delivered GB", "s/GB", cost, their_cost, goal),
                Sample("groups", "/s", load.rate, their_load and their_load.rate),
                Sample(
                    "last reader behind first", "s", load.behind, their_load and their_load.behind
                ),
            ]

        yield measure


def _row(name: str, rate: float, readers: int | None, goal: Goal | None) -> Row:
    who = "a crowd of 1,000 readers" if readers is None else f"{readers} readers"
    return Row(
        name,
        f"{who} at the end of a load of {rate:g} one-row groups/s, less the load's own cost",
        _WARM,
        functools.partial(_tail, rate=rate, readers=readers, goal=goal),
    )


ROWS = (
    _row("tail-1000", 1000, 64, ratio_at_most(1 / 2.5, 1 / 3)),
    _row("tail-5000", 5000, 64, ratio_at_most(1 / 5, 1 / 8)),
    _row("tail-crowd", 1000, None, None),
)
