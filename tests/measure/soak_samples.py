"""What a soak looks at every few seconds, and whether it grows."""

from __future__ import annotations

import csv
import math
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

WARM_UP = 0.25  # of each life of the process: caches fill, pools get their threads
BLOCKS = 24  # of the whole run; samples within one are alike, so that a block counts as one look
SIGMAS = 3.0  # what is within so many standard errors of 0 is noise
LIFE_SECONDS_MIN = 900.0  # of a life that is looked at: shorter ones are all warm-up
PROCESSES = ("relay", "pipeline", "spark")  # that a sample has figures of
# What Python's allocator takes at once. The system counts its pages one by one, as objects first
# come to lie in them: so much may still show in a process that keeps no object more.
ARENA_BYTES = 1 << 20


class ProcessFigures(NamedTuple):
    """
    What a process takes.

    Attributes:
        life: its number among those that were started one after the other, from 0.
        anonymous: bytes of anonymous resident memory.
        resident: bytes of all its resident memory.
        descriptors: files, sockets and the like that it has open.
        threads: of it.
        processes: how many these are the figures of.
    """

    life: int
    anonymous: int
    resident: int
    descriptors: int
    threads: int
    processes: int = 0


class Sample(NamedTuple):
    """
    One look.

    Attributes:
        at: seconds since the soak began.
        lag: groups that the slower replica was behind the primary.
        reader_lag: that the steady reader was.
        pipeline_lag: that the change tables were.
        spark_lag: that the Spark stream was.
        latency: seconds from a commit on the primary to its row on the first replica.
        relay: what the relay takes.
        pipeline: what the pipeline takes.
        spark: what the stream's Python processes take, without Java; zeros where none runs.
    """

    at: float
    lag: int
    reader_lag: int
    pipeline_lag: int
    spark_lag: int
    latency: float
    relay: ProcessFigures
    pipeline: ProcessFigures
    spark: ProcessFigures = ProcessFigures(0, 0, 0, 0, 0)


class Growth(NamedTuple):
    """
    How something grows.

    Attributes:
        slope: by how much a second.
        error: the standard error of that.
        scatter: the standard deviation of looks within minutes.
        seconds: for how long it was looked at.
        grain: by how much it may have grown then though nothing was kept.
    """

    slope: float
    error: float
    scatter: float
    seconds: float
    grain: float

    @property
    def is_noise(self) -> bool:
        """Whether it grows by no more than chance, than it moves in minutes, or than its grain."""
        return self.slope <= SIGMAS * self.error or self.slope * self.seconds <= max(
            SIGMAS * self.scatter, self.grain
        )


def process_figures(pids: Sequence[int], life: int) -> ProcessFigures:
    """Return what processes take now, all of them together; those that have ended take nothing."""
    anonymous = resident = descriptors = threads = processes = 0
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError, KeyError):  # it ends, or has ended
            status = dict(
                line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
            )
            sizes = [int(status[name].split()[0]) << 10 for name in ("RssAnon", "VmRSS")]
            descriptors += sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
            anonymous += sizes[0]
            resident += sizes[1]
            threads += int(status["Threads"])
            processes += 1
    return ProcessFigures(life, anonymous, resident, descriptors, threads, processes)


def growth(looks: Sequence[tuple[float, int, float]], grain: float = 0.0) -> Growth:
    """
    Fit one slope to all lives of a process, each with a level of its own.

    The beginning of each life is left out (`WARM_UP`), as are short lives. The slope is that of the
    blocks' means: memory moves slowly, and samples that follow each other say the same.

    Args:
        looks: when in seconds, at which life, and what was seen.
        grain: of what was seen (`ARENA_BYTES`).

    Raises:
        ValueError: no life is long enough.
    """
    length = (looks[-1][0] - looks[0][0]) / BLOCKS if looks else 0.0
    lives, within, seconds = [], [], 0.0
    for _, of_life in groupby(looks, key=lambda look: look[1]):
        life = [(at, value) for at, _, value in of_life]
        if life[-1][0] - life[0][0] >= LIFE_SECONDS_MIN:
            life = life[int(len(life) * WARM_UP) :]
            blocks = [list(block) for _, block in groupby(life, key=lambda look: look[0] // length)]
            lives.append([(mean(at for at, _ in one), mean(y for _, y in one)) for one in blocks])
            within += [point for one in blocks for point in _centred(one)]
            seconds += life[-1][0] - life[0][0]
    if not lives:
        raise ValueError(f"it did not live for {LIFE_SECONDS_MIN:.0f} s at a stretch")
    centred = [point for life in lives for point in _centred(life)]
    spread = sum(x * x for x, _ in centred)
    slope = sum(x * y for x, y in centred) / spread
    left = sum((y - slope * x) ** 2 for x, y in centred)
    freedom = max(len(centred) - len(lives) - 1, 1)
    scatter = math.sqrt(mean(y * y for _, y in within))
    return Growth(slope, math.sqrt(left / freedom / spread), scatter, seconds, grain)


def _centred(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points around their mean."""
    x0, y0 = (mean(column) for column in zip(*points, strict=True))
    return [(x - x0, y - y0) for x, y in points]


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that *share* of all are not above."""
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


def write(samples: Sequence[Sample], path: Path) -> None:
    """Write all figures as CSV, to look at again."""
    kinds = PROCESSES
    plain = [name for name in Sample._fields if name not in kinds]
    head = [f"{kind}_{name}" for kind in kinds for name in ProcessFigures._fields]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*plain, *head])
        for one in samples:
            of_processes = (value for kind in kinds for value in getattr(one, kind))
            writer.writerow([*(getattr(one, name) for name in plain), *of_processes])


def draw(samples: Sequence[Sample], restarts: Sequence[tuple[float, str]], path: Path) -> None:
    """Draw memory, descriptors, lag and latency, one above the other, as a PNG."""
    import matplotlib as mpl  # takes a second: only who draws has to wait

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    minutes = [sample.at / 60 for sample in samples]
    figure, axes = plt.subplots(5, 1, figsize=(9, 11), sharex=True, layout="constrained")
    lines = (
        ("relay, MiB", (("anonymous", [s.relay.anonymous / 2**20 for s in samples]),
                        ("resident", [s.relay.resident / 2**20 for s in samples]))),
        ("MiB", (("change tables", [s.pipeline.anonymous / 2**20 for s in samples]),
                 ("Spark's Python", [s.spark.anonymous / 2**20 for s in samples]))),
        ("number", (("descriptors of the relay", [s.relay.descriptors for s in samples]),
                    ("threads of the relay", [s.relay.threads for s in samples]),
                    ("descriptors of the pipeline", [s.pipeline.descriptors for s in samples]))),
        ("lag, groups", (("slower replica", [s.lag for s in samples]),
                         ("reader", [s.reader_lag for s in samples]),
                         ("change tables", [s.pipeline_lag for s in samples]),
                         ("Spark", [s.spark_lag for s in samples]))),
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
    for axis in axes[-2:]:
        axis.set_yscale("symlog", linthresh=10)
    axes[-1].set_xlabel("minutes; dotted: a restart of one of the servers")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
