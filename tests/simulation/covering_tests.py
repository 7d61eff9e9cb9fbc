"""Which tests of the storage layer run a line, and how long each takes: measured, not guessed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree as ET

from coverage import CoverageData

TESTS = "tests/storage"
LEFT_OUT = "*preemption*"  # they trace on their own, line by line
SETUP, RUN = "|setup", "|run"  # how pytest-cov ends the names of its contexts


class CoveringTests:
    """
    The tests of the storage layer by the lines that they run.

    Args:
        lines: by path of a module and number of a line, the tests.
        seconds: by test, how long it took.
    """

    def __init__(self, lines: dict[Path, dict[int, set[str]]], seconds: dict[str, float]) -> None:
        self._lines = lines
        self._seconds = seconds

    def of(self, path: Path, lines: Iterable[int]) -> tuple[list[str], list[str]]:
        """Return one case of each test that runs one of the lines, then its others; quick first."""
        of_module = self._lines.get(path, {})
        covering = set[str]().union(*(of_module.get(line, ()) for line in lines))
        quick_first = sorted(covering, key=lambda test: (self.seconds([test]), test))
        firsts: dict[str, str] = {}
        for test in quick_first:
            firsts.setdefault(test.partition("[")[0], test)
        first = set(firsts.values())
        return list(firsts.values()), [test for test in quick_first if test not in first]

    def seconds(self, tests: Iterable[str]) -> float:
        return sum(self._seconds.get(test, 0.0) for test in tests)


def measure(root: Path, jobs: int, tests: str = TESTS) -> CoveringTests:
    """
    Run tests once and return what each runs, and how long it takes.

    Args:
        root: of the source tree.
        jobs: how many processes run them.
        tests: the folder or file of the tests.

    Raises:
        subprocess.CalledProcessError: they do not pass as the code is.
    """
    with tempfile.TemporaryDirectory() as folder:
        data, report = Path(folder, "coverage"), Path(folder, "report.xml")
        subprocess.run(
            [
                sys.executable, "-m", "pytest", "-q", "-n", str(jobs), "--dist", "loadgroup",
                "-p", "no:cacheprovider", f"--ignore-glob={LEFT_OUT}", "--cov=ibb/storage",
                "--cov-context=test", "--cov-report=", "-o", "junit_family=xunit1",
                f"--junitxml={report}", tests,
            ],
            cwd=root,
            env={**os.environ, "COVERAGE_FILE": str(data)},
            stdout=subprocess.DEVNULL,
            check=True,
        )  # fmt: skip
        return CoveringTests(_lines(data), _seconds(report))


def _lines(data: Path) -> dict[Path, dict[int, set[str]]]:
    covered = CoverageData(str(data))
    covered.read()
    lines: dict[Path, dict[int, set[str]]] = {}
    for name in covered.measured_files():
        of_module = lines[Path(name)] = defaultdict(set)
        for line, contexts in covered.contexts_by_lineno(name).items():
            for context in contexts:
                if context.endswith((SETUP, RUN)):
                    of_module[line].add(context.rpartition("|")[0])
    return lines


def _seconds(report: Path) -> dict[str, float]:
    return {
        f"{case.get('file')}::{case.get('name')}": float(case.get("time", "0"))
        for case in ET.parse(report).iter("testcase")
    }
