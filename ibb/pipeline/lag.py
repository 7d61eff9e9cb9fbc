"""How far a stream is behind its history, for the progress of the query."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from .cuts import groups_behind
from .file_ranges import distance

if TYPE_CHECKING:
    from ibb.protocol.gtid import GtidPosition
    from ibb.storage.directory import BinlogDirectory

    from .cuts import Cut


class Lag(NamedTuple):
    """
    What is there and was not read.

    Attributes:
        groups: by their numbers in each domain: where these leave some out, it says too many.
        bytes: of the files; of a server those of files that nothing was read of.
        seconds: since the oldest of it was committed; 0 if there is nothing.
    """

    groups: int
    bytes: int
    seconds: int


def groups_behind_by_number(had: GtidPosition, now: GtidPosition) -> int:
    """Return how many groups are between two positions, by their numbers in each domain."""
    seqs = ((gtid.seq, had.get(gtid.domain)) for gtid in now)
    return sum(max(seq - (before.seq if before else 0), 0) for seq, before in seqs)


def lag_behind(pages: BinlogDirectory, had: Cut, groups: int) -> Lag:
    """
    Return how far behind a reader is that has all before a cut.

    Args:
        pages: the files.
        had: the cut.
        groups: as counted by their numbers.

    Raises:
        FormatError: the pages that have to be read are damaged.
    """
    if not groups:
        return Lag(0, 0, 0)
    for group in groups_behind(pages, had):
        seconds = max(int(time.time()) - group.timestamp, 0)
        return Lag(groups, distance(pages, group.position, pages.end()), seconds)
    return Lag(0, 0, 0)
