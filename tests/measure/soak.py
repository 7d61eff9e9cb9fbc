"""A relay and all that hangs on it at work for hours (`soak_run.py`): what came of it, drawn."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ..integration.conftest import new_rig
from .soak_run import Soak
from .soak_samples import ARENA_BYTES, PROCESSES, draw, growth, percentile, write
from .soak_spark import why_no_spark

if TYPE_CHECKING:
    from types import FrameType

SIGNALLED = 128  # exit status of who ends by a signal, as shells have it, less its number
MIB = 1 << 20
# What a thread frees another one takes only within an arena of the C library, which makes eight of
# them for each processor. Services are run with two (deploy/, Dockerfile): so is what is soaked.
ARENAS = "MALLOC_ARENA_MAX"


def verdict(soak: Soak) -> tuple[list[str], bool]:
    """Return what to print, and whether all is well."""
    samples, lines, well = soak.samples, [], not soak.wrong
    latencies = [sample.latency for sample in samples]
    lines.append(
        f"{len(samples)} samples, {len(soak.restarts)} restarts; latency"
        f" {percentile(latencies, 0.5) * 1000:.1f} ms median, {percentile(latencies, 0.99):.2f} s"
        f" at 99 %; {soak.reader.groups} groups, each read once; behind by at most"
        f" {max(one.lag for one in samples)} groups (replicas),"
        f" {max(one.reader_lag for one in samples)} (reader),"
        f" {max(one.pipeline_lag for one in samples)} (change tables)"
    )
    if soak.spark is not None:
        lag = max(one.spark_lag for one in samples)
        failures = len(soak.spark.failures)
        lines.append(
            f"Spark: {soak.spark.number} groups, each once; behind by at most {lag};"
            f" started again {failures} times"
        )
    for process in PROCESSES if soak.spark is not None else PROCESSES[:-1]:
        figures = [(one.at, getattr(one, process)) for one in samples]
        arenas = ARENA_BYTES * percentile([one.processes for _, one in figures], 0.5)
        for name, unit, grain in (
            ("anonymous", MIB, arenas), ("descriptors", 1, 0.0), ("threads", 1, 0.0)
        ):  # fmt: skip
            looks = [(at, one.life, getattr(one, name)) for at, one in figures]
            try:
                found = growth(looks, grain)
            except ValueError as error:
                lines.append(f"{process:<9}{name:<12} nothing is known: {error}")
                continue
            well = well and found.is_noise
            slope, error_an_hour = (3600 * value / unit for value in (found.slope, found.error))
            lines.append(
                f"{process:<9}{name:<12} {slope:+.3f} ± {error_an_hour:.3f}"
                f"{' MiB' if unit > 1 else ''} an hour, within minutes ± {found.scatter / unit:.3f}"
                f": {'flat' if found.is_noise else 'GROWS'}"
            )
    return [*lines, *soak.wrong], well


class Stop:
    """
    Notes signals; who works asks it where ending leaves no server behind.

    A handler that raises would do so also while a process is being started, of which nobody knows.
    """

    def __init__(self) -> None:
        self.number = 0
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note)

    def _note(self, number: int, _: FrameType | None) -> None:
        self.number = number

    def is_wanted(self) -> bool:
        """Tell whether a signal has come."""
        return self.number != 0


def main() -> None:
    """Run a soak, draw it, and say how it went."""
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--minutes", type=float, help="instead of hours, to try the tool itself")
    parser.add_argument("--no-spark", action="store_true", help="without a Spark stream")
    parser.add_argument("--plot", type=Path, default=Path("build/soak.png"))
    arguments = parser.parse_args()
    stop = Stop()
    seconds = 60 * arguments.minutes if arguments.minutes else 3600 * arguments.hours
    os.environ.setdefault(ARENAS, "2")
    missing = "not wanted" if arguments.no_spark else why_no_spark()
    with new_rig() as rig:
        soak = Soak(
            rig,
            seconds,
            lambda line: print(line, flush=True),
            stop.is_wanted,
            with_spark=not missing,
        )
        about = (
            f"{ARENAS}={os.environ[ARENAS]}, {f'no Spark: {missing}' if missing else 'with Spark'}"
        )
        print(f"from {datetime.now(UTC):%F %T} UTC for {seconds:.0f} s; {about}", flush=True)
        soak.run()
    if stop.is_wanted():
        sys.exit(SIGNALLED + stop.number)
    if soak.samples:
        draw(soak.samples, soak.restarts, arguments.plot)
        write(soak.samples, arguments.plot.with_suffix(".csv"))
    lines, well = verdict(soak)
    print("\n".join(lines))
    print(f"{'well' if well else 'NOT WELL'}; drawn: {arguments.plot}")
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
