"""The command line of the fuzzing: every target in turn, each in a process of its own."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from . import corpus
from .targets import TARGETS

EXECUTIONS_MAX = 1 << 31
STUCK_SECONDS = 30  # libFuzzer's own limit for an input that never ends
RSS_MIB_MAX = 1024  # libFuzzer's own limit; ours counts from the start
LINES_SHOWN = 40  # of a find

_COVERAGE = re.compile(r"^#\d+\s+\w+\s+cov: (\d+) ft: (\d+)", re.MULTILINE)
_EXECUTIONS = re.compile(r"^stat::number_of_executed_units:\s*(\d+)", re.MULTILINE)


class Run(NamedTuple):
    """What became of one target."""

    target: str
    executions: int
    edges: int
    features: int
    seconds: float
    ok: bool
    output: str


def make_program(target: str, folder: Path) -> str:
    """Write a program beside *folder* that starts the fuzzing of *target*; return its path."""
    path = folder.with_suffix(".sh")
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -m tests.fuzz.fuzz "$0" {target} "$@"\n')
    path.chmod(0o700)
    return str(path)


def run_target(target: str, folder: Path, *, executions: int, seconds: int) -> Run:
    """Fuzz *target* with its corpus in *folder*, for at most so many executions and seconds."""
    corpus.unpack(target, folder)
    command = [
        make_program(target, folder),
        f"-runs={executions}",
        f"-max_total_time={seconds}",
        f"-max_len={corpus.INPUT_BYTES_MAX}",
        f"-timeout={STUCK_SECONDS}",
        f"-rss_limit_mb={RSS_MIB_MAX}",
        f"-artifact_prefix={folder}-find-",
        "-print_final_stats=1",
        str(folder),
    ]
    begun = time.monotonic()
    done = subprocess.run(command, stderr=subprocess.STDOUT, stdout=subprocess.PIPE)
    output = done.stdout.decode(errors="replace")
    coverage = [tuple(map(int, found)) for found in _COVERAGE.findall(output)] or [(0, 0)]
    count = _EXECUTIONS.search(output)
    spent = time.monotonic() - begun
    number = int(count[1]) if count else 0
    return Run(target, number, *coverage[-1], spent, ok=done.returncode == 0, output=output)


def keep_smallest(target: str, folder: Path) -> None:
    """Keep of the inputs in *folder* as few as reach the same code."""
    with tempfile.TemporaryDirectory() as empty:
        command = (make_program(target, folder), "-merge=1", empty, str(folder))
        subprocess.run(command, check=True, capture_output=True)
        corpus.write(target, (path.read_bytes() for path in Path(empty).iterdir()))


def show_find(console: Console, run: Run, folder: Path) -> None:
    """Print a find: what was raised, and the input as a line for the corpus."""
    console.print(f"[red]{run.target}: a find")
    console.print("\n".join(run.output.splitlines()[-LINES_SHOWN:]), markup=False)
    for path in folder.parent.glob(f"{folder.name}-find-*"):
        console.print(f"{path.name}: {path.read_bytes()!r}", markup=False, soft_wrap=True)


def main() -> int:
    """Return the exit status: 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    parser.add_argument("--executions", type=int, help="of all targets together")
    parser.add_argument("--seconds", type=int, help="of all targets together, shared evenly")
    parser.add_argument("--target", choices=TARGETS, help="this one alone")
    parser.add_argument("--grow", action="store_true", help="keep what reaches more code")
    given = parser.parse_args()
    if given.executions is None and given.seconds is None:
        parser.error("say how long: --executions N or --seconds N")
    targets = [given.target] if given.target else list(TARGETS)
    whole = sum(TARGETS[name].share for name in targets)
    console = Console()
    table = Table("target", "executions", "edges", "features", "seconds")
    failed = False
    with tempfile.TemporaryDirectory(prefix="ibb-fuzz-") as place:
        for name in targets:
            executions = (given.executions or EXECUTIONS_MAX) * TARGETS[name].share // whole
            seconds = (given.seconds or 0) // len(targets)
            folder = Path(place) / name
            run = run_target(name, folder, executions=executions, seconds=seconds)
            numbers = (run.executions, run.edges, run.features, round(run.seconds))
            table.add_row(name, *(f"{number:,}" for number in numbers))
            console.print(f"{name}: {run.executions:,} executions in {run.seconds:.0f} s")
            if not run.ok:
                failed = True
                show_find(console, run, folder)
            elif given.grow:
                keep_smallest(name, folder)
    console.print(table)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
