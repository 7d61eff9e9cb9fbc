"""
What must be there: the model that the store is held against.

A binlog is a list of items in the order in which they were sent. The first `safe` of them must
survive everything; of the rest any beginning may. Nothing else may ever be seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid
from ibb.storage.leases import Lease
from ibb.storage.position import Position
from ibb.storage.record import Xid

STATE_SHOWN_MAX = 200  # characters


class Kind(Enum):
    GROUP = "group"
    FORMAT = "format description"
    PREPARE = "prepare"
    ROLLBACK = "rollback of a prepared transaction"
    SWITCH = "next file"


def brief(state: BinlogState) -> str:
    """Return the beginning of a state, for people."""
    return f"state '{state}'"[:STATE_SHOWN_MAX]


@dataclass
class Item:
    """
    Something that was sent to be written.

    Attributes:
        kind: what it is.
        after: the end of the binlog before it was sent.
        gtid: of a group.
        data: events of a group without its GTID event; the event of a format description; events
            of a prepared transaction.
        xid: of a prepare, of a rollback, and of the group that a prepared transaction became.
        domains: that are forgotten with the next file.
        end: the end of the binlog behind it, once it was written; None also for those of a run
            before its last.
    """

    kind: Kind
    after: Position
    gtid: Gtid | None = None
    data: bytes = b""
    xid: Xid | None = None
    domains: frozenset[int] = frozenset()
    end: Position | None = None

    @property
    def is_read(self) -> bool:
        """Readers get it."""
        return self.kind in (Kind.GROUP, Kind.FORMAT)


class Seen(NamedTuple):
    """A group or format description as a reader gets it; no *data*: it was purged in part."""

    gtid: Gtid | None
    data: bytes | None
    position: Position


BEHIND_ALL = Position(1 << 62, 0)


class Found(NamedTuple):
    """A store, or a directory at rest, seen from outside; *end*: nothing lies behind it."""

    first_file: int
    stream: Sequence[Seen]
    state: BinlogState
    prepared: frozenset[Xid]
    end: Position = BEHIND_ALL


class WrongError(AssertionError):
    """The store broke a promise."""


@dataclass
class Model:
    """
    The items, and what else was promised.

    Attributes:
        base: GTID state before the first item.
        items: in the order in which they were sent.
        safe: so many survive a power loss.
        kept: so many survive the end of the process.
        resets_to: the state that a reset under way begins with.
        leases: by name.
        leases_under_way: names, and what their leases may have become; else they are as before.
    """

    base: BinlogState = field(default_factory=BinlogState)
    items: list[Item] = field(default_factory=list)
    safe: int = 0
    kept: int = 0
    resets_to: BinlogState | None = None
    leases: dict[str, Lease] = field(default_factory=dict)
    leases_under_way: list[tuple[str, Lease | None]] = field(default_factory=list)
    _index: dict[Gtid, int] = field(default_factory=dict)

    def send(self, item: Item) -> None:
        if item.gtid is not None:
            self._index[item.gtid] = len(self.items)
        self.items.append(item)

    def take_back(self, item: Item) -> None:
        """Forget the last item: nothing of it was written."""
        assert self.items.pop() is item
        if item.gtid is not None:
            del self._index[item.gtid]

    def index(self, gtid: Gtid) -> int:
        """Return the number of a group's item; nothing else may be read."""
        if gtid not in self._index:
            raise WrongError(f"group {gtid} was never committed, or is lost")
        return self._index[gtid]

    def durable(self, end: Position, state: BinlogState) -> None:
        """Learn that the store calls everything before *end* durable, with *state* there."""
        for item in self.items[self.safe :]:
            if item.end is None:
                known = None if item.gtid is None else state.seq(item.gtid.domain, item.gtid.server)
                is_durable = item.gtid is not None and known is not None and known >= item.gtid.seq
            else:
                is_durable = item.end <= end
            if not is_durable:
                break
            self.safe += 1
        self.kept = max(self.kept, self.safe)

    def all_durable(self) -> None:
        self.safe = self.kept = len(self.items)

    def state(self, count: int) -> BinlogState:
        """Return the GTID state behind the first *count* items."""
        state = self.base.copy()
        for item in self.items[:count]:
            if item.gtid is not None:
                state.update(item.gtid)
            elif item.domains:
                state = BinlogState(
                    gtid for gtid in state.entries() if gtid.domain not in item.domains
                )
        return state

    def prepared(self, count: int) -> dict[Xid, bytes]:
        """Return the transactions that are prepared behind the first *count* items."""
        prepared: dict[Xid, bytes] = {}
        for item in self.items[:count]:
            if item.xid is not None:
                if item.kind is Kind.PREPARE:
                    prepared[item.xid] = item.data
                else:
                    del prepared[item.xid]
        return prepared

    def first_left(self, first_file: int) -> int:
        """Return the first item that begins in *first_file* or later for sure."""
        for number, item in enumerate(self.items):
            if item.after.file_no >= first_file:
                return number
        return len(self.items)

    # Comparison

    def survivors(self, found: Found, at_least: int, *, torn: bool = False) -> int:
        """
        Return how many items what was found holds; raise `WrongError` if it is not a beginning.

        Args:
            found: all that can be read.
            at_least: so many must be there.
            torn: a prepared transaction may be missing that has ended by now.
        """
        begin, end = self._slice(found)
        behind = range(max(begin, end), len(self.items))
        later = [number for number in behind if self.items[number].is_read]
        highest = later[0] if later else len(self.items)
        lowest = max(at_least, end)
        if lowest > highest:
            lost = self.items[highest]
            raise WrongError(
                f"{lost.kind.value} {lost.gtid or ''}, item {highest} of {at_least} safe, is lost"
            )
        for item in self.items[:begin]:
            if item.is_read and item.after.file_no >= found.first_file:
                raise WrongError(f"{item.kind.value} {item.gtid or ''} is missing at the beginning")
        for count in range(highest, lowest - 1, -1):
            lacking = self.prepared(count).keys() ^ found.prepared
            if torn:
                lacking -= self.prepared(count).keys() - self.prepared(len(self.items)).keys()
            is_there = not count or (self.items[count - 1].end or found.end) <= found.end
            if self.state(count) == found.state and not lacking and is_there:
                return count
        raise WrongError(
            f"{brief(found.state)} and prepared {sorted(found.prepared)}, expected between "
            f"{brief(self.state(lowest))}, {sorted(self.prepared(lowest))} and "
            f"{brief(self.state(highest))}, {sorted(self.prepared(highest))}"
        )

    def _slice(self, found: Found) -> tuple[int, int]:
        """
        Return the first item that was found, and the one behind the last.

        Where nothing was found, items that were not safe may be lost, whatever has been purged
        since: the binlog may have gone on in another file without them.
        """
        if not found.stream:
            return self.first_left(found.first_file), 0
        begin = at = self._begin(found.stream)
        for seen in found.stream:
            while at < len(self.items) and not self.items[at].is_read:
                at += 1
            if at == len(self.items):
                raise WrongError(f"group {seen.gtid} at {seen.position} was never sent")
            expected = self.items[at]
            if seen.gtid != expected.gtid:
                raise WrongError(f"{seen.gtid} at {seen.position} where {expected.gtid} must be")
            if seen.data is not None and seen.data != expected.data:
                raise WrongError(f"group {seen.gtid} at {seen.position} has other contents")
            at += 1
        return begin, at

    def _begin(self, stream: Sequence[Seen]) -> int:
        first = stream[0]
        if first.gtid is not None:
            return self.index(first.gtid)
        for number, item in enumerate(self.items):
            if item.kind is Kind.FORMAT and item.data == first.data:
                return number
        raise WrongError(f"format description at {first.position} was never sent")

    def adopt(self, count: int) -> None:
        """Go on from the first *count* items; all of them are durable."""
        for item in self.items[count:]:
            if item.gtid is not None:
                del self._index[item.gtid]
        del self.items[count:]
        self.all_durable()

    def begin_anew(self, state: BinlogState) -> None:
        """RESET MASTER is done."""
        self.base, self.items, self.resets_to = state, [], None
        self._index = {}
        self.safe = self.kept = 0
        self.leases = {name: lease for name, lease in self.leases.items() if not lease.position}
        self.leases_under_way.clear()
