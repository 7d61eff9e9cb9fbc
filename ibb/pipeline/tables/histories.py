"""History tables beside the change tables: the same batches, and the same ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from .batch_work import BatchWork
from .history_rows import HistoryRows
from .place import Place
from .replay import furthest
from .validity import GroupOrder, Moment

if TYPE_CHECKING:
    from collections.abc import Callable

    from ibb.protocol.gtid import Gtid

    from .change_target import KeptTable
    from .history_follower import HistoryFollower
    from .ledger import Ledger
    from .row_changes import GroupRun, MicroBatch, TableName


class OpenHistory(Protocol):
    """Opens the history of a table."""

    def __call__(self, name: TableName, moment: Callable[[GroupRun], Moment] = ...) -> HistoryRows:
        """Return that of *name*; *moment* says which moment a group under way is."""


class Histories:
    """
    The histories of a pipeline's tables.

    Args:
        open_history: opens one, whether it exists or not.
        open_table: opens the change table of that name, likewise.
        wants: whether the table's history is kept.
        put_aside: moves one out of the way, named by a position.
        follower: follows statements.
    """

    def __init__(
        self,
        open_history: OpenHistory,
        open_table: Callable[[TableName], KeptTable],
        wants: Callable[[TableName], bool],
        put_aside: Callable[[TableName, str], bool],
        follower: HistoryFollower,
    ) -> None:
        self._open_history = open_history
        self._open_table = open_table
        self._wants = wants
        self._put_aside = put_aside
        self._follower = follower

    def apply(
        self, batch: MicroBatch, known: Ledger, announced: Callable[[TableName, Gtid], None]
    ) -> None:
        """
        Apply *batch*, or what of it is not applied yet, to the histories that there are.

        Args:
            batch: what the change tables have already.
            known: of the histories; brought forward.
            announced: stores a history that is about to go, and the group it goes by, before.

        Raises:
            PipelineError: it does not follow what is there, or does not fit.
        """
        order = GroupOrder(batch)

        def opened(name: TableName) -> HistoryRows:
            return self._open_history(name, order.moment)

        def is_there(name: TableName) -> bool:
            return self._wants(name) and name in known.tables

        work = BatchWork(batch, known, opened, is_there, self._follower, announced)
        for step in batch.steps:
            work.take(step)
        work.finish()

    def begin(self, ledger: Ledger) -> None:
        """
        Begin the histories that are not there yet, with the rows that the change tables have.

        Args:
            ledger: of the pipeline, where the change tables are now.
        """
        known = ledger.known_histories()
        for name in ledger.tables:
            if name not in known.tables and self._wants(name):
                place = self._begin(name, ledger.place)
                known.left_at(name, place, ahead=place.position != ledger.place.position)

    def end_series(self, name: TableName, ledger: Ledger) -> None:
        """Take note that the change table was read anew: its history begins once more."""
        known = ledger.known_histories()
        if name not in known.tables:
            return
        history = self._open_history(name)
        if history.place is not None:
            # It has all up to here, and nothing of what comes until it begins.
            history.advance(_furthest(history.place, ledger.place))
        known.forget(name)

    def _begin(self, name: TableName, at: Place) -> Place:
        table, history = self._open_table(name), self._open_history(name)
        place = at if table.place is None else _furthest(at, table.place)
        held = history.place
        if held is not None and Moment.of(held).seq > Moment.of(place).seq:
            self._put_aside(name, str(place.position))  # of another history of the source
            history, held = self._open_history(name), None
        is_begun = held is not None and held.position == place.position
        if not (is_begun and (history.schema, history.key) == (table.schema, table.key)):
            history.fill(table.schema, table.key, table.batches(), place)
        return place


def _furthest(one: Place, other: Place) -> Place:
    return Place(furthest(one.position, other.position), max(one.time, other.time))
