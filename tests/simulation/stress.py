"""The threads run with bounds so low that all are reached; a command line with wide windows."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import CodeType
from unittest.mock import patch

from ibb.storage.page_cache import PageCache

from .threads import Stress
from .wide_windows import wide_windows

OPEN_FILES_MAX = 3
CACHE_BYTES_MAX = 8 * 512


def stress(path: Path, seed: int, watched: Callable[[CodeType], bool] | None = None) -> int:
    """Run once, with all bounds of memory so low that they are reached; return the commits."""
    with ExitStack() as bounds:
        for bound, value in (
            ("ibb.storage.open_files.OPEN_FILES_MAX", OPEN_FILES_MAX),
            ("ibb.storage.live_pages.PageCache", partial(PageCache, CACHE_BYTES_MAX)),
        ):
            bounds.enter_context(patch(bound, value))
        bounds.enter_context(wide_windows(seed, watched or (lambda _: False)))
        run = Stress(path, seed)
        run.run()
    return sum(run.acknowledged.values())


def is_in(text: str) -> Callable[[CodeType], bool]:
    """Return whether code is that of `file.py function`, or of all of `file.py`."""
    file, _, function = text.partition(" ")

    def watched(code: CodeType) -> bool:
        return code.co_filename.endswith(f"/storage/{file}") and function in ("", code.co_name)

    return watched


def main() -> int:
    """Run seeds; return 1 at the first that fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.stress", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="runs, one behind the other")
    parser.add_argument("--watch", type=is_in, metavar="FILE FUNCTION", help="widen its windows")
    settings = parser.parse_args()
    for seed in range(1, settings.seeds + 1):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            try:
                stress(Path(folder), seed, settings.watch)
            except Exception as error:  # noqa: BLE001 - told in one line, like a seed of the simulation
                print(f"seed {seed}: {type(error).__name__}: {error}", flush=True)
                return 1
    print("fine")
    return 0


if __name__ == "__main__":
    sys.exit(main())
