"""Aligned columns of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ROWS_MEASURED_MAX = 1000  # before the first is printed; later rows may stick out


def table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield a title line, coloured on terminals, and a line for each row; numbers to the right."""
    iterator = iter(rows)
    measured: list[tuple[str, ...]] = []
    numeric = [True] * len(titles)
    for row in iterator:
        numeric = [
            known and (cell is None or isinstance(cell, int))
            for known, cell in zip(numeric, row, strict=True)
        ]
        measured.append(_texts(row))
        if len(measured) == ROWS_MEASURED_MAX:
            break
    widths = [max(map(len, column)) for column in zip(titles, *measured, strict=True)]
    yield click.style(_line(titles, widths, numeric), bold=True)
    for texts in measured:
        yield _line(texts, widths, numeric)
    for row in iterator:
        yield _line(_texts(row), widths, numeric)


def _texts(row: Sequence[object]) -> tuple[str, ...]:
    return tuple("-" if cell is None else str(cell) for cell in row)


def _line(texts: Sequence[str], widths: list[int], numeric: list[bool]) -> str:
    cells = (
        text.rjust(width) if right else text.ljust(width)
        for text, width, right in zip(texts, widths, numeric, strict=True)
    )
    return "  ".join(cells).rstrip()
