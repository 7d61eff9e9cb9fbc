"""The last hour in numbers, for the plots: what came and went, and how far behind readers are."""

from __future__ import annotations

from collections import deque
from itertools import islice
from statistics import fmean
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

SAMPLE_SECONDS: Final = 2.0
SAMPLES_MAX: Final = 1800  # an hour
POINTS_MAX: Final = 600  # of one plot


class Sample(NamedTuple):
    """
    The server at a moment. What is not known is None.

    Attributes:
        time: seconds since 1970.
        bytes_written: to the binlog, a second.
        groups_written: a second, by their sequence numbers.
        bytes_sent: to all clients, a second.
        readers: that are connected.
        readers_behind: that do not keep up.
        bytes_behind: of the reader that is furthest behind.
        seconds_behind: of the same.
        seconds_behind_upstream: of the relay.
    """

    time: float
    bytes_written: float
    groups_written: float
    bytes_sent: float
    readers: int
    readers_behind: int
    bytes_behind: int
    seconds_behind: int | None
    seconds_behind_upstream: int | None


class Samples:
    """The newest `SAMPLES_MAX` samples."""

    def __init__(self) -> None:
        self._kept: deque[Sample] = deque(maxlen=SAMPLES_MAX)

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, sample: Sample) -> None:
        """Keep a sample, and forget the oldest if there are too many."""
        self._kept.append(sample)

    def last(self, count: int) -> list[Sample]:
        """Return the newest *count* samples, several in one where they are more than a plot has."""
        count = max(0, min(count, len(self._kept)))
        found = list(islice(self._kept, len(self._kept) - count, None))
        size = -(-len(found) // POINTS_MAX)
        if size <= 1:
            return found
        return [_in_one(found[at : at + size]) for at in range(0, len(found), size)]


def _in_one(samples: list[Sample]) -> Sample:
    """Return one sample for several: the mean of rates, the highest of everything else."""
    last = samples[-1]
    return Sample(
        last.time,
        fmean(sample.bytes_written for sample in samples),
        fmean(sample.groups_written for sample in samples),
        fmean(sample.bytes_sent for sample in samples),
        max(sample.readers for sample in samples),
        max(sample.readers_behind for sample in samples),
        max(sample.bytes_behind for sample in samples),
        _highest(sample.seconds_behind for sample in samples),
        _highest(sample.seconds_behind_upstream for sample in samples),
    )


def _highest(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
