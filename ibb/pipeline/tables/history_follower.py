"""DDL of the stream, followed by history tables behind the change tables that they belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .statement_follower import StatementFollower

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ibb.pipeline.ddl.effects import CreateTable, Unclear
    from ibb.protocol.gtid import Gtid

    from .batch_work import BatchWork
    from .place import Place
    from .renames import Move
    from .row_changes import MicroBatch, Statement, TableName, Undecoded
    from .server_traits import ServerTraits
    from .table_folders import TableFolders
    from .table_shape import TableShape


class HistoryFollower(StatementFollower):
    """
    Follows statements that the change tables have followed already.

    A table that is made, or gets its name from one without a history, has none at first: that
    begins with the rows that the change table has behind the batch.

    Args:
        keys: keys chosen by configuration, which no statement changes.
        wants: whether the table's history is kept.
        folders: of the histories.
        traits: how the source is; where it compares names in lower case, those given here are.
    """

    def __init__(
        self,
        keys: Mapping[TableName, Sequence[str]],
        wants: Callable[[TableName], bool],
        folders: TableFolders,
        traits: ServerTraits,
    ) -> None:
        super().__init__(
            keys,
            wants,
            folders,
            _kept_elsewhere,
            _not_kept,
            traits,
        )

    def _unclear(self, effect: Unclear, step: Statement, work: BatchWork) -> None:
        """Do nothing: what matters has stopped at the change tables."""

    def _create(self, effect: CreateTable, step: Statement, work: BatchWork) -> None:
        if not effect.if_missing:
            self._drop(effect.table, step, work)

    def _drop(self, name: TableName, step: Statement, work: BatchWork) -> None:
        if work.knows(name):
            super()._drop(name, step, work)

    def _was_there(self, work: BatchWork, name: TableName) -> bool:
        return work.knows(name)

    def _rename(self, old: TableName, new: TableName, step: Statement, work: BatchWork) -> None:
        if work.knows(old):
            super()._rename(old, new, step, work)
        else:
            self._drop(new, step, work)

    def _sorted(
        self, moves: Sequence[Move], work: BatchWork
    ) -> tuple[list[Move], list[TableName], list[Move]]:
        """Return moves of histories that there are, and names of those that go."""
        known = [move for move in moves if work.knows(move[0])]
        kept = [move for move in known if self._wants(move[1])]
        gone = [old for old, new in known if not self._wants(new)]
        left = {old for old, _ in known}
        # Whoever has no history gets none by its name either.
        gone += [new for old, new in moves if old not in left and new not in left]
        return kept, gone, []


def _kept_elsewhere(
    _steps: Sequence[Undecoded], _batch: MicroBatch, known: Place | None
) -> Place | None:
    """Return *known*: the change tables' follower keeps what could not be decoded."""
    return known


def _not_kept(_name: TableName, _gtid: Gtid) -> TableShape | None:
    """Return None: no history is made like another."""
    return None
