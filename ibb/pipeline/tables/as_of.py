"""
A change table as it was behind a group: the last version of it before, and what the binlog adds.

A version of a table is one of batches, between which there are groups. They are applied again to
a copy of the version, by what applied them to the table, so that the rows are those right behind
the group that is asked for.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow.parquet as pq

from .change_stream import read_batches
from .errors import PipelineError
from .lake import Lake
from .ledger import Ledger
from .place import Place, covers, is_behind
from .row_changes import Statement
from .stored_schemas import StoredSchemas

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from ibb.protocol.gtid import GtidPosition

    from .change_target import KeptTable, Version
    from .config import PipelineConfig
    from .row_changes import MicroBatch, TableName

ROW_GROUP_ROWS: Final = 65_536  # of a Parquet file


class AsOf(NamedTuple):
    """
    What was written.

    Attributes:
        rows: how many.
        version: the position of the table's version that it began with.
        groups: how many were read behind that.
    """

    rows: int
    version: GtidPosition
    groups: int


def write_as_of(config: PipelineConfig, name: TableName, position: GtidPosition, path: str) -> AsOf:
    """
    Write the table *name* into a Parquet file, as it was right behind a group.

    Args:
        config: of the pipeline.
        name: of the table, as it is now.
        position: one GTID, or several: the last of them in the binlog counts.
        path: of the file.

    Raises:
        PipelineError: the table was not there then, or is not so far, or what was between cannot
            be followed, or files of that version were removed.
        SqlError, TooOld, FormatError: groups that are needed are not in the binlog any more.
    """
    lake = Lake(config)
    ledger = Ledger.load(lake.state)
    if ledger is None or not len(position) or not covers(ledger.place.position, position):
        at = "nowhere" if ledger is None else ledger.place.position
        raise PipelineError(f"the tables are at {at}, and are asked for as of '{position}'")
    if ledger.traits.lower_case:
        config, name = config.in_lower_case(), name.lower()
    target = lake.open(name)
    number, begin, _, made_next = _version(target, position)
    rows = _rows_of(target, number, begin)
    if begin == position:
        return AsOf(write_rows(target.schema_at(number), rows, path), begin, 0)
    with tempfile.TemporaryDirectory(prefix="ibb-as-of-") as folder:
        only = (escape(str(name)),)
        copy = replace(config, target=folder, storage={}, include=only, exclude=(), history=())
        scratch = Lake(copy)
        made, place = scratch.open(name), Place(begin)
        made.fill(target.schema_at(number), target.key_at(number), rows, place)
        known = replace(
            ledger.copy(),
            place=place,
            tables={name: place},
            ahead=set(),
            going={},
            shapes={},
            histories=None,
            mark=ledger.mark._replace(offset=0),  # the file may be it; the place is another
        )
        applier, schemas = scratch.applier(known), StoredSchemas(copy, scratch)
        groups = 0
        for batch in read_batches(copy, known, schemas.of, until=position):
            applier.apply(_without_first_statement(batch) if made_next else batch)
            made_next = False
            schemas.forget()
            groups += len(batch.groups)
        made = scratch.open(name)
        if not made.exists:
            raise PipelineError(f"{name}: there was no such table behind '{position}'")
        return AsOf(write_rows(made.schema, made.batches(), path), begin, groups)


def _rows_of(target: KeptTable, number: int, begin: GtidPosition) -> Iterator[pa.Table]:
    try:
        yield from target.batches(number)
    except FileNotFoundError as error:
        raise PipelineError(
            f"{target.name}: files of its version of '{begin}' were removed (VACUUM): {error}"
        ) from error


def _version(target: KeptTable, position: GtidPosition) -> Version:
    """Return the last version before what is asked for, or at it."""
    oldest = None
    for version in target.versions():
        is_there = version.position == position and not version.made
        if is_there or any(is_behind(gtid, version.position) for gtid in position):
            if version.name != target.name:
                raise PipelineError(
                    f"{target.name} was named {version.name} behind '{version.position}': a table "
                    "is not followed through a change of its name"
                )
            return version
        oldest = version.position
    if oldest is None:
        raise PipelineError(f"{target.name}: there is no change table at {target.uri}")
    raise PipelineError(
        f"{target.name}: the oldest version that is left is of '{oldest}', not of before "
        f"'{position}'"
    )


def _without_first_statement(batch: MicroBatch) -> MicroBatch:
    """Leave out the statement of the first group, which makes the table: it is made already."""
    first = batch.groups[0][0]
    steps = (
        step for step in batch.steps if not (isinstance(step, Statement) and step.gtid == first)
    )
    return replace(batch, steps=tuple(steps))


def write_rows(schema: pa.Schema, batches: Iterator[pa.Table], path: str) -> int:
    """Write rows into a Parquet file, which is there whole or not at all; return their number."""
    rows, new = 0, Path(f"{path}.new")
    with pq.ParquetWriter(new, schema) as writer:
        for batch in batches:
            writer.write_table(batch.cast(schema), ROW_GROUP_ROWS)
            rows += batch.num_rows
    new.replace(path)
    return rows
