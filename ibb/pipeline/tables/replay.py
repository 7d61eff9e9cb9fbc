"""
Which groups of a batch are still to be applied.

A batch number says nothing: a checkpoint can be deleted, or put back from a backup, and numbers
begin anew. GTIDs decide. Three cases are right, all others stop the pipeline:

- the batch begins where the ledger is: the usual one;
- it begins earlier: groups that the ledger has are passed over one by one, which asks that the
  numbers of each domain rise;
- a table is ahead of the ledger: a batch over several tables was cut short.

That it is the same history at all, and not another one under the same numbers as after RESET
MASTER, is told before by the ledger's `HistoryMark`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import PipelineError
from .place import covers, is_behind

if TYPE_CHECKING:
    from ibb.protocol.gtid import GtidPosition

    from .place import Place
    from .row_changes import MicroBatch


def is_done(batch: MicroBatch, place: Place) -> bool:
    """
    Whether *place* holds all of *batch*.

    Raises:
        PipelineError: there is a gap between the two.
    """
    if batch.start == place.position:
        return batch.end == batch.start
    if not covers(place.position, batch.start):
        raise PipelineError(
            f"the stream goes on behind '{batch.start}', and the tables end at '{place.position}': "
            "what lies between would be lost. Give the stream that position, or take a new snapshot"
        )
    return covers(place.position, batch.end)


def check_replay(batch: MicroBatch, place: Place) -> None:
    """
    Check that it can be told which groups of *batch* come after *place*.

    Raises:
        PipelineError: it cannot: numbers of a domain fall, or are those of another server.
    """
    newest = batch.start.copy()
    for gtid, _ in batch.groups:
        known = newest.get(gtid.domain)
        if known is not None and known.seq > gtid.seq:
            raise PipelineError(
                f"{gtid} comes behind {known} in the stream: after a restart it cannot be told "
                "which of the two the tables have. Take a new snapshot (gtid_strict_mode=1 at the "
                "source prevents this)"
            )
        newest.set(gtid)
        held = place.position.get(gtid.domain)
        if held is not None and held.seq == gtid.seq and held.server != gtid.server:
            raise PipelineError(
                f"the stream has {gtid}, and the tables {held}: these are two histories. Take a "
                "new snapshot"
            )


def furthest(one: GtidPosition, other: GtidPosition) -> GtidPosition:
    """Return the newer GTID of each domain."""
    together = one.copy()
    for gtid in other:
        if is_behind(gtid, together):
            together.set(gtid)
    return together
