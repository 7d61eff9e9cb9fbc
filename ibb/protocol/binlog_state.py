"""
The binlog state: the newest sequence number of every (domain, server) that logged anything.

Inside a domain the order matters: the last entry is the domain's most recent GTID.
Source: ibb-format 5.2 and 8.1.
"""

from __future__ import annotations

from itertools import dropwhile
from typing import TYPE_CHECKING

from .gtid import Gtid, GtidPosition, parse_gtid_list

if TYPE_CHECKING:
    from collections.abc import Iterable


class BinlogState:
    """Newest sequence number of every (domain, server), a domain's most recent entry last."""

    __slots__ = ("_domains",)

    def __init__(self, entries: Iterable[Gtid] = ()) -> None:
        # domain -> server -> seq; the inner order is the order of logging
        self._domains: dict[int, dict[int, int]] = {}
        self.load(entries)

    @classmethod
    def parse(cls, text: str) -> BinlogState:
        """
        Read the form of `gtid_binlog_state`: a list of GTIDs, a domain's most recent last.

        Raises:
            SqlError: 1941, *text* is not a GTID list.
        """
        return cls(parse_gtid_list(text))

    def update(self, gtid: Gtid) -> None:
        """Note that *gtid* was logged: the newest of its pair, even if its number is lower."""
        domain, server, seq = gtid
        servers = self._domains.get(domain)
        if servers is None:
            self._domains[domain] = {server: seq}
            return
        servers.pop(server, None)  # so that it comes last
        servers[server] = seq

    def load(self, entries: Iterable[Gtid]) -> None:
        """Apply *entries*, in order, on top of what is held."""
        for gtid in entries:
            self.update(gtid)

    def entries(self) -> list[Gtid]:
        """Return every pair's newest GTID; domains together, a domain's most recent last."""
        return [
            Gtid(domain, server, seq)
            for domain, servers in self._domains.items()
            for server, seq in servers.items()
        ]

    def copy(self) -> BinlogState:
        """Return an independent state with the same entries."""
        state = BinlogState()
        state._domains = {domain: dict(servers) for domain, servers in self._domains.items()}
        return state

    def since(self, base: BinlogState) -> BinlogState:
        """
        Return what was logged after *base*, an earlier state, to get to this one.

        Inside a domain the pairs logged since come last, in that order.
        """
        since = BinlogState()
        for domain, servers in self._domains.items():
            logged = _logged_since(base._domains.get(domain, {}), servers)
            if logged:
                since._domains[domain] = logged
        return since

    def domains(self) -> list[int]:
        """Return the domains that have entries."""
        return list(self._domains)

    def newest(self, domain: int) -> Gtid | None:
        """Return the most recent GTID of *domain*, or None for an unknown domain."""
        servers = self._domains.get(domain)
        if servers is None:
            return None
        server = next(reversed(servers))
        return Gtid(domain, server, servers[server])

    def seq(self, domain: int, server: int) -> int | None:
        """Return the newest sequence number of the pair, or None for an unknown pair."""
        servers = self._domains.get(domain)
        return None if servers is None else servers.get(server)

    def contains(self, gtid: Gtid) -> bool:
        """Tell whether the pair of *gtid* is known with a sequence number at least as high."""
        seq = self.seq(gtid.domain, gtid.server)
        return seq is not None and seq >= gtid.seq

    def position(self) -> GtidPosition:
        """Return the most recent GTID of each domain (`gtid_binlog_pos`)."""
        return GtidPosition(gtid for domain in self._domains if (gtid := self.newest(domain)))

    def is_before(self, position: GtidPosition) -> bool:
        """
        Tell whether everything that *position* still needs was logged after this state.

        A position entry whose pair or whole domain is unknown here does not make it false.

        Source: ibb-format 8.1.
        """
        if any(domain not in position for domain in self._domains):
            return False  # that domain is wanted from its beginning
        for wanted in position:
            seq = self.seq(wanted.domain, wanted.server)
            if seq is None or seq < wanted.seq:
                continue
            if seq > wanted.seq or self.newest(wanted.domain) != wanted:
                return False
        return True

    def rises_to(self, later: BinlogState) -> bool:
        """
        Tell whether a later state has all pairs of this one, with numbers that are no lower.

        Then whatever position the later state is before, this one is before it as well.
        """
        for domain, servers in self._domains.items():
            then = later._domains.get(domain, {})
            if any(then.get(server, -1) < seq for server, seq in servers.items()):
                return False
            last = next(reversed(then))
            if servers.get(last) == then[last] and last != next(reversed(servers)):
                return False  # it was logged once more
        return True

    def __len__(self) -> int:
        return sum(map(len, self._domains.values()))

    def __eq__(self, other: object) -> bool:
        """Compare entries and each domain's most recent one; the order of the rest is no matter."""
        if not isinstance(other, BinlogState):
            return NotImplemented
        return self._domains == other._domains and self.position() == other.position()

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __str__(self) -> str:
        return ",".join(map(str, self.entries()))

    def __repr__(self) -> str:
        return f"BinlogState({str(self)!r})"


def _logged_since(base: dict[int, int], servers: dict[int, int]) -> dict[int, int]:
    """Return what comes behind the servers of a domain that are as they were, in that order."""
    before = iter(base.items())
    return dict(dropwhile(lambda pair: pair in before, servers.items()))  # `in` moves on
