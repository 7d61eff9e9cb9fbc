"""What a soak looks at every few seconds, and whether it grows."""

from __future__ import annotations

import math
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

WARM_UP = 0.2  # of each life of the process: caches fill
SIGMAS = 3.0  # a slope within so many standard errors of 0 is noise
MEMORY_GROWTH_MAX = 3 << 20  # bytes over the whole run that count as none
DESCRIPTOR_GROWTH_MAX = 1.0
SAMPLES_MIN = 5  # of a life that is looked at


class Sample(NamedTuple):
    """
    One look.

    Attributes:
        at: seconds since the soak began.
        life: number of the relay's process, from 0.
        anonymous: bytes of anonymous resident memory of the relay.
        resident: bytes of all its resident memory.
        descriptors: files, sockets and the like that it has open.
        threads: of it.
        lag: groups that the slower replica was behind the primary.
        latency: seconds from a commit on the primary to its row on the first replica.
    """

    at: float
    life: int
    anonymous: int
    resident: int
    descriptors: int
    threads: int
    lag: int
    latency: float


class Growth(NamedTuple):
    """How fast something grows: by how much a second, and the standard error of that."""

    slope: float
    error: float

    def is_noise(self, seconds: float, growth_max: float) -> bool:
        """Tell whether nothing has grown in *seconds* but by chance, or less than matters."""
        return self.slope <= SIGMAS * self.error or self.slope * seconds <= growth_max


class ProcessFigures(NamedTuple):
    """Of one process: bytes, bytes, numbers."""

    anonymous: int
    resident: int
    descriptors: int
    threads: int


def process_figures(pid: int) -> ProcessFigures:
    """
    Return what a process takes now.

    Raises:
        FileNotFoundError, ProcessLookupError: it has ended.
    """
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
    )
    kilobytes = {name: int(status[name].split()[0]) << 10 for name in ("RssAnon", "VmRSS")}
    descriptors = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    return ProcessFigures(
        kilobytes["RssAnon"], kilobytes["VmRSS"], descriptors, int(status["Threads"])
    )


def growth(samples: Sequence[Sample], value: Callable[[Sample], float]) -> Growth:
    """
    Fit one slope to all lives of the process, each with a level of its own.

    The beginning of each life is left out (`WARM_UP`), as are lives of a few samples.

    Raises:
        ValueError: no life is long enough.
    """
    lives = []
    for _, of_life in groupby(samples, key=lambda sample: sample.life):
        life = list(of_life)
        life = life[int(len(life) * WARM_UP) :]
        if len(life) >= SAMPLES_MIN:
            lives.append([(sample.at, float(value(sample))) for sample in life])
    if not lives:
        raise ValueError(f"no process lived for {SAMPLES_MIN} samples")
    centred = [point for life in lives for point in _centred(life)]
    spread = sum(x * x for x, _ in centred)
    slope = sum(x * y for x, y in centred) / spread
    left = sum((y - slope * x) ** 2 for x, y in centred)
    freedom = max(len(centred) - len(lives) - 1, 1)
    return Growth(slope, math.sqrt(left / freedom / spread))


def _centred(life: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points of a life around their mean."""
    x0, y0 = (sum(column) / len(life) for column in zip(*life, strict=True))
    return [(x - x0, y - y0) for x, y in life]


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that *share* of all are not above."""
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


def draw(samples: Sequence[Sample], restarts: Sequence[tuple[float, str]], path: Path) -> None:
    """Draw memory, descriptors, lag and latency, one above the other, as a PNG."""
    import matplotlib as mpl  # takes a second: only who draws has to wait

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    minutes = [sample.at / 60 for sample in samples]
    figure, axes = plt.subplots(4, 1, figsize=(9, 9), sharex=True, layout="constrained")
    lines = (
        ("memory, MiB", (("anonymous", [s.anonymous / 2**20 for s in samples]),
                         ("resident", [s.resident / 2**20 for s in samples]))),
        ("number", (("descriptors", [s.descriptors for s in samples]),
                    ("threads", [s.threads for s in samples]))),
        ("lag, groups", (("slower replica", [s.lag for s in samples]),)),
        ("latency, ms", (("commit to replica", [s.latency * 1000 for s in samples]),)),
    )  # fmt: skip
    for axis, (label, curves) in zip(axes, lines, strict=True):
        for name, values in curves:
            axis.plot(minutes, values, label=name, linewidth=1)
        for at, _ in restarts:
            axis.axvline(at / 60, color="grey", linewidth=0.5, linestyle=":")
        axis.set_ylabel(label)
        axis.set_ylim(bottom=0)
        axis.legend(loc="upper right", fontsize="small")
    axes[-1].set_yscale("symlog", linthresh=10)
    axes[-1].set_xlabel("minutes; dotted: a restart of one of the servers")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
