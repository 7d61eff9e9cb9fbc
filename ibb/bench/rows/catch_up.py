"""Readers that catch up: everything that is stored, from the first group to the last."""

from __future__ import annotations

import functools
import statistics
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from ibb.bench.errors import BenchError
from ibb.bench.figures import Goal, Sample, ratio, ratio_at_most, value_at_most
from ibb.bench.process_usage import processor_seconds
from ibb.bench.readers import read
from ibb.bench.row import Row
from ibb.bench.workbench import check, in_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ibb.bench.data_set import DataSet
    from ibb.bench.peer import Peer
    from ibb.bench.workbench import Workbench

WARM = "warm: files in the page cache, servers have served all of it once"
HISTORY_SHARES = (1 / 32, 1 / 4, 1 / 2, 1.0)
LONE_PASSES = 5  # of a round by one reader: each takes a third of a second, and comes as it comes
HISTORY_PASSES = 3  # of a round, over all shares: a point is their median
_STRAIGHT = 1.25  # slowest over fastest second per byte


class _Reading(NamedTuple):
    megabytes: float  # a second
    events: float  # millions a second
    server: float  # processor seconds a GB
    reader: float


_NOTHING = (None,) * len(_Reading._fields)


def _read(peer: Peer, data: DataSet, readers: int) -> _Reading:
    before = processor_seconds(peer.pid)
    result = read(peer, readers)
    used = processor_seconds(peer.pid) - before
    check(peer, result, data)
    size, seconds = result.size, result.seconds
    return _Reading(
        size / seconds / 1e6,
        result.events / seconds / 1e6,
        used / size * 1e9,
        result.reader_seconds / size * 1e9,
    )


def _median(readings: list[_Reading]) -> _Reading:
    """Return the median of each figure."""
    return _Reading(*map(statistics.median, zip(*readings, strict=True)))


@contextmanager
def _catch_up(
    bench: Workbench, kind: str, readers: int, speed: Goal | None, processor: Goal | None
) -> Iterator[Callable[[int], list[Sample]]]:
    data = bench.data(kind)
    figures = (
        ("speed", "MB/s", speed),
        ("events", "M/s", None),
        ("server's processor", "s/GB", processor),
        ("reader's processor", "s/GB", None),
    )
    with bench.both(data) as (ours, theirs):

        def measure(turn: int) -> list[Sample]:
            passes = [
                in_turn(
                    turn,
                    lambda: _read(ours, data, readers),
                    (lambda: _read(theirs, data, readers)) if theirs else None,
                )
                for _ in range(LONE_PASSES if readers == 1 else 1)
            ]
            own = _median([one for one, _ in passes])
            others = [other for _, other in passes if other is not None]
            other = _median(others) if others else _NOTHING
            return [
                Sample(name, unit, mine, their, goal)
                for (name, unit, goal), mine, their in zip(figures, own, other, strict=True)
            ]

        yield measure


@contextmanager
def _history(bench: Workbench) -> Iterator[Callable[[int], list[Sample]]]:
    data = bench.data("history")
    facts = data.facts
    with bench.both(data) as (ours, theirs):

        def seconds(peer: Peer, left: int) -> float:
            start = "" if left == facts.groups else f"0-1-{facts.groups - left}"
            result = read(peer, start=start)
            if result.outcomes[0].groups != left:
                raise BenchError(f"{peer.name} sent {result.outcomes[0].groups} groups of {left}")
            return result.seconds

        shares = sorted({max(1, round(facts.groups * share)) for share in HISTORY_SHARES})

        def measure(turn: int) -> list[Sample]:
            took = [
                [
                    in_turn(
                        turn,
                        functools.partial(seconds, ours, left),
                        functools.partial(seconds, theirs, left) if theirs else None,
                    )
                    for left in shares
                ]
                for _ in range(HISTORY_PASSES)
            ]
            samples, slopes = [], []
            for left, *passes in zip(shares, *took, strict=True):
                own = statistics.median(one for one, _ in passes)
                others = [other for _, other in passes if other is not None]
                gibibytes = facts.size * left / facts.groups / 2**30
                their = statistics.median(others) if others else None
                samples.append(Sample(f"{gibibytes:.3g} GiB", "s", own, their))
                slopes.append(own / left)
            bent = max(slopes) / min(slopes)
            samples.append(
                Sample("slowest over fastest byte", "x", bent, None, value_at_most(_STRAIGHT))
            )
            return samples

        yield measure


def _row(kind: str, readers: int, speed: Goal | None = None, processor: Goal | None = None) -> Row:
    who = "one reader catches up" if readers == 1 else f"{readers} readers catch up at once"
    return Row(
        f"catch-up-{readers}-{kind}",
        f"{who}: {kind} groups, CRC32, from the first to the last",
        WARM,
        functools.partial(_catch_up, kind=kind, readers=readers, speed=speed, processor=processor),
    )


ROWS = (
    _row("bulk", 1, ratio(1.4, 2.0), ratio_at_most(0.6, 0.4)),
    _row("one-row", 1, ratio(2.0, 3.0), ratio_at_most(0.45, 0.35)),
    _row("mixed", 1),
    _row("bulk", 8),
    _row("one-row", 8),
    _row("bulk", 64, ratio(1.4, 2.0), ratio_at_most(0.5, 0.2)),
    _row("one-row", 64, ratio(2.3, 2.8), ratio_at_most(0.5, 0.2)),
    Row(
        "history",
        "seconds to catch up against how much there is: 1/32, a quarter, half, all; bulk",
        WARM,
        _history,
    ),
)
