"""The rows of each mode, as Arrow batches."""

from __future__ import annotations

from functools import partial
from itertools import starmap
from typing import TYPE_CHECKING, Final

from ibb.protocol.rows.row_stage import DELETE, INSERT, UPDATE

from .change_rows import CHANGE_COLUMNS, GROUP_COLUMN, CollectedRows, change_batch
from .columns import Column, batches, chosen
from .event_rows import EVENT_COLUMNS, EventFilter, event_rows
from .group_rows import GROUP_COLUMNS, group_rows
from .known_schemas import NOTHING_KNOWN
from .newest_map import newest_map
from .read_plan import groups_of
from .row_events import RowEvents
from .schema_sources import schemas_of
from .table_rows import NewRowsCheck, table_batch, table_columns, wanted_columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from ibb.protocol.gtid import GtidPosition

    from .event_groups import OpenGroups, ReadTask
    from .known_schemas import KnownSchemas
    from .options import SourceOptions

_COLUMNS: Final = {"groups": GROUP_COLUMNS, "events": EVENT_COLUMNS, "changes": CHANGE_COLUMNS}
_OPS: Final = {"insert": INSERT, "update": UPDATE, "delete": DELETE}


def columns_of(options: SourceOptions) -> tuple[Column, ...]:
    """
    Return the columns that a read has; those of a table are looked up in the history.

    Raises:
        OptionError: there is no such column, or nothing of the table in the history.
        FormatError, DiskError: a directory cannot be read.
        ServerRefused: a server is not there, or not to be read.
        SchemaMissing, SchemaMismatch: it is not known what the columns of the table are.
    """
    if options.table is None:
        known = _COLUMNS[options.mode]
        if options.columns and options.mode == "changes":
            known = (*known, GROUP_COLUMN)
        return chosen(known, options.columns)
    found = table_columns(
        newest_map(options, options.table), options.table, schemas_of(options), options.policy
    )
    return chosen(found, options.columns)


def rows_of(
    task: ReadTask,
    options: SourceOptions,
    columns: tuple[Column, ...],
    schemas: KnownSchemas = NOTHING_KNOWN,
    begun: GtidPosition | None = None,
) -> Iterator[pa.RecordBatch]:
    """
    Yield the rows of one partition.

    Args:
        task: the partition.
        options: of the read.
        columns: what Spark expects.
        schemas: what is known of tables besides what the binlog says.
        begun: of a stream of a table, where the history ended when it was started: what is behind
            must have its columns.

    Raises:
        FormatError: something is damaged, or is gone since the read was planned.
        DiskError: a file cannot be read.
        ValueRefused, SchemaMissing, SchemaMismatch: row changes cannot be decoded.
    """
    if options.mode == "groups":
        yield from batches(columns, group_rows(task.place, groups_of(task), columns))
    elif options.mode == "events":
        wanted = EventFilter(options.databases, options.tables)
        limit = options.event_bytes_max
        yield from batches(columns, event_rows(groups_of(task), columns, wanted, limit))
    else:
        yield from _changes(task, options, columns, schemas, begun)


def _changes(
    task: ReadTask,
    options: SourceOptions,
    columns: tuple[Column, ...],
    schemas: KnownSchemas,
    begun: GtidPosition | None,
) -> Iterator[pa.RecordBatch]:
    collected = CollectedRows(schemas, options.policy, lambda _: None, as_texts=True)
    if options.table is not None:
        check = None
        if begun is not None:
            check = NewRowsCheck(columns, begun, chosen=bool(options.columns))
        wanted = wanted_columns(columns)
        collected = CollectedRows(schemas, options.policy, wanted, check=check)
    annotated = options.table is None and any(column.name == "statement" for column in columns)
    with task.open() as opened:
        events = row_events(opened, options, annotated=annotated).all()
        # By a map, which does not hold what it was given while the result is sent.
        if options.table is None:
            yield from starmap(partial(change_batch, columns=columns), collected.batches(events))
        else:
            both = options.images == "both"
            made = partial(table_batch, columns=columns, both=both)
            yield from starmap(made, collected.batches(events))


def row_events(opened: OpenGroups, options: SourceOptions, *, annotated: bool = False) -> RowEvents:
    """
    Return what reads the rows events of a partition's groups, of the tables that are wanted.

    Args:
        opened: the partition.
        options: of the read.
        annotated: with the statements that changed the rows.
    """

    def wants(database: str, table: str) -> bool:
        """Tell whether a table is wanted; without a name, any of a database."""
        if options.table is not None:
            return database == options.table[0] and (not table or table == options.table[1])
        if options.databases and database not in options.databases:
            return False
        if not options.tables:
            return True
        if not table:
            return any(database == wanted for wanted, _ in options.tables)
        return (database, table) in options.tables

    return RowEvents(
        opened,
        wants,
        options.keeps,
        wanted_ops(options),
        allow_statements=options.allow_statements,
        annotated=annotated,
    )


def wanted_ops(options: SourceOptions) -> frozenset[int]:
    """Return the kinds of changes that are wanted, by the protocol's numbers; empty: all."""
    return frozenset(_OPS[name] for name in options.ops)
