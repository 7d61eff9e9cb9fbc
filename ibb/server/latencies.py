"""How long something took, counted in buckets: one thread counts, anybody may look."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final, NamedTuple

MICROSECONDS: Final = 1_000_000  # in a second

# Upper bounds in seconds, from a sync of a fast disk to one that hangs.
BOUNDS: Final = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025),
    *(0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)


class Counted(NamedTuple):
    """
    What was counted.

    Attributes:
        up_to: for each of `BOUNDS`, and for all, how many took no longer.
        seconds: that all took together.
    """

    up_to: list[int]
    seconds: float


class Latencies:
    """Counts durations; a tenth of a microsecond each."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS) + 1)
        self._seconds = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self._counts[bisect_left(BOUNDS, seconds)] += 1
        self._seconds += seconds

    def counted(self) -> Counted:
        """Return what was counted so far."""
        total, up_to = 0, []
        for count in tuple(self._counts):
            total += count
            up_to.append(total)
        return Counted(up_to, self._seconds)
