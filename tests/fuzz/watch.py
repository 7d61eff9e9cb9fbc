"""Limits of one execution: its time, and the memory of the process over that at the start."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

SECONDS_MAX = 1.0
GROWTH_KIB_MAX = 64 << 10
WARM_UP = 1000  # executions before the memory counts: modules are read, caches fill
ATTEMPTS = 3  # a hang hangs each time; a machine that was busy does not


class OverLimitError(AssertionError):
    """An execution went over a limit."""


class Watched:
    """A target with an eye on its time and memory."""

    def __init__(self, target: Callable[[bytes], None]) -> None:
        self._target = target
        self._count = 0
        self._before = 0

    def __call__(self, data: bytes) -> None:
        self._count += 1
        seconds = self._run(data)
        for _ in range(ATTEMPTS - 1):
            if seconds < SECONDS_MAX:
                break
            seconds = min(seconds, self._run(data))
        if seconds >= SECONDS_MAX:
            raise OverLimitError(f"{seconds:.1f} s for one input")
        held = _peak_kib()
        if self._count <= WARM_UP:
            self._before = held
        elif held - self._before > GROWTH_KIB_MAX:
            raise OverLimitError(f"{(held - self._before) >> 10} MiB more than at the start")

    def _run(self, data: bytes) -> float:
        start = time.monotonic()
        self._target(data)
        return time.monotonic() - start


def _peak_kib() -> int:
    """Return the most memory that this program had; `ru_maxrss` counts its parent's, too."""
    status = Path("/proc/self/status").read_bytes()
    return int(status[status.index(b"VmHWM:") :].split(maxsplit=2)[1])
