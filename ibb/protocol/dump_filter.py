"""
Which groups a client gets that starts at a GTID position and may stop at another.

    check_position   before the search: can this history serve that position at all?
    (search)         finds a place at or before the position, and the state there
    DumpFilter       from that place on: skip what the client has, stop at its UNTIL

Source: ibb-format 8.1, 8.2, 8.5, 8.6; dump-protocol 5.3 and 6, which also hold the texts.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from .error_codes import MASTER_FATAL_ERROR_READING_BINLOG
from .gtid import Gtid, GtidPosition

if TYPE_CHECKING:
    from collections.abc import Callable

    from .binlog_state import BinlogState

_NOT_FOUND: Final = (
    "Error: connecting slave requested to start from GTID %s, which is not in the master's binlog"
)
_DIVERGED: Final = (
    _NOT_FOUND + ". Since the master's binlog contains GTIDs with higher sequence numbers, it "
    "probably means that the slave has diverged due to executing extra erroneous transactions"
)
_HOLE: Final = (
    "The binlog on the master is missing the GTID %s requested by the slave (even though both a "
    "prior and a subsequent sequence number does exist), and GTID strict mode is enabled"
)


class Verdict(Enum):
    """What becomes of a group."""

    SEND = "send"
    SKIP = "skip"


def check_position(
    state: BinlogState,
    position: GtidPosition,
    *,
    ignore_duplicates: bool = False,
    until: GtidPosition | None = None,
) -> frozenset[int]:
    """
    Check that a history can be sent from *position* on, as far as its state tells.

    Args:
        state: of the whole history, now.
        position: where the client wants to start.
        ignore_duplicates: the client's `@slave_gtid_ignore_duplicates`.
        until: where it wants to stop, or None.

    Returns:
        The domains of *position* that the history does not know: `DumpFilter` checks them again
        when their first group turns up.

    Raises:
        SqlError: 1236, a GTID of *position* is not in the history.
    """
    empty_domains = set()
    for wanted in position:
        if state.contains(wanted):
            continue
        newest = state.newest(wanted.domain)
        if newest is None:
            empty_domains.add(wanted.domain)
            continue
        if ignore_duplicates and newest.seq < wanted.seq:
            continue
        if until is not None:
            stop = until.get(wanted.domain)
            if stop is None or state.contains(stop):
                continue  # the domain is at its end already
        text = _DIVERGED if newest.seq >= wanted.seq else _NOT_FOUND
        raise MASTER_FATAL_ERROR_READING_BINLOG.error(text % (wanted,))
    return frozenset(empty_domains)


class DumpFilter:
    """
    Decides group by group, in the order of the history.

    Args:
        position: where the client starts; not changed.
        found_state: the state at the place where reading begins, at or before *position*.
        until: where the client stops, or None. Domains that it does not list stop at once.
        until_before: stop before the groups of *until*, not after them.
        strict: the client's `@slave_gtid_strict_mode`.
        empty_domains: what `check_position` returned.
        state_now: returns the state of the history at the time of the call; needed only with
            *empty_domains*.
    """

    __slots__ = ("_empty_domains", "_start", "_state_now", "_strict", "_until", "_until_before")

    def __init__(
        self,
        position: GtidPosition,
        found_state: BinlogState,
        until: GtidPosition | None = None,
        until_before: bool = False,
        strict: bool = False,
        *,
        empty_domains: frozenset[int] = frozenset(),
        state_now: Callable[[], BinlogState] | None = None,
    ) -> None:
        assert state_now is not None or not empty_domains
        self._start = GtidPosition(
            wanted
            for wanted in position
            if found_state.seq(wanted.domain, wanted.server) != wanted.seq
        )
        self._until = (
            None
            if until is None
            else GtidPosition(stop for stop in until if not found_state.contains(stop))
        )
        self._until_before = until_before
        self._strict = strict
        self._empty_domains = set(empty_domains)
        self._state_now = state_now

    @property
    def skipping(self) -> bool:
        """Whether a domain has not reached its start; format descriptions are held back then."""
        return len(self._start) > 0

    @property
    def finished(self) -> bool:
        """Whether every domain is at its UNTIL: tell the client so and send no more."""
        return self._until is not None and not self._until

    def wants(self, gtid: Gtid) -> Verdict:
        """
        Say what becomes of the next group, *gtid*; after a group that is sent, call `after`.

        Raises:
            SqlError: 1236, the group shows that the client's position is not in the history: its
                own group is missing (strict mode), or a domain that was empty began without it.
        """
        had = self._client_has(gtid)
        if self._until is None:
            return Verdict.SKIP if had else Verdict.SEND
        stop = self._until.get(gtid.domain)
        if stop is None:
            return Verdict.SKIP
        reached = gtid.server == stop.server and gtid.seq >= stop.seq
        if had or (reached and (gtid.seq > stop.seq or self._until_before)):
            self.after(gtid)
            return Verdict.SKIP
        return Verdict.SEND

    def after(self, gtid: Gtid) -> None:
        """Note that the group *gtid*, which was wanted, has been sent to its end."""
        if self._until is None:
            return
        stop = self._until.get(gtid.domain)
        if stop is not None and gtid.server == stop.server and gtid.seq >= stop.seq:
            self._until.remove(gtid.domain)

    def _client_has(self, gtid: Gtid) -> bool:
        """Tell whether *gtid* is not past its domain's start; forget a start that is reached."""
        wanted = self._start.get(gtid.domain)
        if wanted is None:
            return False
        self._check_empty_domain(wanted)
        if gtid.server != wanted.server or gtid.seq < wanted.seq:
            return True
        if gtid.seq > wanted.seq and self._strict:
            raise MASTER_FATAL_ERROR_READING_BINLOG.error(_HOLE % (wanted,))
        self._start.remove(gtid.domain)
        return gtid.seq == wanted.seq

    def _check_empty_domain(self, wanted: Gtid) -> None:
        """At the first group of a domain that was empty, see whether the position is in it."""
        if wanted.domain not in self._empty_domains:
            return
        assert self._state_now is not None
        if not self._state_now().contains(wanted):
            raise MASTER_FATAL_ERROR_READING_BINLOG.error(_NOT_FOUND % (wanted,))
        self._empty_domains.remove(wanted.domain)
