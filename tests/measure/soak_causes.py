"""What a soak does to its servers, and when: logs may tell of that, and of nothing else."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CAUSED_SECONDS = 30.0  # behind a start or an end, in which errors are its consequence
CLOCK_SECONDS = 2.0  # by which what logs call now may be before it


class Causes:
    """
    The times in which a soak starts or ends something.

    Args:
        clock: returns seconds since 1970, as in logs.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._times: list[list[float]] = []  # when each began and ended

    @contextmanager
    def cause(self) -> Iterator[None]:
        """Take what happens from now until somewhat behind the end of the block as caused."""
        times = [self._clock(), float("inf")]
        self._times.append(times)
        try:
            yield
        finally:
            times[1] = self._clock()

    def explain(self, at: float) -> bool:
        """Tell whether what happened *at*, in seconds since 1970, may come from a start or end."""
        return any(
            began - CLOCK_SECONDS <= at <= ended + CAUSED_SECONDS for began, ended in self._times
        )
