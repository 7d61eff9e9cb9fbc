"""Pictures of a run: ratios against what must be reached, and the curves of cost."""

from __future__ import annotations

import json
import re
import statistics
from typing import TYPE_CHECKING, Any

from .errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_DOTS_PER_INCH = 110
_OURS, _THEIRS, _GOAL = "#1b6ca8", "#c0791b", "#444444"


def draw(outcome: dict[str, Any], folder: Path) -> list[Path]:
    """
    Draw what an outcome, as `report.as_object` has it, gives; return the files.

    Args:
        outcome: of one run, perhaps read from its JSON.
        folder: for the PNG files; made if it is not there.

    Raises:
        BenchError: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl  # noqa: PLC0415 - only for who has the extra
    except ImportError:
        raise BenchError("plots need matplotlib: install ibb[bench]") from None
    mpl.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    plots = (("ratios", _ratios), ("readers", _readers), ("history", _history), ("files", _files))
    return [path for name, plot in plots if plot(outcome, path := folder / f"bench-{name}.png")]


def joined(runs: Iterable[Path]) -> dict[str, Any]:
    """
    Return one outcome with the rows of some runs; of a row that several have, the last one's.

    Args:
        runs: files with what `ibb bench --json` has printed.

    Raises:
        BenchError: a file has something else.
        OSError: one cannot be read.
    """
    rows: dict[str, Any] = {}
    for path in runs:
        try:
            outcome = json.loads(path.read_text())
            rows.update({row["row"]: row for row in outcome["rows"] if row["figures"]})
        except (ValueError, TypeError, LookupError) as error:
            text = f"{path} is not what `ibb bench --json` prints: {error!r}"
            raise BenchError(text) from error
    return {"rows": list(rows.values())}


def _figures(outcome: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for row in outcome["rows"]:
        for figure in row["figures"]:
            yield row["row"], figure


def _save(figure: Any, path: Path) -> bool:
    figure.tight_layout()
    figure.savefig(path, dpi=_DOTS_PER_INCH)
    from matplotlib import pyplot as plt  # noqa: PLC0415 - as above

    plt.close(figure)
    return True


def _axes(height: float, title: str) -> tuple[Any, Any]:
    from matplotlib import pyplot as plt  # noqa: PLC0415 - as above

    figure, axes = plt.subplots(figsize=(8, height))
    axes.set_title(title)
    axes.grid(visible=True, alpha=0.3)
    return figure, axes


def _ratios(outcome: dict[str, Any], path: Path) -> bool:
    """Draw a bar for each figure that has a goal against mariadbd, least to most as a whisker."""
    chosen = [
        (f"{row}: {one['name']}", one["ratio"], one["goal"])
        for row, one in _figures(outcome)
        if one["ratio"] and one["goal"] and one["goal"]["of_ratio"]
    ]
    if not chosen:
        return False
    figure, axes = _axes(1.2 + 0.5 * len(chosen), "ibb / mariadbd in the same run; | must reach")
    for place, (_, ratio, goal) in enumerate(chosen):
        spread = [[ratio["median"] - ratio["least"]], [ratio["most"] - ratio["median"]]]
        axes.barh(place, ratio["median"], xerr=spread, color=_OURS, alpha=0.85, height=0.6)
        axes.plot([goal["bound"]] * 2, [place - 0.4, place + 0.4], color=_GOAL, linewidth=3)
    axes.axvline(1, color=_THEIRS, linewidth=1)
    axes.set_xscale("log")
    axes.set_yticks(range(len(chosen)), [name for name, *_ in chosen])
    axes.invert_yaxis()
    return _save(figure, path)


def _curve(
    points: list[tuple[float, dict[str, Any]]], path: Path, title: str, *labels: str
) -> bool:
    if len(points) < 2:
        return False
    points.sort(key=lambda point: point[0])
    figure, axes = _axes(4, title)
    for side, colour in (("ibb", _OURS), ("mariadbd", _THEIRS)):
        drawn = [(at, statistics.median(one[side])) for at, one in points if one[side]]
        if drawn:
            axes.plot(*zip(*drawn, strict=True), "o-", color=colour, label=side)
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    axes.set_ylim(bottom=0)
    if len(labels) > 2:
        axes.set_xscale(labels[2])
    axes.legend()
    return _save(figure, path)


def _readers(outcome: dict[str, Any], path: Path) -> bool:
    points = [
        (float(found[1]), one)
        for row, one in _figures(outcome)
        if one["name"] == "speed" and (found := re.fullmatch(r"catch-up-(\d+)-bulk", row))
    ]
    return _curve(
        points, path, "readers that catch up at once, bulk rows", "readers", "MB/s in all", "log"
    )


def _history(outcome: dict[str, Any], path: Path) -> bool:
    points = [
        (float(one["name"].split()[0]), one)
        for row, one in _figures(outcome)
        if row == "history" and one["unit"] == "s"
    ]
    return _curve(points, path, "time to catch up", "GiB of history", "seconds")


def _files(outcome: dict[str, Any], path: Path) -> bool:
    points = [
        (float(one["name"].split()[0]), one)
        for row, one in _figures(outcome)
        if row == "seek-files" and one["name"].endswith("files, p50")
    ]
    return _curve(points, path, "time to the first group, by GTID", "files", "ms, p50", "log")
