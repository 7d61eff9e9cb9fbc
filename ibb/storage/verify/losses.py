"""
What damage has cost: which GTIDs should have been there.

Where records cannot be read, nobody knows at once which groups were among them. The next GTID of
a domain tells what is missing before it, and the next state record tells it for all domains. So a
finding waits here until then, and later ones behind it, which keeps their order.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid

from .finding import NOTHING, Finding

OPEN_LOSSES_MAX = 100  # findings that wait; above that the oldest is reported as far as known
QUEUE_MAX = 1000  # findings in memory
RANGES_MAX = 20  # that are named in a finding
SETTLED_DOMAINS_MAX = 100_000  # remembered for a finding that waits


class GtidRange(NamedTuple):
    """Sequence numbers *first* to *last* of a domain, by the server that logged about then."""

    domain: int
    server: int
    first: int
    last: int

    def __str__(self) -> str:
        text = f"{self.domain}-{self.server}-{self.first}"
        return text if self.first == self.last else f"{text}..{self.last}"


def range_between(before: Gtid | None, last: Gtid) -> GtidRange | None:
    """Return what lies behind *before* and up to *last* in their domain, or None."""
    if before is None or last.seq <= before.seq:
        # Without anything before, the first number of the domain is not known.
        return GtidRange(last.domain, last.server, last.seq, last.seq) if last != before else None
    return GtidRange(last.domain, last.server, before.seq + 1, last.seq)


def describe(ranges: list[GtidRange]) -> str:
    """Return the ranges as text, the first `RANGES_MAX` of them."""
    shown = ", ".join(map(str, ranges[:RANGES_MAX]))
    more = len(ranges) - RANGES_MAX
    return f"{shown} and in {more} more domains" if more > 0 else shown


class _Loss:
    """A finding that waits for what it has cost."""

    __slots__ = ("finding", "interrupted", "ranges", "settled")

    def __init__(self, finding: Finding, interrupted: Gtid | None) -> None:
        self.finding = finding
        self.interrupted = interrupted
        self.ranges: list[GtidRange] = []
        self.settled: set[int] = set()  # domains of which it is known what is missing here

    def add(self, found: GtidRange) -> None:
        cut = self.interrupted
        if cut is not None and cut.domain == found.domain and cut.seq + 1 == found.first:
            found = found._replace(first=cut.seq)
            self.interrupted = None
        self.ranges.append(found)

    def close(self, *, complete: bool) -> Finding:
        ranges = list(self.ranges)
        if self.interrupted is not None:
            gtid = self.interrupted
            ranges.insert(0, GtidRange(gtid.domain, gtid.server, gtid.seq, gtid.seq))
        if ranges:
            lost = describe(ranges) + ("" if complete else " at least")
        else:
            lost = NOTHING if complete else "unknown: no GTID state follows"
        return replace(self.finding, lost=lost)


class Losses:
    """Findings in order, and those of them that wait."""

    def __init__(self) -> None:
        self._queue: deque[Finding | _Loss] = deque()
        self.open: list[_Loss] = []

    def report(self, finding: Finding) -> None:
        """Add a finding of which all is known."""
        self._queue.append(finding)
        if len(self._queue) > QUEUE_MAX and self.open:
            self._settle_oldest()

    def damage(self, finding: Finding, interrupted: Gtid | None = None) -> None:
        """
        Add a finding behind which nobody knows at first what is missing.

        Args:
            finding: without what is lost.
            interrupted: the group that was being read, which is lost in any case.
        """
        loss = _Loss(finding, interrupted)
        self._queue.append(loss)
        self.open.append(loss)
        if len(self.open) > OPEN_LOSSES_MAX:
            self._settle_oldest()

    def logged(self, gtid: Gtid, newest: Gtid | None) -> None:
        """
        Learn of the next group of a domain.

        Args:
            gtid: of the group.
            newest: of its domain before it, as far as groups could be read.
        """
        last = gtid._replace(seq=gtid.seq - 1)
        missing = newest is not None and last.seq > newest.seq
        self._settle(gtid.domain, range_between(newest, last) if missing else None)

    def known(self, told: BinlogState, found: BinlogState) -> None:
        """
        Learn what all groups up to here were; nothing waits any more.

        Args:
            told: the state that a record tells.
            found: the state by the groups that could be read.
        """
        for domain in told.domains() if self.open else ():
            last = told.newest(domain)
            assert last is not None
            self._settle(domain, range_between(found.newest(domain), last))
        for loss in self.open:
            self._replace(loss, complete=True)
        self.open.clear()

    def finish(self) -> None:
        """Data ends: what is not known by now will not be."""
        while self.open:
            self._settle_oldest()

    def take(self) -> Iterator[Finding]:
        """Yield what can be reported by now, in order."""
        queue = self._queue
        while queue:
            head = queue[0]
            if isinstance(head, _Loss):
                return
            queue.popleft()
            yield head

    def _settle(self, domain: int, missing: GtidRange | None) -> None:
        """The first place that can have lost something of a domain has lost all of it."""
        for loss in self.open:
            if domain not in loss.settled and len(loss.settled) < SETTLED_DOMAINS_MAX:
                loss.settled.add(domain)
                if missing is not None:
                    loss.add(missing)
                    missing = None

    def _settle_oldest(self) -> None:
        self._replace(self.open.pop(0), complete=False)

    def _replace(self, loss: _Loss, *, complete: bool) -> None:
        self._queue[self._queue.index(loss)] = loss.close(complete=complete)
