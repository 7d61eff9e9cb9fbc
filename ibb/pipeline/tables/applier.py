"""Micro-batches applied to many tables, each change exactly once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .batch_work import BatchWork
from .place import Place
from .replay import check_replay, furthest, is_done

if TYPE_CHECKING:
    from collections.abc import Callable

    from ibb.protocol.gtid import Gtid

    from .batch_work import OtherSteps
    from .change_target import ChangeTarget
    from .histories import Histories
    from .ledger import Ledger
    from .row_changes import MicroBatch, TableName
    from .state_folder import StateFolder


class Applied(NamedTuple):
    """What one batch did: *rows* changes in *tables* tables; *skipped*: all was there before."""

    rows: int
    tables: int
    skipped: bool


class Applier:
    """
    Keeps many tables.

    Args:
        ledger: where the pipeline is; brought forward by each batch.
        folder: in which the ledger is stored.
        open_target: opens the table of that name, whether it exists or not.
        wants: whether the table is one of the pipeline's.
        others: takes what is not rows: statements, and what could not be decoded.
        histories: of these tables, if any is kept.
    """

    def __init__(
        self,
        ledger: Ledger,
        folder: StateFolder,
        open_target: Callable[[TableName], ChangeTarget[Any]],
        wants: Callable[[TableName], bool],
        others: OtherSteps,
        histories: Histories | None = None,
    ) -> None:
        self.ledger = ledger
        self._folder = folder
        self._open_target = open_target
        self._wants = wants
        self._others = others
        self._histories = histories

    def apply(self, batch: MicroBatch) -> Applied:
        """
        Apply *batch*, or what of it is not applied yet, and move the ledger behind it.

        Raises:
            PipelineError: it does not follow what is there, or does not fit the tables.
        """
        before = self.ledger.place
        if batch.start != before.position:
            check_replay(batch, before)
        if is_done(batch, before):
            return Applied(0, 0, skipped=True)
        after = self.ledger.copy()  # ours stays right if this fails
        work = BatchWork(batch, after, self._open_target, self._wants, self._others, self._announce)
        for step in batch.steps:
            work.take(step)
        rows, tables = work.finish()
        if self._histories is not None:
            self._histories.apply(batch, after.known_histories(), self._announce_history)
        follows = batch.start == before.position
        end = batch.end if follows else furthest(before.position, batch.end)
        after.move(Place(end, max(batch.time, before.time)))
        if follows:
            after.prepared = dict(batch.prepared)
            after.mark = batch.mark
        if self._histories is not None:
            self._histories.begin(after)
        after.store(self._folder)
        self.ledger = after
        return Applied(rows, tables, skipped=False)

    def _announce(self, name: TableName, gtid: Gtid) -> None:
        self.ledger.going[name] = gtid
        self.ledger.store(self._folder)

    def _announce_history(self, name: TableName, gtid: Gtid) -> None:
        self.ledger.known_histories().going[name] = gtid
        self.ledger.store(self._folder)
