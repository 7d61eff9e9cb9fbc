"""The whole suite: its rows, run round by round, and what they came to."""

from __future__ import annotations

import os
import platform
import socket
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from ibb.kernels import side
from ibb.server.connections.socket_options import congestion_control

from .errors import BenchError
from .figures import Figure
from .limits import Limits, measure_limits
from .readers import reader_kind
from .rows import catch_up, decode, ingest, latency, processes, seek, spark, tail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .row import Row
    from .workbench import Workbench

ROUNDS_MAX: Final = 100
LIMIT_SECONDS: Final = 1.0
QUICK_ROWS: Final = (
    *("catch-up-1-bulk", "catch-up-1-one-row", "catch-up-8-bulk", "tail-1000", "seek-full"),
    *("ingest-bulk-durable", "ingest-one-row-durable", "latency-1000", "verify", "idle"),
)

ROWS: Final[tuple[Row, ...]] = (
    *catch_up.ROWS,
    *tail.ROWS,
    *ingest.ROWS,
    *latency.ROWS,
    *seek.ROWS,
    *processes.ROWS,
    *decode.ROWS,
    *spark.ROWS,
)


def _nobody(done: int, what: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Machine:
    """Where a run was made, and with which programs."""

    processor: str
    processors: int
    load: float  # of the last minute, when the run began
    python: str
    kernels: str  # `compiled` or `interpreted`
    mariadb: str
    reader: str
    congestion_control: str  # that the system gives to connections


@dataclass(frozen=True)
class Measured:
    """
    One row's outcome.

    Attributes:
        row: which.
        figures: of all rounds.
        left_out: why there are none; empty for a row that was measured.
    """

    row: Row
    figures: tuple[Figure, ...]
    left_out: str = ""


@dataclass(frozen=True)
class Report:
    """All that a run came to."""

    scale: str
    rounds: int
    machine: Machine
    limits: Limits
    rows: tuple[Measured, ...]


def rows_named(names: Sequence[str]) -> tuple[Row, ...]:
    """
    Return the rows of these names in the suite's order; `*` stands for anything.

    Raises:
        BenchError: there is no such row.
    """
    chosen: set[str] = set()
    for name in names:
        found = {row.name for row in ROWS if fnmatchcase(row.name, name)}
        if not found:
            raise BenchError(f"no row {name!r}; there are: {', '.join(row.name for row in ROWS)}")
        chosen |= found
    return tuple(row for row in ROWS if row.name in chosen)


def run(
    bench: Workbench,
    rows: Sequence[Row],
    rounds: int,
    progress: Callable[[int, str], None] = _nobody,
) -> Report:
    """
    Measure *rows*, each for so many rounds.

    Args:
        bench: entered.
        rows: in this order.
        rounds: of each.
        progress: told how many rounds of all rows are done, and what comes.

    Raises:
        BenchError: a figure could not be had, or cannot be trusted.
    """
    assert 0 < rounds <= ROUNDS_MAX
    machine = _machine(bench)
    progress(0, "physical limits")
    limits = measure_limits(bench.folder, min(LIMIT_SECONDS, bench.scale.live_seconds))
    measured = []
    for number, row in enumerate(rows):
        if missing := _missing(bench, row):
            measured.append(Measured(row, (), f"needs {missing}, which is not installed"))
            continue
        figures: dict[str, Figure] = {}
        progress(number * rounds, row.name)
        with row.open(bench) as measure:
            for turn in range(rounds):
                progress(number * rounds + turn, f"{row.name}, round {turn + 1} of {rounds}")
                for sample in measure(turn):
                    figure = Figure(row.name, sample.name, sample.unit, sample.goal)
                    figures.setdefault(sample.name, figure).add(sample)
        measured.append(Measured(row, tuple(figures.values())))
    progress(len(rows) * rounds, "done")
    return Report(bench.scale.name, rounds, machine, limits, tuple(measured))


def _missing(bench: Workbench, row: Row) -> str:
    """Return what a row needs and this machine has not; empty: nothing."""
    if row.needs_mariadb and bench.installation is None:
        return "a mariadbd"
    return ", ".join(name for name in row.needs if find_spec(name) is None)


def _machine(bench: Workbench) -> Machine:
    return Machine(
        processor=_processor(),
        processors=len(os.sched_getaffinity(0)),
        load=os.getloadavg()[0],
        python=platform.python_version(),
        kernels=side(),
        mariadb="" if bench.installation is None else bench.installation.version(),
        reader=reader_kind(),
        congestion_control=_congestion_control(),
    )


def _processor() -> str:
    for line in _lines("/proc/cpuinfo"):
        name, _, text = line.partition(":")
        if name.strip() == "model name":
            return text.strip()
    return platform.machine()


def _congestion_control() -> str:
    with socket.socket() as link:
        return congestion_control(link)


def _lines(path: str) -> Iterator[str]:
    with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - not a file to keep
        yield from file
