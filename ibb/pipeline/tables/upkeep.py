"""Small files of Delta tables put together, and files of old versions removed, between batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .row_changes import Changed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .config import CompactionConfig
    from .delta_commits import DeltaCommits
    from .lake import Lake
    from .row_changes import MicroBatch, TableName

DOCUMENT: Final = "vacuums.json"  # when each table is due, Unix seconds
VACUUM_SECONDS: Final = 24 * 3600  # between two of a table


class Upkeep:
    """
    Keeps the files of a pipeline's tables and of their histories in order.

    Nothing of it changes a row, or how far a table is; it may be left out, or done twice.

    Args:
        config: when.
        lake: where the tables are.
        keeps_history: of which tables there is a history.
        clock: Unix seconds.
        report: told what was done.
    """

    def __init__(
        self,
        config: CompactionConfig,
        lake: Lake,
        keeps_history: Callable[[TableName], bool],
        clock: Callable[[], float],
        report: Callable[[str], None],
    ) -> None:
        self._config = config
        self._lake = lake
        self._keeps_history = keeps_history
        self._clock = clock
        self._report = report

    def behind(self, batch: MicroBatch) -> None:
        """Put the small files of tables together which *batch* changed, where they are too many."""
        names = {step.name for step in batch.steps if isinstance(step, Changed)}
        for name in sorted(names):
            for label, table in self._tables(name):
                gone = table.compact(self._config.small_files, self._config.file_mib << 20)
                if gone:
                    self._report(f"compacted {label}: {gone} files")

    def vacuum(self, names: list[TableName]) -> None:
        """
        Remove the files of old versions of tables, once a day each.

        A table that was not met before waits for a day, and one whose log has not known for long
        enough which files went when waits until it does.
        """
        keep_hours = self._config.keep_hours
        if keep_hours is None:
            return
        state, now = self._lake.state, self._clock()
        known: dict[str, Any] = state.read(DOCUMENT) or {}
        due = {str(name): known.get(str(name)) for name in names}
        latest = now + max(VACUUM_SECONDS, keep_hours * 3600)  # later: of more hours, once wanted
        for name in sorted(names):
            at = due[str(name)]
            if at is None or not now < at <= latest:
                due[str(name)] = now + self._vacuum(name, keep_hours, is_new=at is None)
        if due != known:
            state.write(DOCUMENT, due)

    def _vacuum(self, name: TableName, keep_hours: int, *, is_new: bool) -> float:
        """Remove what may go of the table *name*; return after how many seconds to do so again."""
        pause = VACUUM_SECONDS
        for label, table in self._tables(name):
            if table.keep_known(keep_hours):
                pause = keep_hours * 3600
            elif not is_new:
                gone = table.vacuum(keep_hours)
                if gone:
                    self._report(f"removed old files of {label}: {gone}")
        return pause

    def _tables(self, name: TableName) -> Iterator[tuple[str, DeltaCommits]]:
        """Yield the table *name* and its history, as far as they exist."""
        table = self._lake.open_delta(name)
        if table.exists:
            yield str(name), table
        if self._keeps_history(name):
            history = self._lake.open_delta_history(name)
            if history.exists:
                yield f"history of {name}", history
