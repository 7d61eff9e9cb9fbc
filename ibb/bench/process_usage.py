"""What a process takes: processor time and anonymous memory, seen from outside."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Final, Self

from .errors import BenchError

SAMPLE_SECONDS: Final = 0.02
_PROCESS_CLOCK: Final = 2  # CPUCLOCK_SCHED of the kernel: all threads, those that have ended too


def processor_seconds(pid: int) -> float:
    """
    Return the processor time of a process so far, in nanosecond steps (`/proc` counts in 10 ms).

    Raises:
        BenchError: it is gone.
    """
    try:
        return time.clock_gettime(~pid << 3 | _PROCESS_CLOCK)
    except OSError as error:
        raise BenchError(f"process {pid} that is measured is gone: {error}") from None


def anonymous_bytes(pid: int) -> int:
    """
    Return the anonymous resident memory of a process.

    Raises:
        BenchError: it is gone.
    """
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError as error:
        raise BenchError(f"process {pid} that is measured is gone: {error}") from None
    for line in text.splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) << 10
    raise BenchError(f"/proc/{pid}/status says nothing of anonymous memory")


class MemoryWatch:
    """Samples a process's anonymous memory in a block: bytes `before`, and at the `peak`."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self.before = self.peak = anonymous_bytes(pid)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def grown(self) -> int:
        """Bytes at the peak over those before."""
        return self.peak - self.before

    def _sample(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            try:
                self.peak = max(self.peak, anonymous_bytes(self._pid))
            except BenchError:
                return
