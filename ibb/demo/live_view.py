"""Three bars on a terminal, one line a second elsewhere: how far each place has come."""

import time
from collections.abc import Mapping
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

LINE_SECONDS = 1.0


class LiveView:
    """
    Shows how many of *total* event groups each of *places* has.

    Args:
        console: where to; whether it is a terminal decides the form.
        places: their names, in the order in which the groups pass them.
        total: groups that each will have in the end.
    """

    def __init__(self, console: Console, places: tuple[str, ...], total: int) -> None:
        self._console = console
        self._begun = self._shown = time.monotonic()
        self._progress = Progress(
            TextColumn("{task.description:>8}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("groups"),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {
            place: self._progress.add_task(place, total=total) for place in places
        }

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def show(self, groups: Mapping[str, int], *, last: bool = False) -> None:
        """Show the number of *groups* by place; plain lines only once a second, and the *last*."""
        for place, number in groups.items():
            self._progress.update(self._tasks[place], completed=number)
        now = time.monotonic()
        if not self._console.is_terminal and (last or now - self._shown >= LINE_SECONDS):
            self._shown = now
            numbers = "   ".join(f"{place} {number}" for place, number in groups.items())
            self._console.print(f"{now - self._begun:5.1f} s   {numbers}", highlight=False)
