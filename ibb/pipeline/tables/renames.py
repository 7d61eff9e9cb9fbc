"""Tables that get each other's names by one statement."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from ibb.pipeline.ddl.cursor import UnclearError

from .row_changes import TableName

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .batch_work import BatchWork
    from .row_changes import Statement
    from .table_folders import TableFolders

Move: TypeAlias = tuple[TableName, TableName]  # of a table: the old name, and the new one


def moved(
    pairs: Sequence[Move], was_there: Callable[[TableName], bool] | None = None
) -> list[Move]:
    """
    Return which tables have other names, and which, behind *pairs* of names.

    Args:
        pairs: of an old and a new name, of which one comes after the other.
        was_there: whether a table had that name before; a pair whose old name nothing has when it
            is its turn is left out. None: each has one.

    Raises:
        UnclearError: two tables would have one name.
    """
    began: dict[TableName, TableName] = {}
    left: set[TableName] = set()
    for old, new in pairs:
        if was_there and old not in began and (old in left or not was_there(old)):
            continue
        if new in began:
            raise UnclearError(f"two tables get the name {new}")
        began[new] = began.pop(old, old)
        left.add(old)
    return [(old, new) for new, old in began.items() if old != new]


class Exchange:
    """
    Tables of which some get the names that others have still, each exactly once.

    Each waits in a folder of its own until all have left their names, and gets its place behind
    the statement there. So after a crash, whatever has which name, each table is where it was,
    without that place; or waits; or is where it goes, with that place, by which a batch that is
    replayed tells that its rows are of another table.

    Args:
        moves: the old and the new name of each table.
        folders: of the tables.
        step: the statement.
        work: the batch under way.
    """

    def __init__(
        self,
        moves: Sequence[Move],
        folders: TableFolders,
        step: Statement,
        work: BatchWork,
    ) -> None:
        self._moves = moves
        self._folders = folders
        self._gtid = step.gtid
        self._work = work
        self._place = work.place_behind(step.gtid, step.time)

    def check(self) -> None:
        """
        Check that the tables are there, before anything is done to any of them.

        Raises:
            UnclearError: one is not, or was read anew since.
        """
        for old, new in self._moves:
            if self._is_here(old) or self._has_come(new) or self._folders.waits(new, self._gtid):
                continue
            if self._work.exists(old):
                raise UnclearError(
                    f"{new} gets the rows of {old}, which was read anew since: that asks for {new} "
                    "to be read anew, too, or all tables (--snapshot '*.*')"
                )
            raise UnclearError(f"{old} is no change table")

    def carry_out(self) -> None:
        """Bring all tables, or those that a crash left elsewhere, to their new names."""
        folders, work, gtid = self._folders, self._work, self._gtid
        for old, _ in self._moves:
            work.announce(old, gtid)
        come = [new for _, new in self._moves if self._has_come(new)]
        # From the end: a copy comes behind the table whose name it gets, which so leaves last, and
        # nobody has that name but for a moment.
        for old, new in reversed(self._moves):
            if self._is_here(old):
                if new in come or folders.waits(new, gtid):
                    folders.put_aside(old, str(gtid))  # the batch, replayed, has made it again
                else:
                    folders.let_wait(old, new, gtid)
            if new in come:
                folders.put_waiting_aside(new, gtid)  # what has come was read anew, behind a crash
            else:
                folders.open_waiting(new, gtid).advance(self._place)
        for _, new in reversed(self._moves):
            if new not in come:
                folders.put_aside(new, str(gtid))
                folders.end_wait(new, gtid)
        for name in {name for move in self._moves for name in move}:
            work.forget(name)
        for _, new in self._moves:
            if new in come:
                work.open(new)
            else:
                work.arrived(new, self._place)

    def _is_here(self, old: TableName) -> bool:
        """Whether the table with the name *old* is the one that had it before the statement."""
        return self._work.open(old).exists and not self._work.is_applied(old, self._gtid)

    def _has_come(self, new: TableName) -> bool:
        return self._work.exists(new) and self._work.is_applied(new, self._gtid)
