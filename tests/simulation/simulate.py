"""The command line of the simulation: many seeds in parallel; the short story of a failure."""

from __future__ import annotations

import argparse
import gc
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from multiprocessing import get_context

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn
from rich.table import Table

from .aimed_losses import SCENES
from .run import STEPS_MIN, Outcome, run_seed, shrink

COLLECTED_AFTER = 50_000  # objects made and not yet freed
SEEDS_FOR_ALL_POINTS = 1000  # of 500 steps; fewer may miss a place
SEEDS_TOLD_OF = 1000  # where no bar is shown, a line for each so many
COUNTED = ("crashes", "kills", "faults", "openings", "misreads while opening", "recoveries")


class Summary:
    """What was run."""

    def __init__(self) -> None:
        self.begun_at = time.monotonic()
        self.seeds = 0
        self.counts: Counter[str] = Counter()
        self.steps = 0

    def add(self, outcome: Outcome) -> None:
        self.seeds += 1
        self.counts += outcome.counts
        self.steps += len(outcome.story)

    @property
    def unhit(self) -> list[str]:
        """The places with a name at which no power was lost."""
        points = [point for points in SCENES.values() for point in points]
        return [point for point in points if not self.counts[f"at {point}"]]

    def table(self) -> Table:
        table = Table("what", "how often")
        table.add_row("seeds", f"{self.seeds:,}")
        table.add_row("steps", f"{self.steps:,}")
        for name in COUNTED:
            table.add_row(name, f"{self.counts[name]:,}")
        table.add_row("seconds", f"{time.monotonic() - self.begun_at:.1f}", end_section=True)
        self._add_rows(table, "fault ")
        table.add_section()
        self._add_rows(table, "at ", "power lost ")
        return table

    def _add_rows(self, table: Table, kind: str, before: str = "") -> None:
        """Add the counts of one kind, the highest first."""
        rows = [(name, count) for name, count in self.counts.items() if name.startswith(kind)]
        for name, count in sorted(rows, key=lambda row: -row[1]):
            table.add_row(f"{before}{name}", f"{count:,}")


def run_one(job: tuple[int, int]) -> Outcome:
    """Carry out one seed; jobs of other processes call this."""
    return run_seed(*job)


def collect_rarely() -> None:
    """Let a worker look for cycles seldom: a sixth of its time goes there otherwise."""
    gc.freeze()
    gc.set_threshold(COLLECTED_AFTER)


def run_all(seeds: Sequence[int], steps: int, jobs: int) -> Iterator[Outcome]:
    """Yield the outcomes as they come."""
    work = [(seed, steps) for seed in seeds]
    if jobs == 1:
        yield from map(run_one, work)
        return
    with get_context("fork").Pool(jobs, collect_rarely) as pool:
        yield from pool.imap_unordered(run_one, work, chunksize=4)


def parse_seeds(text: str) -> range:
    """Read `A..B`, or one seed."""
    first, _, last = text.partition("..")
    return range(int(first), int(last or first) + 1)


def tell(console: Console, failed: Outcome) -> None:
    """Print the shortest story of a failure."""
    console.print(f"seed {failed.seed}: {failed.failure}", style="bold red", markup=False)
    console.print("leaving out steps ...")
    short = shrink(failed)
    for line in short.story:
        console.print(line, markup=False, highlight=False)
    console.print(short.trace, markup=False, highlight=False)
    console.print(f"again: scripts/simulate --seeds {failed.seed} --steps {len(failed.plan)}")


def main() -> int:
    """Run; return 1 if a seed failed, or many have not lost their power at every place."""
    parser = argparse.ArgumentParser(prog="scripts/simulate", description=__doc__)
    parser.add_argument("--seeds", type=parse_seeds, default=parse_seeds("1..300"), metavar="A..B")
    parser.add_argument("--steps", type=int, default=STEPS_MIN, help="of each seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at a time")
    parser.add_argument("--quick", action="store_true", help="only name the seed that failed")
    settings = parser.parse_args()
    logging.getLogger("ibb").setLevel(logging.CRITICAL)  # what it warns of is what is simulated
    console, summary = Console(), Summary()
    failed: Outcome | None = None
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(settings.seeds))
        for outcome in run_all(settings.seeds, settings.steps, settings.jobs):
            summary.add(outcome)
            progress.advance(task)
            if not console.is_terminal and summary.seeds % SEEDS_TOLD_OF == 0:
                console.print(f"{summary.seeds:,} of {len(settings.seeds):,} seeds")
            if outcome.failure is not None:
                failed = outcome
                break
    if settings.quick:
        console.print("fine" if failed is None else f"seed {failed.seed}: {failed.failure}")
        return 0 if failed is None else 1
    console.print(summary.table())
    if failed is not None:
        tell(console, failed)
        return 1
    if summary.unhit and summary.seeds >= SEEDS_FOR_ALL_POINTS:
        console.print(f"no power was lost at {', '.join(summary.unhit)}", style="bold red")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
