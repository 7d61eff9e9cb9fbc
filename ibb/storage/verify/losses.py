"""
What damage has cost: which GTIDs should have been there.

Where records cannot be read, nobody knows at once which groups were among them. The next GTID of
a domain tells what is missing before it, and the next state record tells it for all domains. So a
finding waits here until then, and later ones behind it, which keeps their order.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid

from .finding import NOTHING, Finding

OPEN_LOSSES_MAX = 100  # findings that wait; above that the oldest is reported as far as known
QUEUE_MAX = 1000  # findings in memory
RANGES_MAX = 20  # that are named in a finding
SETTLED_DOMAINS_MAX = 100_000  # remembered for a finding that waits

_NO_STATE = "no GTID state follows"


class GtidRange(NamedTuple):
    """
    Sequence numbers *first* to *last* of a domain.

    Attributes:
        domain: of all of them.
        server: that logged them; None: there are several that may have.
        first: the lowest.
        last: the highest.
    """

    domain: int
    server: int | None
    first: int
    last: int

    def __str__(self) -> str:
        server = "?" if self.server is None else self.server
        text = f"{self.domain}-{server}-{self.first}"
        return text if self.first == self.last else f"{text}..{self.last}"


class Missing(NamedTuple):
    """
    What a state knows of a domain and another one does not.

    Attributes:
        ranges: of sequence numbers, whoever logged them, or of a server's newest one.
        is_all: there can be no others.
    """

    ranges: list[GtidRange]
    is_all: bool


def missing_in(
    servers: Mapping[int, int], newest: Gtid, found: BinlogState, gaps: Iterable[GtidRange] = ()
) -> Missing:
    """
    Return what is known of a domain's groups and was not found.

    Args:
        servers: the newest number of each server in the domain, by what is known.
        newest: the newest GTID of the domain, by what is known.
        found: the state by what was found.
        gaps: ranges of the domain that are known to be missing.
    """
    ranges, before = [], found.newest(newest.domain)
    if before is not None and before.seq < newest.seq:
        ranges.append(GtidRange(newest.domain, None, before.seq + 1, newest.seq))
    known = [*gaps, *ranges]
    late = [
        GtidRange(newest.domain, server, seq, seq)
        for server, seq in servers.items()
        if (found.seq(newest.domain, server) or 0) < seq
        and not any(gap.first <= seq <= gap.last for gap in known)
    ]
    # Of these more may be missing: what lies before a server's newest number is not known.
    return Missing([*ranges, *late], is_all=all(gtid.last == 1 for gtid in late))


def name_servers(gap: GtidRange, servers: Mapping[int, int]) -> list[GtidRange]:
    """
    Cut a range by who can have logged it.

    Args:
        gap: of a server that is not known.
        servers: of the domain, each with its newest number: none has logged a higher one.
    """
    if gap.server is not None:
        return [gap]
    newest = {seq: server for server, seq in servers.items() if gap.first <= seq <= gap.last}
    named, first = [], gap.first
    for last in sorted({*newest, gap.last}):
        known = newest.get(last)
        could = [server for server, seq in servers.items() if seq >= last]
        if len(could) == 1:
            named.append(gap._replace(server=could[0], first=first, last=last))
        else:
            end = last if known is None else last - 1
            if first <= end:
                named.append(gap._replace(first=first, last=end))
            if known is not None:
                named.append(gap._replace(server=known, first=last, last=last))
        first = last + 1
    return _joined(named)


def _joined(ranges: list[GtidRange]) -> list[GtidRange]:
    joined: list[GtidRange] = []
    for each in ranges:
        before = joined[-1] if joined else None
        if before is not None and before[:2] == each[:2] and before.last + 1 == each.first:
            joined[-1] = before._replace(last=each.last)
        else:
            joined.append(each)
    return joined


def describe(ranges: list[GtidRange], *, is_all: bool = True) -> str:
    """Return the ranges as text, the first `RANGES_MAX` of them."""
    shown = ", ".join(map(str, ranges[:RANGES_MAX]))
    more = len(ranges) - RANGES_MAX
    if more > 0:
        shown += f" and {more} more ranges"
    if any(each.server is None for each in ranges):
        shown += " (server unknown)"
    return shown if is_all else f"{shown} at least"


def servers_by_domain(state: BinlogState) -> dict[int, dict[int, int]]:
    """Return the newest number of each server in each domain."""
    domains: dict[int, dict[int, int]] = {}
    for domain, server, seq in state.entries():
        domains.setdefault(domain, {})[server] = seq
    return domains


class _Loss:
    """A finding that waits for what it has cost."""

    __slots__ = ("finding", "interrupted", "is_all", "ranges", "settled")

    def __init__(self, finding: Finding, interrupted: Gtid | None) -> None:
        self.finding = finding
        self.interrupted = interrupted
        self.ranges: list[GtidRange] = []
        self.is_all = True  # nothing is missing of the settled domains but what is in ranges
        self.settled: set[int] = set()  # domains of which it is known what is missing here

    def close(self, domains: Mapping[int, Mapping[int, int]], *, complete: bool) -> Finding:
        """
        Return the finding.

        Args:
            domains: newest number of each server in each domain.
            complete: these are all that there were; else there may have been other servers.
        """
        ranges: list[GtidRange] = []
        for gap in self.ranges:
            servers = domains.get(gap.domain, {})
            ranges += name_servers(gap, servers) if complete or len(servers) == 1 else [gap]
        if self.interrupted is not None:
            _add_interrupted(ranges, self.interrupted)
        is_all = complete and self.is_all
        if ranges:
            lost = describe(ranges, is_all=is_all)
        elif is_all:
            lost = NOTHING
        else:
            why = "a domain's first groups may be among them" if complete else _NO_STATE
            lost = f"unknown: {why}"
        return replace(self.finding, lost=lost)


def _add_interrupted(ranges: list[GtidRange], gtid: Gtid) -> None:
    for index, each in enumerate(ranges):
        if each[:2] == gtid[:2] and each.first == gtid.seq + 1:
            ranges[index] = each._replace(first=gtid.seq)
            return
    ranges.insert(0, GtidRange(*gtid, gtid.seq))


class Losses:
    """Findings in order, and those of them that wait."""

    def __init__(self) -> None:
        self._queue: deque[Finding | _Loss] = deque()
        self.open: list[_Loss] = []
        self._found = BinlogState()

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

    def logged(self, gtid: Gtid, found: BinlogState) -> None:
        """
        Learn of the next group of a domain.

        Args:
            gtid: of the group.
            found: the state before it, as far as groups could be read.
        """
        self._found = found
        newest = found.newest(gtid.domain)
        if newest is None:  # the first number of the domain is not known
            self._settle(gtid.domain, Missing([], is_all=gtid.seq == 1))
        elif newest.seq < gtid.seq:
            first, last = newest.seq + 1, gtid.seq - 1
            gap = [GtidRange(gtid.domain, None, first, last)] if first <= last else []
            self._settle(gtid.domain, Missing(gap, is_all=True))

    def known(self, told: BinlogState, found: BinlogState, *, is_start: bool = False) -> None:
        """
        Learn what all groups up to here were; nothing waits any more.

        Args:
            told: the state that a record tells.
            found: the state by the groups that could be read.
            is_start: before what was read there were others, of which nothing is known.
        """
        if not self.open:
            return
        domains = servers_by_domain(told)
        gaps: dict[int, list[GtidRange]] = {}
        for loss in self.open:
            for gap in loss.ranges:
                gaps.setdefault(gap.domain, []).append(gap)
        for domain, servers in domains.items():
            newest = told.newest(domain)
            assert newest is not None
            if is_start and found.newest(domain) is None:
                self._settle(domain, Missing([], is_all=False))
            else:
                self._settle(
                    domain, missing_in(servers, newest, found, gaps.get(domain, ())), last=True
                )
        for loss in self.open:
            self._replace(loss, domains, complete=True)
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

    def _settle(self, domain: int, missing: Missing, *, last: bool = False) -> None:
        """
        The first place that can have lost something of a domain has lost all of it.

        Args:
            domain: of which it is known by now.
            missing: what was lost of it.
            last: nothing more will be known: what no other place can have lost, the last one has.
        """
        for loss in self.open:
            if domain not in loss.settled and len(loss.settled) < SETTLED_DOMAINS_MAX:
                loss.settled.add(domain)
                self._add(loss, missing)
                missing = Missing([], is_all=True)
        if last:
            self._add(self.open[-1], missing)

    @staticmethod
    def _add(loss: _Loss, missing: Missing) -> None:
        loss.ranges += missing.ranges
        loss.is_all &= missing.is_all

    def _settle_oldest(self) -> None:
        self._replace(self.open.pop(0), servers_by_domain(self._found), complete=False)

    def _replace(
        self, loss: _Loss, domains: Mapping[int, Mapping[int, int]], *, complete: bool
    ) -> None:
        self._queue[self._queue.index(loss)] = loss.close(domains, complete=complete)
