"""
The command line of the mutation check: does the simulation notice every promise that is broken?

Each mutant meets the simulator first and, if it survives, the tests of the storage layer.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console

from .mutants import Mutant, locks_in, make_mutants

ROOT = Path(__file__).parent.parent.parent
STORAGE = ROOT / "ibb" / "storage"
HANG_SECONDS = 1800.0  # for all seeds of one mutant


def judge(mutant: Mutant, seeds: int, *, tests: bool) -> str:
    """Return by what a mutant was found out, or `survived`."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        shutil.copytree(ROOT / "ibb", root / "ibb", ignore=shutil.ignore_patterns("__pycache__"))
        for entry in ROOT.iterdir():
            if not (root / entry.name).exists() and entry.name != ".git":
                (root / entry.name).symlink_to(entry)
        (root / "ibb" / "storage" / mutant.path.name).write_text(mutant.source)
        simulate = ["-m", "tests.simulation.simulate", "--quick", "--jobs", "1"]
        said = _run(root, [*simulate, "--seeds", f"1..{seeds}"])
        if said is None:
            return "killed: the simulation hangs"
        if found := re.search(r"^seed (\d+): ", said, re.MULTILINE):
            return f"killed by seed {found[1]}"
        if "fine" not in said:
            return "killed: the simulation does not run"
        if not tests:
            return "survived"
        pytest = ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "tests/storage"]
        said = _run(root, pytest)
        if said is None:
            return "killed: the tests hang"
        if found := re.search(r"^(?:FAILED|ERROR) \S+?::(\w+)", said, re.MULTILINE):
            return f"killed by {found[1]}"
        return "survived"


def _run(root: Path, arguments: list[str]) -> str | None:
    """Run Python in the mutant's folder; return what it says, or None if it hangs."""
    try:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root), "COLUMNS": "1000"},
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    return done.stdout


def main() -> int:
    """Judge all mutants; return 1 if one survived."""
    parser = argparse.ArgumentParser(prog="scripts/mutate-storage", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2000, help="for each mutant, at the most")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at a time")
    parser.add_argument("--only", default="", metavar="TEXT", help="mutants with this in the name")
    parser.add_argument("--no-tests", action="store_true", help="the simulation alone")
    settings = parser.parse_args()
    console = Console(soft_wrap=True, highlight=False)
    mutants = [mutant for mutant in make_mutants(STORAGE) if settings.only in mutant.name]
    survived = 0

    def judge_one(mutant: Mutant) -> str:
        return judge(mutant, settings.seeds, tests=not settings.no_tests)

    with ThreadPoolExecutor(settings.jobs) as pool:
        verdicts = pool.map(judge_one, mutants)
        for mutant, verdict in zip(mutants, verdicts, strict=True):
            survived += verdict == "survived"
            console.print(f"{verdict:<32} {mutant.name}", markup=False)
    for lock in locks_in(STORAGE):
        console.print(f"{'needs threads':<32} {lock}", markup=False)
    console.print(f"{len(mutants)} mutants, {survived} survived")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
