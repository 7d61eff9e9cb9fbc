"""Time as storage sees it, so that a test can move it."""

import time
from typing import Protocol


class Clock(Protocol):
    """Two clocks."""

    def now(self) -> float:
        """Return wall-clock time in seconds since 1970; it may jump."""

    def monotonic(self) -> float:
        """Return seconds since some moment; never goes back."""


class SystemClock:
    """The machine's clocks."""

    def now(self) -> float:
        """Return wall-clock time in seconds since 1970."""
        return time.time()

    def monotonic(self) -> float:
        """Return seconds since the machine's start."""
        return time.monotonic()
