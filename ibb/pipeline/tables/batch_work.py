"""The tables that one micro-batch touches, and what each of them has of it already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ibb.protocol.gtid import GtidPosition

from .errors import PipelineError
from .generated import with_generated
from .key_values import check_changed_keys
from .place import Place, covers, is_behind
from .replay import check_replay, furthest
from .row_changes import Changed, Statement, Undecoded
from .row_merge import check_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ibb.protocol.gtid import Gtid

    from .change_target import ChangeTarget
    from .ledger import Ledger
    from .row_changes import GroupRun, MicroBatch, RowChanges, TableName
    from .row_merge import MergeBuilder
    from .table_shape import TableShape


class OtherSteps(Protocol):
    """Takes the steps of a batch that are not rows."""

    def making(self, steps: Iterable[object]) -> set[TableName]:
        """Return the tables that statements among *steps* create."""

    def statement(self, step: Statement, work: BatchWork) -> None:
        """Follow a statement, after the rows before it were written where that matters."""

    def keeps_key(self, name: TableName) -> bool:
        """Whether the table's key was chosen by configuration."""

    def undecoded(
        self, steps: Sequence[Undecoded], batch: MicroBatch, known: Place | None
    ) -> Place | None:
        """
        Keep what could not be decoded, or stop.

        Args:
            steps: all of *batch*.
            batch: under way.
            known: how far such is kept, if nothing of *batch* is there.

        Returns:
            How far it is kept now, if nothing behind *batch* is.
        """


@dataclass
class _Touched:
    target: ChangeTarget[Any]
    has: Place | None  # what it has of the batch; None: nothing
    builder: MergeBuilder[Any] | None = None


class BatchWork:
    """
    One batch under way.

    Args:
        batch: what is applied.
        ledger: where the pipeline is; its entries of tables are brought forward.
        open_target: opens the table of that name, whether it exists or not.
        wants: whether the table is one of the pipeline's.
        others: takes what is not rows.
        announced: stores a table that is about to go, and the group it goes by, before it does.
    """

    def __init__(
        self,
        batch: MicroBatch,
        ledger: Ledger,
        open_target: Callable[[TableName], ChangeTarget[Any]],
        wants: Callable[[TableName], bool],
        others: OtherSteps,
        announced: Callable[[TableName, Gtid], None],
    ) -> None:
        self._batch = batch
        self._ledger = ledger
        self._open_target = open_target
        self._wants = wants
        self._others = others
        self._touched: dict[TableName, _Touched] = {}
        self._seen = Place(ledger.place.position.copy(), ledger.place.time)
        self._follows = batch.start == ledger.place.position
        self._next = 0  # of the batch's groups: the first that is not in `_seen`
        self._rows = 0
        self._letters: list[Undecoded] = []
        self._announced = announced
        self._making = others.making(batch.steps)

    def wants(self, name: TableName) -> bool:
        """Whether the table is one of the pipeline's."""
        return self._wants(name)

    def take(self, step: Changed | Statement | Undecoded) -> None:
        """
        Apply the next step.

        Raises:
            PipelineError: it does not fit the tables.
        """
        if isinstance(step, Changed):
            if self._wants(step.name):
                self._add(step.name, step.changes)
            return
        self._see_before(step.gtid)
        done = not self._follows and not is_behind(step.gtid, self._ledger.place.position)
        if not done and isinstance(step, Statement):
            self._others.statement(step, self)
        elif not done and isinstance(step, Undecoded):
            self._letters.append(step)

    def open(self, name: TableName) -> ChangeTarget[Any]:
        """Return the table *name*, which has all rows that came before."""
        self._flush(name, self._seen)
        return self._table(name).target

    def exists(self, name: TableName) -> bool:
        """Whether there is a table *name*, whatever it holds."""
        return self._open_target(name).exists

    def is_applied(self, name: TableName, gtid: Gtid) -> bool:
        """Whether the table *name* has the group *gtid* of this batch already."""
        has = self._table(name).has
        return has is not None and not is_behind(gtid, has.position)

    @property
    def place_before(self) -> Place:
        """The place of a table that has everything before the statement that is followed."""
        return self._seen

    def place_behind(self, gtid: Gtid, time: int) -> Place:
        """Return the place of a table that has everything up to the group *gtid* of this batch."""
        return Place(furthest(self._seen.position, _position(gtid)), max(time, self._seen.time))

    def done(self, name: TableName, place: Place) -> None:
        """Take note that the table *name* was brought to *place*."""
        touched = self._table(name)
        if touched.has is not None:
            touched.has = place
        self._ledger.left_at(name, place, ahead=touched.has is not None)

    def truncate(self, name: TableName, at: GroupRun) -> None:
        """Take note that the group *at* emptied the table *name*."""
        touched = self._table(name)
        if not touched.target.exists and name in self._ledger.going:
            return  # it has gone before the crash that this batch follows
        if touched.builder is None:
            touched.builder = touched.target.builder()
        touched.builder.truncate(at)

    @property
    def shapes(self) -> dict[TableName, TableShape | None]:
        """What tables that were read anew are where the stream is; None: that is not known."""
        return self._ledger.shapes

    def knows(self, name: TableName) -> bool:
        """Whether there is such a table, or was before the batch that is under way."""
        return name in self._ledger.tables

    def known_tables(self, database: str) -> list[TableName]:
        """Return the pipeline's tables of *database*."""
        return [name for name in self._ledger.tables if name.database == database]

    def adopt(self, old: TableName, new: TableName) -> None:
        """Take note that the table *old* is about to be *new*, unless that is known already."""
        place = self._ledger.tables.get(old)
        if place is not None and new not in self._ledger.tables:
            self._ledger.left_at(new, place, ahead=old in self._ledger.ahead)

    def announce(self, name: TableName, gtid: Gtid) -> None:
        """Have it stored that *gtid* makes the table *name* go: after a crash it may be gone."""
        if self._ledger.going.get(name) != gtid:
            self._announced(name, gtid)
            self._ledger.going[name] = gtid

    def forget(self, name: TableName) -> None:
        """Take note that there is no table *name* any more, or that it is another one."""
        self._touched.pop(name, None)
        self._ledger.forget(name)

    def forget_open(self, name: TableName) -> None:
        """Open the table *name* anew: its folder is another one now."""
        self._touched.pop(name, None)

    def arrived(self, name: TableName, place: Place) -> None:
        """Take note that another table, which is at *place*, has got the name *name*."""
        self._ledger.left_at(name, place, ahead=False)

    def finish(self) -> tuple[int, int]:
        """Write what is left; return how many rows changed in how many tables."""
        if self._letters:
            self._ledger.letters = self._others.undecoded(
                self._letters, self._batch, self._ledger.letters
            )
        end = self._batch.end
        if not self._follows:
            end = furthest(end, self._ledger.place.position)
        for name in list(self._touched):
            self._flush(name, Place(end, max(self._batch.time, self._seen.time)))
        return self._rows, len(self._touched)

    def _add(self, name: TableName, changes: RowChanges) -> None:
        touched = self._table(name)
        going = self._ledger.going.get(name)
        if not touched.target.exists and going is not None:
            # It has gone before the crash that this batch follows.
            before = self._up_to(going)
            changes = changes.only(lambda gtid: gtid not in before)
            if not changes.ops:
                return
        if not touched.target.exists:
            raise PipelineError(
                f"{name}: the stream changes it at {changes.groups[0].gtid}, but there is no such "
                f"table at {touched.target.uri}: it needs a snapshot"
            )
        if not self._follows:
            held = self._ledger.place.position
            changes = changes.only(lambda gtid: is_behind(gtid, held))
        if touched.has is not None:
            has = touched.has.position
            changes = changes.only(lambda gtid: is_behind(gtid, has))
        if not changes.ops:
            return
        check_shape(str(name), touched.target, changes, keeps_key=self._others.keeps_key(name))
        changes = with_generated(str(name), touched.target.schema, changes)
        if changes.unsaid and changes.lacking(touched.target.schema):
            raise PipelineError(f"{name} at {changes.groups[0].gtid}: {changes.unsaid}")
        check_changed_keys(str(name), touched.target.key, changes)
        if touched.builder is None:
            touched.builder = touched.target.builder()
        touched.builder.add(changes)
        self._rows += len(changes.ops)

    def _table(self, name: TableName) -> _Touched:
        touched = self._touched.get(name)
        if touched is None:
            target = self._open_target(name)
            touched = self._touched[name] = _Touched(target, self._has(name, target))
        return touched

    def _has(self, name: TableName, target: ChangeTarget[Any]) -> Place | None:
        """Return what *target* has beyond the ledger, or None."""
        known, stored = self._ledger.tables.get(name), target.place
        if stored is None and (name in self._ledger.going or known is None):
            return None
        is_known = stored is not None and known is not None and stored.position == known.position
        if is_known and name not in self._ledger.ahead:
            return None
        if stored is None:
            raise PipelineError(
                f"{name}: the table at {target.uri}, which the ledger knows, is gone: "
                "it needs a snapshot"
            )
        if stored.position == self._ledger.place.position:
            return None  # where the batch begins: made anew by its first group, before a crash
        is_old = covers(self._ledger.place.position, stored.position)
        if is_old and known is None and name in self._making:
            return None  # of a table of that name that was left out: it is made again
        if is_old and name not in self._ledger.ahead:
            left = f"left it at {known.position}" if known else "has none of that name"
            raise PipelineError(
                f"{name}: the table at {target.uri} is at {stored.position}, and the pipeline at "
                f"{self._ledger.place.position} {left}: the table was put back from a backup or "
                "left out for a while, and needs a snapshot"
            )
        check_replay(self._batch, stored)
        return stored

    def _flush(self, name: TableName, place: Place) -> None:
        touched = self._table(name)
        if touched.builder is None:
            if touched.has is not None:  # so that the ledger says what the table says
                self._ledger.left_at(name, touched.has, ahead=True)
            return
        if touched.has is not None:
            place = Place(
                furthest(place.position, touched.has.position), max(place.time, touched.has.time)
            )
        touched.target.merge(touched.builder.merge(touched.target), place)
        touched.builder = None
        self.done(name, place)

    def _up_to(self, gtid: Gtid) -> set[Gtid]:
        """Return the batch's groups up to *gtid*, of all domains; all where that comes later."""
        groups = [known for known, _ in self._batch.groups]
        return set(groups[: groups.index(gtid) + 1] if gtid in groups else groups)

    def _see_before(self, gtid: Gtid) -> None:
        """Bring the place of tables without anything left to write up to the group *gtid*."""
        position, time = self._seen.position.copy(), self._seen.time
        for known, at in self._batch.groups[self._next :]:
            if known == gtid:
                break
            if self._follows or is_behind(known, position):
                position.set(known)
            time = max(time, at)
            self._next += 1
        self._seen = Place(position, time)


def _position(gtid: Gtid) -> GtidPosition:
    return GtidPosition([gtid])


def check_shape(
    name: str, target: ChangeTarget[Any], changes: RowChanges, *, keeps_key: bool
) -> None:
    """
    Check that rows are of the shape that *target* has: the last guard before a wrong row.

    Raises:
        PipelineError: columns or key are others.
    """
    at = f"{name} at {changes.groups[0].gtid}"
    if changes.columns is not None:
        check_columns(at, target.schema, changes.columns)
        missing = set(target.schema.names) - set(changes.columns.names)
        if missing:
            raise PipelineError(
                f"{at}: the stream lacks column {min(missing)}, which the change table has: "
                "take a new snapshot of the table"
            )
    # Without a primary key the binlog names the first unique one that has no NULL, if there is
    # any; rows that are told apart by all their columns are right whatever the key.
    if changes.key is not None and not keeps_key and target.key not in ([], list(changes.key)):
        raise PipelineError(
            f"{at}: the key is ({', '.join(changes.key)}) in the stream and "
            f"({', '.join(target.key)}) in the change table: take a new snapshot of the table"
        )
