"""
How far a change table is: a GTID position, stored in the very commit that made it true.

Delta keeps for each application id a number, through checkpoints and log clean-up. A position
has several numbers of several domains, so each gets an id of its own: `NAME/domains` counts them,
`NAME/0/domain`, `NAME/0/server` and `NAME/0/seq` are the first. `NAME/time` is the commit time of
the last group, for people.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deltalake import CommitProperties, Transaction

from ibb.protocol.gtid import Gtid, GtidPosition

from .errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalake import DeltaTable

STORED_SEQ_MAX: Final = 2**63 - 1  # of Delta's transaction versions
DOMAINS_MAX: Final = 1024  # in one stored position


@dataclass(frozen=True)
class Place:
    """
    Where something is in the history.

    Args:
        position: the last group of each domain that it holds.
        time: commit time of the last one, Unix seconds, for people; 0 when nothing is known of it.
    """

    position: GtidPosition
    time: int = 0

    @classmethod
    def nowhere(cls) -> Place:
        """Return the place before the first group of every domain."""
        return cls(GtidPosition())

    def as_json(self) -> dict[str, object]:
        """Return what `from_json` takes."""
        return {"position": str(self.position), "time": self.time}

    @classmethod
    def from_json(cls, value: dict[str, object]) -> Place:
        """Return what `as_json` was called on."""
        return cls(GtidPosition.parse(str(value["position"])), int(str(value["time"])))


POSITION_KEY: Final = "gtid_position"  # of a commit, also for people: DESCRIBE HISTORY
TABLE_KEY: Final = "table"
MADE_KEY: Final = "made_behind"  # of a table that is empty: the group that makes it comes next


def place_properties(
    application: str, place: Place, table: str = "", *, made: bool = False
) -> CommitProperties:
    """
    Return the properties of a Delta commit that brings a table to *place*.

    Args:
        application: under which it is stored.
        place: the place.
        table: the table's name then.
        made: the table is made anew by the group behind *place*.

    Raises:
        PipelineError: the position has too many domains or too high numbers to be stored.
    """
    if len(place.position) > DOMAINS_MAX:
        raise PipelineError(f"a position of more than {DOMAINS_MAX} domains cannot be stored")
    numbers = {f"{application}/time": place.time, f"{application}/domains": len(place.position)}
    for index, gtid in enumerate(place.position):
        if gtid.seq > STORED_SEQ_MAX:
            raise PipelineError(f"{gtid}: the sequence number is above {STORED_SEQ_MAX}")
        for part, number in zip(Gtid._fields, gtid, strict=True):
            numbers[f"{application}/{index}/{part}"] = number
    return CommitProperties(
        app_transactions=[Transaction(name, number) for name, number in numbers.items()],
        custom_metadata={
            MADE_KEY if made else POSITION_KEY: str(place.position),
            TABLE_KEY: table,
        },
    )


def stored_place(table: DeltaTable, application: str) -> Place | None:
    """Return where *table* is, or None when *application* has never written to it."""
    version: Callable[[str], int | None] = table.transaction_version
    count = version(f"{application}/domains")
    if count is None:
        return None
    gtids = []
    for index in range(count):
        numbers = [version(f"{application}/{index}/{part}") for part in Gtid._fields]
        if None in numbers:
            raise PipelineError(f"{table.table_uri}: its stored GTID position is not whole")
        gtids.append(Gtid(*(number or 0 for number in numbers)))
    return Place(GtidPosition(gtids), version(f"{application}/time") or 0)


def is_behind(gtid: Gtid, position: GtidPosition) -> bool:
    """Whether *gtid* comes after what *position* holds of its domain."""
    held = position.get(gtid.domain)
    return held is None or held.seq < gtid.seq


def covers(position: GtidPosition, other: GtidPosition) -> bool:
    """Whether *position* is as far as *other* or further in every domain."""
    return not any(is_behind(gtid, position) for gtid in other)
