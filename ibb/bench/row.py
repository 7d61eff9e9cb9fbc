"""A row of the suite: what it measures, and how a round of it is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from .figures import Sample
    from .workbench import Workbench

    Measure = Callable[[int], list[Sample]]
    OpenRow = Callable[[Workbench], AbstractContextManager[Measure]]


@dataclass(frozen=True)
class Row:
    """
    What is measured together.

    Args:
        name: as `--only` takes it.
        about: what it measures, in a sentence.
        state: whether caches are warm or cold, and which.
        open: sets everything up and gives the function that makes a round.
        needs_mariadb: there is nothing to measure without a mariadbd.
        needs: Python modules without which there is nothing to measure.
    """

    name: str
    about: str
    state: str
    open: OpenRow
    needs_mariadb: bool = False
    needs: tuple[str, ...] = ()
