"""A run's outcome as lines for people and as objects for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ibb.server.connections.socket_options import UNPACED

from .figures import Spread, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .figures import Figure
    from .suite import Measured, Report

TITLES = ("row", "figure", "unit", "ibb", "mariadbd", "least", "ratio", "most", "must reach", "")
BUSY_LOAD = 0.5  # processes that ran already when the measurement began


def number(amount: float | None) -> str:
    """Return a figure with three digits that count, without an exponent; a dash for none."""
    if amount is None:
        return "-"
    if amount == 0:
        return "0"
    size = abs(amount)
    digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3
    return f"{amount:,.{digits}f}" if size >= 0.001 else f"{amount:.1g}"


def cells(figure: Figure) -> tuple[str, ...]:
    """Return a line of the table."""
    ours, theirs = Spread.of(figure.ours), Spread.of(figure.theirs)
    ratios = Spread.of(figure.ratios())
    assert ours is not None
    return (
        figure.row,
        figure.name,
        figure.unit,
        number(ours.median),
        number(theirs and theirs.median),
        *(number(part) for part in (ratios or (None, None, None))),
        "" if figure.goal is None else str(figure.goal),
        "" if figure.verdict() is Verdict.NONE else str(figure.verdict()),
    )


def table_rows(report: Report) -> Iterator[tuple[str, ...]]:
    """Yield the lines of the table; a row's name stands in its first line only."""
    for measured in report.rows:
        if measured.left_out:
            yield (measured.row.name, measured.left_out, *[""] * (len(TITLES) - 2))
        for place, figure in enumerate(measured.figures):
            line = cells(figure)
            yield ("", *line[1:]) if place else line


def notes(report: Report) -> Iterator[str]:
    """Yield what a reader of the table must know."""
    machine, limits = report.machine, report.limits
    yield (
        f"{report.scale} scale, {report.rounds} rounds a row, medians; ratios are ibb / mariadbd, "
        "round by round"
    )
    yield (
        f"{machine.processors} x {machine.processor}; Python {machine.python}, {machine.kernels}; "
        f"{machine.mariadb or 'no mariadbd'}; {machine.reader} reader; "
        f"TCP by {machine.congestion_control or 'nothing that is known'}, ibb's by {UNPACED}"
    )
    yield (
        f"limits in this run: memcpy {limits.copy_gb:.1f} GB/s, "
        f"loopback {limits.loopback_gb:.1f} GB/s ({limits.loopback_processor:.2f} s/GB to send, "
        f"{limits.serve_processor:.2f} to read, check and send), "
        f"{limits.syncs:,.0f} fdatasync/s, {limits.store_gb * 1000:,.0f} MB/s into a log and a "
        f"file ({limits.store_processor:.2f} s/GB)"
    )
    if machine.load > BUSY_LOAD:
        yield f"the machine was busy (load {machine.load:.1f}) when this began: trust ratios alone"
    if machine.reader != "compiled":
        yield "no C compiler: the interpreted reader is what limits, not the servers"


def as_object(report: Report) -> dict[str, Any]:
    """Return the whole outcome for JSON: samples of each round, ratios, goals, verdicts."""
    return {
        "scale": report.scale,
        "rounds": report.rounds,
        "machine": asdict(report.machine),
        "limits": asdict(report.limits),
        "rows": [_row_object(measured) for measured in report.rows],
    }


def _row_object(measured: Measured) -> dict[str, Any]:
    row = measured.row
    return {
        "row": row.name,
        "about": row.about,
        "state": row.state,
        "left_out": measured.left_out or None,
        "figures": [_figure_object(figure) for figure in measured.figures],
    }


def _figure_object(figure: Figure) -> dict[str, Any]:
    ratios = Spread.of(figure.ratios())
    return {
        "name": figure.name,
        "unit": figure.unit,
        "ibb": figure.ours,
        "mariadbd": figure.theirs or None,
        "ratio": None if ratios is None else ratios._asdict(),
        "goal": None if figure.goal is None else asdict(figure.goal),
        "verdict": str(figure.verdict()),
    }
