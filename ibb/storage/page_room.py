"""Room for the pages of one reader that nobody else wants, used again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .large_memory import large_memory

if TYPE_CHECKING:
    from collections.abc import Collection

    from .page_runs import PageRun


class PageRoom:
    """
    Room for some runs of pages.

    Args:
        size: bytes of a run.
        runs: how many there is room for.
    """

    def __init__(self, size: int, runs: int) -> None:
        whole = large_memory(size * runs)
        self._parts = [whole[at : at + size] for at in range(0, size * runs, size)]

    def free(self, used: Collection[PageRun]) -> memoryview:
        """Return what none of the runs lies in that are in use, fewer than there is room for."""
        taken = {id(run.room) for run in used}
        return next(part for part in self._parts if id(part) not in taken)
