"""A record that is to be written, and what is known of one that was."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ibb.protocol.gtid import Gtid

from .position import Position
from .record import RecordType


class NewRecord(NamedTuple):
    """
    A record to be written.

    Attributes:
        type: its type.
        data: its contents, at least one byte, less than a file.
        gtid: enters the state exactly when the first chunk is placed.
        on_start: called with that place before anything is logged.
    """

    type: RecordType
    data: bytes
    gtid: Gtid | None = None
    on_start: Callable[[Position], None] | None = None


class Appended(NamedTuple):
    """Records that were written: the end of the binlog behind them, and their redo LSN."""

    end: Position
    lsn: int


def gtid_of(records: Sequence[NewRecord]) -> Gtid | None:
    """Return the GTID of records that are one unit: at most one of them has one."""
    gtids = [record.gtid for record in records if record.gtid is not None]
    assert len(gtids) <= 1
    return gtids[0] if gtids else None
