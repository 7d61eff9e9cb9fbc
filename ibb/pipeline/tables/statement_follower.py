"""DDL of the stream, followed by the change tables, or a clear stop before the first wrong row."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from ibb.pipeline.ddl.cursor import UnclearError
from ibb.pipeline.ddl.effects import (
    AlterTable,
    CreateTable,
    DropDatabase,
    DropTables,
    RenameTables,
    TruncateTable,
    Unclear,
)
from ibb.pipeline.ddl.meant import as_meant
from ibb.pipeline.ddl.name_case import in_lower_case
from ibb.pipeline.ddl.statement import AS_STATEMENT, effect_of, spreads

from .errors import PipelineError
from .generated import check_key, generated_kind
from .renames import Exchange, moved
from .row_changes import GroupRun, Statement, TableName
from .shape import Reshape, column_field
from .storable import check_names
from .table_shape import TableShape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ibb.pipeline.ddl.effects import Effect
    from ibb.protocol.gtid import Gtid

    from .batch_work import BatchWork
    from .change_target import ChangeTarget
    from .place import Place
    from .renames import Move
    from .row_changes import MicroBatch, Undecoded
    from .server_traits import ServerTraits
    from .table_folders import TableFolders

SHOWN_CHARACTERS: Final = 200  # of a statement, in errors


class StatementFollower:
    """
    Follows statements.

    Args:
        keys: keys chosen by configuration, which no statement changes.
        wants: whether the table is one of the pipeline's.
        folders: of the tables.
        undecoded: takes what could not be decoded.
        shape_before: what a table was before a group, when it is further; None: not known.
        traits: how the source is; where it compares names in lower case, those given here are.
    """

    def __init__(
        self,
        keys: Mapping[TableName, Sequence[str]],
        wants: Callable[[TableName], bool],
        folders: TableFolders,
        undecoded: Callable[[Sequence[Undecoded], MicroBatch, Place | None], Place | None],
        shape_before: Callable[[TableName, Gtid], TableShape | None],
        traits: ServerTraits,
    ) -> None:
        self._keys = keys
        self._wants = wants
        self._folders = folders
        self._undecoded = undecoded
        self._shape_before = shape_before
        self._traits = traits

    def keeps_key(self, name: TableName) -> bool:
        """Whether the table's key was chosen by configuration."""
        return name in self._keys

    def undecoded(
        self, steps: Sequence[Undecoded], batch: MicroBatch, known: Place | None
    ) -> Place | None:
        """Take what could not be decoded of *batch*; return how far that is kept."""
        wanted = [step for step in steps if self._wants(step.name)]
        return self._undecoded(wanted, batch, known) if wanted else known

    def making(self, steps: Iterable[object]) -> set[TableName]:
        """Return the tables that statements among *steps* create."""
        effects = [self._effect(step) for step in steps if isinstance(step, Statement)]
        return {effect.table for effect in effects if isinstance(effect, CreateTable)}

    def statement(self, step: Statement, work: BatchWork) -> None:
        """
        Follow a statement.

        Raises:
            PipelineError: what it does to the pipeline's tables is not known for certain.
        """
        try:
            self._follow(self._effect(step), step, work)
        except UnclearError as error:
            raise _stop(step, str(error)) from error

    def _effect(self, step: Statement) -> Effect:
        effect = effect_of(
            step.sql,
            step.database,
            ansi_quotes=step.modes.ansi_quotes,
            error=step.error,
            uses_temporary=step.uses_temporary,
        )
        return in_lower_case(effect) if self._traits.lower_case else effect

    def _database(self, step: Statement) -> str:
        return step.database.lower() if self._traits.lower_case else step.database

    def _follow(self, effect: Effect, step: Statement, work: BatchWork) -> None:
        if isinstance(effect, AlterTable | CreateTable) and self._wants(effect.table):
            self._check_foreign_keys(effect.table, step, work)
        if isinstance(effect, AlterTable):
            self._alter(effect, step, work)
        elif isinstance(effect, CreateTable):
            if self._wants(effect.table):
                self._create(effect, step, work)
        elif isinstance(effect, DropTables):
            for name in effect.tables:
                self._drop(name, step, work)
        elif isinstance(effect, DropDatabase):
            for name in work.known_tables(effect.database):
                self._drop(name, step, work)
        elif isinstance(effect, RenameTables):
            if any(self._wants(name) for pair in effect.pairs for name in pair):
                was_there = partial(self._was_there, work) if effect.if_there else None
                self._rename_all(moved(effect.pairs, was_there), step, work)
        elif isinstance(effect, TruncateTable):
            if self._wants(effect.table) and not work.is_applied(effect.table, step.gtid):
                work.truncate(effect.table, _run(step))
        elif isinstance(effect, Unclear):
            self._unclear(effect, step, work)

    def _check_foreign_keys(self, name: TableName, step: Statement, work: BatchWork) -> None:
        if spreads(step.sql, ansi_quotes=step.modes.ansi_quotes) and not work.is_applied(
            name, step.gtid
        ):
            raise UnclearError("a foreign key changes rows here without a trace in the binlog")

    def _unclear(self, effect: Unclear, step: Statement, work: BatchWork) -> None:
        databases = {name.database for name in effect.tables} | {self._database(step)}
        known = [name for database in databases for name in work.known_tables(database)]
        touched = known if effect.is_any else [name for name in known if name in effect.tables]
        if not all(work.is_applied(name, step.gtid) for name in touched):
            raise UnclearError(effect.reason)
        for name in touched:
            if name in work.shapes:
                work.shapes[name] = None

    def _alter(self, effect: AlterTable, step: Statement, work: BatchWork) -> None:
        name = effect.table
        if self._wants(name) and effect.effects:
            target = work.open(name)
            if target.exists and not work.is_applied(name, step.gtid):
                self._reshape(target, effect, step, work)
            elif (shape := work.shapes.get(name)) is not None:
                work.shapes[name] = self._reshaped(shape, effect)
        if effect.new_name is not None and effect.new_name != name:
            self._rename(name, effect.new_name, step, work)

    def _reshape(
        self, target: ChangeTarget[Any], effect: AlterTable, step: Statement, work: BatchWork
    ) -> None:
        name = effect.table
        has_rows = any(batch.num_rows for batch in target.batches())
        reshape = Reshape(
            target.schema,
            target.key,
            effect.effects,
            has_rows=has_rows,
            keeps_key=name in self._keys,
            modes=step.modes,
            logs_generated=self._traits.logs_generated,
        )
        place = work.place_behind(step.gtid, step.time)
        reshape.check(target.batches())
        target.reshape(reshape, _run(step), place)
        work.done(name, place)

    def _create(self, effect: CreateTable, step: Statement, work: BatchWork) -> None:
        name = effect.table
        known = name in work.known_tables(name.database)
        target = work.open(name)
        if work.is_applied(name, step.gtid):
            if name in work.shapes and not (effect.if_missing and work.shapes[name]):
                work.shapes[name] = self._known_shape(effect, step, work)
            return
        if known and effect.if_missing:
            return
        schema, key = self._shape(effect, step, work)
        # Rows of its own group follow (CREATE TABLE SELECT), so it has nothing of that yet.
        target.create(schema, list(key), work.place_before)
        work.done(name, work.place_before)

    def _known_shape(
        self, effect: CreateTable, step: Statement, work: BatchWork
    ) -> TableShape | None:
        try:
            return self._shape(effect, step, work)
        except UnclearError:
            return None

    def _shape(self, effect: CreateTable, step: Statement, work: BatchWork) -> TableShape:
        key: Sequence[str]
        if effect.fills:
            raise UnclearError(AS_STATEMENT)
        if effect.like is not None:
            schema, key = self._shape_of_model(effect.like, step, work)
        else:
            schema, key = self._defined_shape(effect, step)
        key = self._keys.get(effect.table, key)
        unknown = [column for column in key if column not in schema.names]
        if unknown:
            raise UnclearError(f"tables.keys.{effect.table}: there is no column {unknown[0]}")
        check_key(schema, key)
        return TableShape(schema, tuple(key))

    def _defined_shape(self, effect: CreateTable, step: Statement) -> TableShape:
        fields = [
            column_field(
                column.name,
                column.type_text,
                column.charset,
                generated_kind(column.generated, logged=self._traits.logs_generated),
            )
            for column in (as_meant(column, step.modes) for column in effect.columns)
        ]
        check_names(field.name for field in fields)
        names = {field.name.lower(): field.name for field in fields}
        return TableShape(pa.schema(fields), tuple(names[one.lower()] for one in effect.key))

    def _shape_of_model(self, name: TableName, step: Statement, work: BatchWork) -> TableShape:
        if not self._wants(name):
            raise UnclearError(f"it is made like {name}, which is no change table")
        shape = self._shape_now(name, step, work)
        if shape is None:
            raise UnclearError(f"it is made like {name}, whose columns then are not known")
        return shape

    def _shape_now(self, name: TableName, step: Statement, work: BatchWork) -> TableShape | None:
        """Return what *name* is where the stream is: the table itself may be further."""
        target = work.open(name)
        if target.exists and not work.is_applied(name, step.gtid):
            return TableShape(target.schema, tuple(target.key))
        if name in work.shapes:
            return work.shapes[name]
        return self._shape_before(name, step.gtid)

    def _reshaped(self, shape: TableShape, effect: AlterTable) -> TableShape | None:
        try:
            after = Reshape(
                shape.schema,
                shape.key,
                effect.effects,
                has_rows=False,
                keeps_key=effect.table in self._keys,
                logs_generated=self._traits.logs_generated,
            )
        except UnclearError:
            return None
        return TableShape(after.schema, tuple(after.key))

    def _drop(self, name: TableName, step: Statement, work: BatchWork) -> None:
        if not self._wants(name):
            return
        target = work.open(name)
        if target.exists and not work.is_applied(name, step.gtid):
            work.announce(name, step.gtid)
            self._folders.put_aside(name, str(step.gtid))
            work.forget(name)
        elif not target.exists:
            work.forget(name)
        elif name in work.shapes:
            work.shapes[name] = None

    def _was_there(self, work: BatchWork, name: TableName) -> bool:
        """Whether a table may have had that name before the statement."""
        return not self._wants(name) or work.knows(name)

    def _rename_all(self, moves: Sequence[Move], step: Statement, work: BatchWork) -> None:
        names = [name for move in moves for name in move]
        if len(set(names)) == len(names):
            for old, new in moves:
                self._rename(old, new, step, work)
            return
        was_there = partial(self._was_there, work)
        known = [move for move in moves if any(map(was_there, move))]  # the others are of views
        kept, gone, unknown = self._sorted(known, work)
        exchange = Exchange(kept, self._folders, step, work)
        exchange.check()
        for old, new in unknown:
            self._check_known(old, new, step, work)
        shapes = {new: self._shape_now(old, step, work) for old, new in kept if new in work.shapes}
        for name in gone:
            self._drop(name, step, work)
        exchange.carry_out()
        for name, shape in shapes.items():
            if work.is_applied(name, step.gtid):
                work.shapes[name] = shape
        for _, new in unknown:
            _take_as_it_is(new, work)

    def _sorted(
        self,
        moves: Sequence[Move],
        work: BatchWork,  # noqa: ARG002 - histories ask it
    ) -> tuple[list[Move], list[TableName], list[Move]]:
        """Return moves to follow, names of tables that go, and moves of tables not known here."""
        kept = [(old, new) for old, new in moves if self._wants(old) and self._wants(new)]
        gone = [old for old, new in moves if self._wants(old) and not self._wants(new)]
        unknown = [(old, new) for old, new in moves if self._wants(new) and not self._wants(old)]
        return kept, gone, unknown

    def _check_known(
        self, old: TableName, new: TableName, step: Statement, work: BatchWork
    ) -> None:
        """Check that *new*, which gets rows that nobody kept, was read anew since."""
        if not (work.exists(new) and work.is_applied(new, step.gtid)):
            raise UnclearError(
                f"{new} gets the rows of {old}, which is no change table (tables.include must name "
                "it from the beginning: of online schema changes also the tables that they copy "
                f'into, as "{new.database}._{new.table}_*")'
            )

    def _rename(self, old: TableName, new: TableName, step: Statement, work: BatchWork) -> None:
        if not self._wants(new):
            self._drop(old, step, work)
            return
        if not self._wants(old):
            self._check_known(old, new, step, work)
            _take_as_it_is(new, work)
            return
        shape = self._shape_now(old, step, work)
        if work.open(old).exists:
            # After a crash the batch makes the old table again, which has become the new one.
            is_there = work.exists(new)
            is_ahead = old in work.shapes and work.is_applied(old, step.gtid)
            if is_ahead and not (is_there and work.is_applied(new, step.gtid)):
                raise UnclearError(f"{new} gets the rows of {old}, which was read anew since")
            work.announce(old, step.gtid)
            if is_there:
                work.adopt(old, new)
            if is_there and work.is_applied(new, step.gtid):
                self._folders.put_aside(old, str(step.gtid))
            else:
                if is_there:
                    self._folders.put_aside(new, str(step.gtid))
                self._folders.move(old, new)
        work.adopt(old, new)
        work.forget(old)
        work.forget_open(new)
        target = work.open(new)
        if not target.exists:
            return  # of a view; were it a table, its first row would stop
        if not work.is_applied(new, step.gtid):
            place = work.place_behind(step.gtid, step.time)
            target.advance(place)
            work.done(new, place)
        elif new in work.shapes:
            work.shapes[new] = shape


def _take_as_it_is(new: TableName, work: BatchWork) -> None:
    """Take note of a table that was read anew and is of other origin than what had its name."""
    work.open(new)
    work.shapes[new] = None


def _run(step: Statement) -> GroupRun:
    return GroupRun(step.gtid, step.time, 0)


def _stop(step: Statement, reason: str) -> PipelineError:
    sql = " ".join(step.sql.split())[:SHOWN_CHARACTERS]
    return PipelineError(
        f"{step.gtid}: {reason}. It cannot be followed, and nothing behind it was applied: "
        f"{sql}. Take a new snapshot of the table"
    )
