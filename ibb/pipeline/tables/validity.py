"""
When a version of a row was the row: columns of ours in a history table.

A version is there from the group that made it up to the group that ended it, the latter not
included. Groups are told apart by the sum of the sequence numbers of the GTID position behind
them: with one domain that is the sequence number, and with several it rises with each group too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from .errors import PipelineError
from .place import STORED_SEQ_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ibb.protocol.gtid import Gtid, GtidPosition

    from .place import Place
    from .row_changes import GroupRun, MicroBatch

IS_CURRENT: Final = "_ibb_is_current"
FROM_SEQ: Final = "_ibb_valid_from_seq"
TO_SEQ: Final = "_ibb_valid_to_seq"
FROM_NAMES: Final = ("_ibb_valid_from", "_ibb_valid_from_gtid", FROM_SEQ)
TO_NAMES: Final = ("_ibb_valid_to", "_ibb_valid_to_gtid", TO_SEQ)
_KINDS: Final = (pa.timestamp("us", "UTC"), pa.string(), pa.int64())
MOMENT_COLUMNS: Final = tuple(zip((*FROM_NAMES, *TO_NAMES), (*_KINDS, *_KINDS), strict=True))
VALIDITY: Final = pa.schema([*MOMENT_COLUMNS, (IS_CURRENT, pa.bool_())])

_MICROSECONDS: Final = 1_000_000  # in a second


class Moment(NamedTuple):
    """
    A group as the border of versions.

    Attributes:
        seq: the sum of the sequence numbers of the position behind it.
        gtid: its GTID; of a snapshot the position.
        time: of its commit, Unix seconds.
    """

    seq: int
    gtid: str
    time: int

    @classmethod
    def of(cls, place: Place) -> Moment:
        """Return the moment of a place."""
        return cls(summed(place.position), str(place.position), place.time)


def summed(position: GtidPosition) -> int:
    """Return the sum of the sequence numbers of *position*."""
    return sum(gtid.seq for gtid in position)


class GroupOrder:
    """
    The moments of the groups of a batch.

    Args:
        batch: the groups.

    Raises:
        PipelineError: numbers of a domain fall, so that they say nothing of the order.
    """

    def __init__(self, batch: MicroBatch) -> None:
        self._seqs: dict[Gtid, int] = {}
        position, seq = batch.start.copy(), summed(batch.start)
        for gtid, _ in batch.groups:
            known = position.get(gtid.domain)
            before = known.seq if known else 0
            if gtid.seq <= before:
                raise PipelineError(
                    f"{gtid} comes behind {known} in the stream: tables.history needs numbers that "
                    "rise in each domain (gtid_strict_mode=1 at the source)"
                )
            seq += gtid.seq - before
            if seq > STORED_SEQ_MAX:
                raise PipelineError(f"{gtid}: the sum of sequence numbers is above 2^63")
            self._seqs[gtid] = seq
            position.set(gtid)

    def moment(self, run: GroupRun) -> Moment:
        """Return the moment of a group of the batch."""
        return Moment(self._seqs[run.gtid], str(run.gtid), run.time)


def validity(begins: Sequence[Moment], ends: Sequence[Moment | None]) -> pa.Table:
    """Return the columns of ours for versions with these borders; no end: they are current."""
    arrays = [*_moments(begins), *_moments(ends), pa.array([end is None for end in ends])]
    return pa.Table.from_arrays(
        [array.cast(field.type) for array, field in zip(arrays, VALIDITY, strict=True)],
        schema=VALIDITY,
    )


def since(moment: Moment, rows: int) -> pa.Table:
    """Return the columns of ours for *rows* current versions that begin with *moment*."""
    return validity([moment] * rows, [None] * rows)


def ended(rows: pa.Table, moment: Moment) -> pa.Table:
    """Return *rows* of a history with those that are current ended by *moment*."""
    current = rows.column(IS_CURRENT)
    for name, value in zip(TO_NAMES, _values(moment), strict=True):
        index = rows.schema.get_field_index(name)
        kind = rows.schema.field(index)
        column = pc.if_else(current, pa.scalar(value, kind.type), rows.column(index))
        rows = rows.set_column(index, kind, column)
    index = rows.schema.get_field_index(IS_CURRENT)
    none = pa.repeat(pa.scalar(value=False), rows.num_rows)
    return rows.set_column(index, rows.schema.field(index), none)


def end_expressions(moment: Moment) -> dict[str, str]:
    """Return what the columns of an end become, as delta-rs takes it."""
    time, gtid, seq = _values(moment)
    when = f"arrow_cast({time}, 'Timestamp(Microsecond, Some(\"UTC\"))')"
    values = (when, f"'{gtid}'", f"arrow_cast({seq}, 'Int64')", "false")
    return dict(zip((*TO_NAMES, IS_CURRENT), values, strict=True))


def _moments(moments: Sequence[Moment | None]) -> list[pa.Array]:
    rows = [(None, None, None) if moment is None else _values(moment) for moment in moments]
    return [
        pa.array([row[column] for row in rows], pa.int64() if kind != pa.string() else kind)
        for column, kind in enumerate(_KINDS)
    ]


def _values(moment: Moment) -> tuple[int, str, int]:
    return moment.time * _MICROSECONDS, moment.gtid, moment.seq
