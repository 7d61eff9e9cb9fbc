"""The rows of each mode, as Arrow batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .columns import Column, batches, chosen
from .event_rows import EVENT_COLUMNS, EventFilter, event_rows
from .group_rows import GROUP_COLUMNS, group_rows
from .read_plan import groups_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from .options import SourceOptions
    from .read_plan import ReadTask


def columns_of(options: SourceOptions) -> tuple[Column, ...]:
    """
    Return the columns that a read has.

    Raises:
        OptionError: there is no such column.
    """
    return chosen(
        GROUP_COLUMNS if options.mode == "groups" else EVENT_COLUMNS,
        options.columns,
    )


def rows_of(task: ReadTask, options: SourceOptions) -> Iterator[pa.RecordBatch]:
    """
    Yield the rows of one partition.

    Raises:
        FormatError: something is damaged, or is gone since the read was planned.
        DiskError: a file cannot be read.
    """
    columns, groups = columns_of(options), groups_of(task)
    if options.mode == "groups":
        yield from batches(columns, group_rows(task.path, groups, columns))
    else:
        wanted = EventFilter(options.databases, options.tables)
        limit = options.event_bytes_max
        yield from batches(columns, event_rows(groups, columns, wanted, limit))
