"""Time as storage sees it, so that a test can move it."""

import time
from typing import Protocol

_TIMESTAMP_MAX = (1 << 32) - 1  # of an event: in the year 2106


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


def event_time(clock: Clock) -> int:
    """Return wall-clock time as an event can hold it: the nearest moment from 1970 to 2106."""
    return int(min(max(clock.now(), 0), _TIMESTAMP_MAX))
