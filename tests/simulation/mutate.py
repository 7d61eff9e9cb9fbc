"""
The command line of the mutation check: does the simulation notice every promise that is broken?

Until it is noticed, a mutant meets a few seeds of the simulation, a case of each test that runs its
line, some seeds, many threads at once, the other cases, and the other seeds; one without a lock
meets two threads at every place, and no seeds. Those that do no harm are named in docs/mutants.md,
with the reason.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console

from .covering_tests import TESTS, CoveringTests, measure
from .mutants import Mutant, make_mutants

ROOT = Path(__file__).parent.parent.parent
STORAGE = ROOT / "ibb" / "storage"
HARMLESS = ROOT / "docs" / "mutants.md"
HANG_SECONDS = 400.0
START_SECONDS = 60.0
SLOWER = 10.0  # chosen tests hang if they take longer than so many times usual
SEED_SECONDS = 10.0  # those that usually take a second each
FIRST_SEEDS = 60  # before slow tests
SEEDS_AT_A_TIME = (5, 200)  # by one process: the first few, and later
THREAD_SEEDS = 3  # runs of many threads
SURVIVED = "survived"
PREEMPTION = {
    "binlog_files": "files", "open_files": "files", "directory": "views", "read_only": "views",
    "format_catalogue": "views", "page_runs": "page_runs", "format_writer": "a_store",
    "engine": "a_store", "group_committer": "a_store", "purge": "a_store", "store": "a_store",
    "housekeeper": "the_background", "page_flusher": "the_background",
    "leases": "leases", "holds": "leases",
    "file_states": "known_files", "watched_file": "known_files",
}  # fmt: skip  # test_preemption_of_*.py by module; the others: test_preemption.py


def judge(mutant: Mutant, tests: CoveringTests, seeds: int, survived: int = 0) -> str:
    """Return by what a mutant that has *survived* some seeds was found out, or `SURVIVED`."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        shutil.copytree(ROOT / "ibb", root / "ibb", ignore=shutil.ignore_patterns("__pycache__"))
        for entry in ROOT.iterdir():
            if not (root / entry.name).exists() and entry.name != ".git":
                (root / entry.name).symlink_to(entry)
        module = mutant.path.relative_to(STORAGE)
        (root / "ibb" / "storage" / module).write_text(mutant.source)
        firsts, others = tests.of(mutant.path, mutant.lines)
        if len(module.parts) > 1:  # no store calls it
            return _meet_tests(root, tests, firsts) or _meet_tests(root, tests, others) or SURVIVED
        if mutant.is_lock:
            return (
                _meet_preemption(root, mutant.path.stem)
                or _meet_threads(root, mutant.place)
                or _meet_tests(root, tests, firsts)
                or SURVIVED
            )
        last = min(seeds, FIRST_SEEDS)
        few = min(last, SEEDS_AT_A_TIME[0])
        is_new = survived <= FIRST_SEEDS
        return (
            _meet_seeds(root, survived + 1, few)
            or (_meet_tests(root, tests, firsts) if is_new else None)
            or _meet_seeds(root, max(survived, few) + 1, last)
            or (_meet_threads(root, mutant.place) if is_new else None)
            or (_meet_tests(root, tests, others) if is_new else None)
            or _meet_seeds(root, max(survived, FIRST_SEEDS) + 1, seeds)
            or SURVIVED
        )


def _meet_seeds(root: Path, first: int, last: int) -> str | None:
    """Return which seed noticed the mutant, if one did."""
    simulate = ["-m", "tests.simulation.simulate", "--quick", "--jobs", "1"]
    verdict = None
    while first <= last and verdict is None:
        count = min(SEEDS_AT_A_TIME[first > 1], last - first + 1)
        arguments = [*simulate, "--seeds", f"{first}..{first + count - 1}"]
        said = _run(root, arguments, START_SECONDS + SEED_SECONDS * count)
        verdict = _verdict(said, "simulation", "")
        first += count
    return verdict


def _meet_threads(root: Path, place: str) -> str | None:
    """Return which run of many threads noticed the mutant, if one did."""
    threads = ["-m", "tests.simulation.stress", "--seeds", str(THREAD_SEEDS), "--watch", place]
    return _verdict(_run(root, threads, HANG_SECONDS), "threads", "threads, ")


def _verdict(said: str | None, what: str, kind: str) -> str | None:
    if said is None:
        return f"killed: {what} hang"
    if found := re.search(r"^seed (\d+): ", said, re.MULTILINE):
        return f"killed by {kind}seed {found[1]}"
    return None if "fine" in said else f"killed: {what} do not run"


def _meet_preemption(root: Path, stem: str) -> str | None:
    """Return which test of two threads at every place noticed the mutant, if one did."""
    names = (f"test_preemption_of_{PREEMPTION.get(stem)}.py", "test_preemption.py")
    paths = [root / TESTS / name for name in names]
    return _pytest(root, [str(path) for path in paths if path.exists()], HANG_SECONDS)


def _meet_tests(root: Path, tests: CoveringTests, chosen: list[str]) -> str | None:
    """Return which of the chosen tests noticed the mutant, if one did."""
    if not chosen:
        return None
    named = root / "chosen_tests"
    named.write_text("\n".join(chosen))
    seconds = START_SECONDS + SLOWER * tests.seconds(chosen)
    return _pytest(root, [f"@{named.name}"], seconds)


def _pytest(root: Path, chosen: list[str], seconds: float) -> str | None:
    said = _run(root, ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *chosen], seconds)
    if said is None:
        return "killed: the tests hang"
    found = re.search(r"^(?:FAILED|ERROR) \S+?::(\w+)", said, re.MULTILINE)
    return f"killed by {found[1]}" if found else None


def harmless_names() -> set[str]:
    """Return the mutants that may survive: the first column of the table in docs/mutants.md."""
    return set(re.findall(r"^\| `(.+?)` \|", HARMLESS.read_text(), re.MULTILINE))


class Results:
    """
    What became of mutants in earlier runs, so that a run that was ended can go on.

    Args:
        path: a file of one JSON object a line, made if it is missing; None: nothing is kept.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        entries = [json.loads(line) for line in lines]
        self._known = {(entry["mutant"], entry["source"]): entry for entry in entries}

    def find(self, mutant: Mutant) -> tuple[str | None, int]:
        """Return the verdict on the same source, and how many seeds it had survived then."""
        entry = self._known.get((mutant.name, _digest(mutant)))
        return (entry["verdict"], entry["seeds"]) if entry is not None else (None, 0)

    def add(self, mutant: Mutant, seeds: int, verdict: str) -> None:
        if self._path is None:
            return
        entry = {"mutant": mutant.name, "source": _digest(mutant), "seeds": seeds,
                 "verdict": verdict}  # fmt: skip
        with self._lock, self._path.open("a") as file:
            file.write(json.dumps(entry) + "\n")


def _digest(mutant: Mutant) -> str:
    return hashlib.sha256(mutant.source.encode()).hexdigest()[:16]


def _run(root: Path, arguments: list[str], seconds: float) -> str | None:
    """Run Python in the mutant's folder; return what it says, or None if it hangs."""
    try:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root), "COLUMNS": "1000"},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    return done.stdout


def main() -> int:
    """Judge all mutants; return 1 if one survived that is not known to be harmless."""
    parser = argparse.ArgumentParser(prog="scripts/mutate-storage", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2000, help="for each mutant, at the most")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at a time")
    parser.add_argument("--only", default="", metavar="TEXT", help="mutants with this in the name")
    parser.add_argument("--results", type=Path, metavar="FILE", help="keep verdicts, and go on")
    parser.add_argument("--harmful", action="store_true", help="leave out the harmless ones")
    settings = parser.parse_args()
    console = Console(soft_wrap=True, highlight=False)
    harmless, results = harmless_names(), Results(settings.results)
    mutants = [
        mutant
        for mutant in make_mutants(STORAGE)
        if settings.only in mutant.name and not (settings.harmful and mutant.name in harmless)
    ]
    mutants.sort(key=lambda mutant: mutant.is_lock)  # threads take longer
    counts: Counter[str] = Counter()
    console.print(f"running {TESTS} once, to see which tests run which lines", markup=False)
    tests = measure(ROOT, settings.jobs)

    def judge_one(mutant: Mutant) -> str:
        verdict, seeds = results.find(mutant)
        is_done = seeds >= settings.seeds or mutant.is_lock
        if verdict is None or (verdict == SURVIVED and not is_done):
            verdict = judge(mutant, tests, settings.seeds, seeds)
            results.add(mutant, settings.seeds, verdict)
        return "harmless" if verdict == SURVIVED and mutant.name in harmless else verdict

    with ThreadPoolExecutor(settings.jobs) as pool:
        for mutant, verdict in zip(mutants, pool.map(judge_one, mutants), strict=True):
            counts[verdict if verdict in (SURVIVED, "harmless") else "noticed"] += 1
            console.print(f"{verdict:<40} {mutant.name}", markup=False)
    console.print(f"{len(mutants)} mutants: {dict(counts)}", markup=False)
    return 1 if counts[SURVIVED] else 0


if __name__ == "__main__":
    sys.exit(main())
