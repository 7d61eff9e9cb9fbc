"""What a history table says: a table as it was at a GTID, and whether its versions fit together."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from .as_of import write_rows
from .errors import PipelineError
from .history_shape import columns_at
from .lake import Lake
from .ledger import Ledger
from .place import covers
from .row_key import KEY_COLUMN
from .validity import FROM_SEQ, IS_CURRENT, TO_SEQ, summed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ibb.protocol.gtid import GtidPosition

    from .config import PipelineConfig
    from .history_rows import HistoryRows
    from .row_changes import TableName

CHECKED_VERSIONS: Final = 1_000_000  # whose borders are in memory at a time, on average
KEY_RANGES: Final = 1 << 16  # into which keys are cut, at most: by so many of their digits
KEY_DIGITS: Final = 4


def write_history_as_of(
    config: PipelineConfig, name: TableName, position: GtidPosition, path: str
) -> int:
    """
    Write the table *name* into a Parquet file as its history says it was; return its rows.

    Args:
        config: of the pipeline.
        name: of the table, as it is now.
        position: a GTID of every domain; sequence number 0: before the first group of it.
        path: of the file.

    Raises:
        PipelineError: the history does not tell how the table was then.
    """
    lake = Lake(config)
    ledger = Ledger.load(lake.state)
    if ledger is None or not covers(ledger.place.position, position):
        at = "nowhere" if ledger is None else ledger.place.position
        raise PipelineError(f"the tables are at {at}, and are asked for as of '{position}'")
    name = name.lower() if ledger.traits.lower_case else name
    for gtid in ledger.place.position:
        if position.get(gtid.domain) is None:
            raise PipelineError(
                f"'{position}' has no GTID of domain {gtid.domain}, which a history needs; "
                f"{gtid.domain}-{gtid.server}-0 is before all groups of it"
            )
    history = lake.open_history(name)
    if name not in ledger.known_histories().tables or not history.exists:
        raise PipelineError(f"{name}: there is no history of it: tables.history")
    seq = summed(position)
    for first, last in history.gaps:
        if first < seq < last:
            raise PipelineError(
                f"{name}: its history does not know '{position}': it begins, or the table was "
                "read anew, behind that"
            )
    columns = columns_at(history.full_schema, seq)
    fields = [history.full_schema.field(here).with_name(there) for here, there in columns.items()]
    rows = (
        rows.rename_columns(list(columns.values())) for rows in history.rows_at(seq, [*columns])
    )
    return write_rows(pa.schema(fields), rows, path)


def overlap(history: HistoryRows) -> str:
    """Return the first thing that is wrong with the borders of versions; empty: nothing is."""
    if not history.exists:
        return ""
    for first, last in _ranges(history.versions):
        table = history.borders(first, last).sort_by(
            [(KEY_COLUMN, "ascending"), (FROM_SEQ, "ascending")]
        )
        begin, end, current = (table.column(name) for name in (FROM_SEQ, TO_SEQ, IS_CURRENT))
        unlike = pc.not_equal(pc.is_null(end), current)
        backwards = pc.fill_null(pc.less_equal(end, begin), fill_value=False)
        for wrong, words in (
            (unlike, "is current and has ended, or neither"),
            (backwards, "ends before it begins"),
            (_overlapping(table), "goes on when the next begins"),
        ):
            found = table.filter(wrong)
            if found.num_rows:
                row = found.slice(0, 1).to_pylist()[0]
                return f"the version of {row[KEY_COLUMN]} since {row[FROM_SEQ]} {words}"
    return ""


def _overlapping(table: pa.Table) -> pa.Array:
    """Return for each version, in order, whether the next one of its key begins too early."""
    rows = table.num_rows
    if rows == 0:
        return pa.array([], pa.bool_())
    key, begin, end = (
        table.column(name).combine_chunks() for name in (KEY_COLUMN, FROM_SEQ, TO_SEQ)
    )
    same = pc.equal(key.slice(0, rows - 1), key.slice(1))
    late = pc.greater(end.slice(0, rows - 1), begin.slice(1))
    early = pc.and_(same, pc.fill_null(late, fill_value=True))
    return pa.concat_arrays([early, pa.array([False])])


def _ranges(versions: int) -> Iterator[tuple[str, str]]:
    """Yield the ranges of first digits of keys, so that each has few enough of the versions."""
    ranges = min(versions // CHECKED_VERSIONS + 1, KEY_RANGES)
    borders = [KEY_RANGES * number // ranges for number in range(ranges + 1)]
    for first, last in pairwise(borders):
        yield f"{first:0{KEY_DIGITS}x}", f"{last - 1:0{KEY_DIGITS}x}"
