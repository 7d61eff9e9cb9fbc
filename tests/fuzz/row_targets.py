"""Rows events behind the table map that describes them, as columns."""

from ibb.pipeline.row_batches import RowBatches
from ibb.protocol.errors import FormatError
from ibb.protocol.event import EventType, build_event
from ibb.protocol.rows.rows_event import OPS
from ibb.protocol.rows.table_layout import layout_of
from ibb.protocol.rows.table_map import TableMap
from ibb.protocol.rows.value_policy import (
    BadText,
    NoDates,
    Times,
    Unknown,
    ValuePolicy,
    ValueRefused,
)

POLICIES = (
    ValuePolicy(unknown=Unknown.BYTES, bad_text=BadText.REPLACE),
    ValuePolicy(unknown=Unknown.BYTES, no_dates=NoDates.TEXT, times=Times.TEXT),
)
CODES = tuple(OPS)
BATCH_ROWS = 16  # so that events take several


def fuzz_rows(data):
    """A byte for the policy, one for the event's type, one for the table map's length, both."""
    if len(data) < 3:
        return
    end = 3 + data[2]
    head = {"timestamp": 1, "server_id": 1}
    try:
        table = TableMap.parse(build_event(EventType.TABLE_MAP, data[3:end], **head))
        event = build_event(CODES[data[1] % len(CODES)], data[end:], **head)
        batches = RowBatches(
            layout_of(table), POLICIES[data[0] % len(POLICIES)], batch_rows=BATCH_ROWS
        )
        batches.add(event)
        while batches.is_full:
            read(batches)
        read(batches)
    except FormatError:
        return


def read(batches):
    """Make a batch, which must be sound, of what waits."""
    try:
        batch = batches.take()
    except ValueRefused:
        batches.drop()
        return
    batch.to_batch().validate(full=True)
