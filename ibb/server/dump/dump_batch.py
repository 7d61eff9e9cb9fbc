"""What a dump sends at a time, and what is to be done behind it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ibb.protocol.errors import SqlError
    from ibb.protocol.fields import Buffer
    from ibb.protocol.gtid import Gtid
    from ibb.storage.group_reader import StoredGroup
    from ibb.storage.position import Position


class Outcome(Enum):
    """What is to be done behind a batch."""

    MORE = auto()  # ask for the next one
    IDLE = auto()  # everything durable was sent: wait
    YOUNG = auto()  # the next group is not old enough for this client: wait until it is
    END = auto()  # end the dump, by EOF or by the error


class Place(NamedTuple):
    """
    How far a dump is.

    Attributes:
        position: everything before it was sent.
        unsent: the first group that was not sent to its end, if it was looked at already.
        skipping: groups that the client said it has may still follow.
    """

    position: Position
    unsent: StoredGroup | None = None
    skipping: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """
    Framed packets, and what follows them.

    Attributes:
        data: ready to be written; may end inside a packet while the outcome is MORE. It may lie
            where the next batch will be made.
        error: with END, what to tell the client; None is EOF.
        written_at: with YOUNG, when the group that is not old enough was written, in seconds
            since 1970.
        sent: the last GTID of each domain whose group ends in it; in the first batch, what the
            client had.
        sent_size: bytes of packets before *data* that the client has taken already.
        sealed: bytes of packets before *data* that are encrypted already, and wait for the client.
        gives_way: others are to be sent to first.
        start, end: how far the stream was before this batch and is behind it; None before its
            start was found.
    """

    data: Buffer
    outcome: Outcome
    error: SqlError | None = None
    written_at: float = 0.0
    sent: Mapping[int, Gtid] = field(default_factory=dict)
    sent_size: int = 0
    sealed: int = 0
    gives_way: bool = False
    start: Place | None = None
    end: Place | None = None
