"""
What the first change of each row in a while says of the table before it: the row is there, or not.

A row that an UPDATE or DELETE names must be in the table, and the key of an INSERT, or one that an
UPDATE brings, must not. Where that does not hold, rows of the source have become one here, or
changed there without the binlog: what the table would be after the merge is not what the source is.
"""

from __future__ import annotations

from bisect import bisect_right
from enum import Enum
from typing import TYPE_CHECKING

from .errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, KeysView, Sequence

    from .row_changes import GroupRun, RowChanges


class Trust(Enum):
    """What is known of the rows that a table has."""

    ALL = "all"  # they are those of the source
    SOME = "some"  # it may lack rows, and has none too many
    NONE = "none"


class FirstTouches:
    """
    The keys that must be in the table, each by the number of the change that says so.

    Args:
        table: its name, for errors.
        key: names of its key columns, likewise.
        came: says by which change a key came that must not be there, if that is known.
        trust: what is known of the table.
    """

    def __init__(
        self,
        table: str,
        key: Sequence[str],
        came: Callable[[str], int | None],
        trust: Trust = Trust.ALL,
    ) -> None:
        self.trust = trust
        self._table = table
        self._key = ", ".join(key)
        self._there: dict[str, int] = {}
        self._came = came
        self._runs: list[GroupRun] = []
        self._firsts: list[int] = []  # the number of each run's first change
        self._changes = 0

    @property
    def there(self) -> KeysView[str]:
        """The keys that must be in the table."""
        return self._there.keys()

    def begin(self, changes: RowChanges) -> int:
        """Take note of whose *changes* come; return the number of the first."""
        first = self._changes
        for run in changes.groups:
            self._runs.append(run)
            self._firsts.append(self._changes)
            self._changes += run.rows
        return first

    def needs(self, key: str, change: int) -> None:
        """Take note that *change*, the first one of the row *key*, found it in the table."""
        self._there[key] = change

    def clear(self) -> None:
        """Forget what must be in the table: it was emptied."""
        self._there.clear()

    def missing(self, change: int) -> PipelineError:
        """Return what stops a *change* whose row is not there."""
        return PipelineError(
            f"{self._table} at {self._gtid(change)}: the stream changes a row that is not in the "
            f"change table, by its key ({self._key}), {self._batch}. The table is not as the "
            "source was: rows changed there that are not in the binlog (sql_log_bin), or the key "
            "that tables.keys names is not unique. Nothing of it was applied to the table: take a "
            f"new snapshot, --snapshot '{self._table}'"
        )

    def taken(self, change: int | None) -> PipelineError:
        """Return what stops a *change*, None: it is not known which, whose key is there already."""
        where = self._table if change is None else f"{self._table} at {self._gtid(change)}"
        return PipelineError(
            f"{where}: the stream brings a row whose key ({self._key}) the change table has "
            f"already, {self._batch}. The key that tables.keys names is not unique, or values that "
            "differ at the source are one here, or rows went there that are not in the binlog "
            "(sql_log_bin). Nothing of it was applied to the table: name a key that is unique, or "
            f"none, where it is of tables.keys; then take a new snapshot, "
            f"--snapshot '{self._table}'"
        )

    def check(self, source: Collection[str], found: Collection[str]) -> None:
        """
        Check which keys of a merge the table has.

        Args:
            source: the keys of the merge.
            found: those of them that the table has.

        Raises:
            PipelineError: one is missing, or is there and must not be.
        """
        for key in source:
            is_there, must_be = key in found, key in self._there
            if is_there and not must_be:
                raise self.error(key)
            if must_be and not is_there and self.trust is Trust.ALL:
                raise self.error(key)

    def error(self, key: str) -> PipelineError:
        """Return what stops the merge where *key* is missing, or is there and must not be."""
        if key in self._there:
            return self.missing(self._there[key])
        return self.taken(self._came(key))

    def _gtid(self, change: int) -> str:
        return str(self._runs[bisect_right(self._firsts, change) - 1].gtid)

    @property
    def _batch(self) -> str:
        first, last = self._runs[0].gtid, self._runs[-1].gtid
        return f"in the batch of {first}" + (f" to {last}" if last != first else "")
