"""The command line of the kill rounds: many rounds with a progress bar, and what was checked."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ..integration.conftest import Rig, rig_in
from ..integration.installations import mariadb_10_11, mariadb_11_8
from .relay_rounds import RelayRounds
from .store_rounds import StoreRounds

MODES = (0, 1, 2)
TARGETS = ("store", "relay")


def store_rounds(folder: Path, mode: int, rounds: int, seed: int) -> Iterator[Counter[str]]:
    """Kill a process that publishes and serves; yield the counts behind each round."""
    one = StoreRounds(folder, mode, seed, mariadb_10_11())
    for _ in range(rounds):
        one.run_round()
        yield one.history.counts
    one.finish()
    yield one.history.counts


def relay_rounds(rig: Rig, mode: int, rounds: int, seed: int) -> Iterator[Counter[str]]:
    """Kill a relay; yield the counts behind each round."""
    versions = mariadb_10_11(), mariadb_11_8()
    one = RelayRounds(rig, versions[0], versions[mode % 2], [mode], seed)
    with one.load():
        for _ in range(rounds):
            one.run_round()
            yield one.counts
    yield one.counts


def run(target: str, mode: int, settings: argparse.Namespace, console: Console) -> bool:
    """Run one target in one mode; keep its folder if something is wrong."""
    folder = Path(tempfile.mkdtemp(prefix=f"ibb-{target}{mode}-"))
    begun, counts = time.monotonic(), Counter[str]()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    try:
        with rig_in(folder) as rig, Progress(*columns, TimeElapsedColumn(), console=console) as bar:
            task = bar.add_task(f"{target}, mode {mode}", total=settings.rounds)
            rounds = (
                store_rounds(folder, mode, settings.rounds, settings.seed)
                if target == "store"
                else relay_rounds(rig, mode, settings.rounds, settings.seed)
            )
            for counts in rounds:
                bar.update(task, completed=counts["rounds"])
    except Exception:  # noqa: BLE001 - whatever it is, it is told and the folder kept
        console.print(traceback.format_exc(), markup=False, highlight=False)
        console.print(f"seed {settings.seed}, kept: {folder}", style="bold red", markup=False)
        return False
    shutil.rmtree(folder)
    told = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    console.print(f"{told}; {time.monotonic() - begun:.0f} s", markup=False)
    return True


def main() -> int:
    """Run; return 1 if something was wrong."""
    parser = argparse.ArgumentParser(prog="scripts/kill-rounds", description=__doc__)
    parser.add_argument("--rounds", type=int, default=200, help="of each target in each mode")
    parser.add_argument("--mode", choices=[*map(str, MODES), "all"], default="all")
    parser.add_argument("--target", choices=[*TARGETS, "all"], default="all")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 16))
    settings = parser.parse_args()
    console = Console()
    targets = TARGETS if settings.target == "all" else (settings.target,)
    modes = MODES if settings.mode == "all" else (int(settings.mode),)
    return (
        0
        if all(run(target, mode, settings, console) for target in targets for mode in modes)
        else 1
    )


if __name__ == "__main__":
    sys.exit(main())
