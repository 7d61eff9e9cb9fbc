"""
State records against the history, and the order of GTIDs.

The running state follows the commit records. A state record must tell the same; behind damage,
where the running state lacks what could not be read, a state record is believed instead.
Source: ibb-format 5.2, 12.2.
"""

from collections.abc import Callable

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid
from ibb.storage.record import GtidState

from .finding import Finding, Kind, Place
from .losses import GtidRange, Losses, describe, missing_in, name_servers, servers_by_domain

PAIRS_NAMED_MAX = 5  # of those in which two states differ


class HistoryCheck:
    """
    The running state.

    Args:
        losses: takes findings.
        from_beginning: there was nothing before the first file.
        oldest: tells the oldest file by now.

    Attributes:
        state: by the groups read so far, on top of the first state found.
        certain: nothing is missing in it.
        groups: number of groups read.
        first: the first state that was found, or None.
    """

    def __init__(
        self, losses: Losses, *, from_beginning: bool, oldest: Callable[[], int] = int
    ) -> None:
        self._losses = losses
        self._oldest = oldest
        self._logged_in: dict[int, int] = {}  # the file of a domain's last group
        self._from_beginning = from_beginning
        self.state = BinlogState()
        self.certain = from_beginning
        self.groups = 0
        self.first: BinlogState | None = None
        self._first_pairs: frozenset[Gtid] = frozenset()
        self._base: BinlogState | None = None  # the state on page 1 of the present file
        self._began_empty = False

    def enter_file(self) -> None:
        """The next record lies in another file."""
        self._base = None

    def lose(self, finding: Finding, interrupted: Gtid | None = None) -> None:
        """Report damage behind which groups may be missing."""
        self.certain = False
        self._losses.damage(finding, interrupted)

    def group(self, gtid: Gtid, place: Place) -> None:
        """Take note of a group."""
        newest = self.state.newest(gtid.domain)
        if newest is not None and gtid.seq <= newest.seq:
            if self.state.seq(gtid.domain, gtid.server) == gtid.seq:
                text = f"group {gtid} was logged before, and nothing of its server since"
                self._losses.report(Finding.at(Kind.GTID_DUPLICATE, place, text))
            else:
                text = f"group {gtid} comes behind {newest}"
                self._losses.report(Finding.at(Kind.GTID_ORDER, place, text))
        if self._losses.open:
            self._losses.logged(gtid, self.state)
        self.state.update(gtid)
        self._logged_in[gtid.domain] = place.file_no
        self.groups += 1

    def stretch(self, first: Gtid, last: int, count: int, place: Place) -> None:
        """
        Take note of groups of one domain and server whose numbers ascend, as of each of them.

        No finding may wait for what later groups show.

        Args:
            first: of the first group.
            last: number of the last one.
            count: how many there are.
            place: of the first group.
        """
        self.group(first, place)
        if count > 1:
            assert last > first.seq
            assert not self._losses.open
            self.state.update(first._replace(seq=last))
            self.groups += count - 1

    def full(self, record: GtidState, place: Place) -> None:
        """Compare the state on page 1, and base the file's differential ones on it."""
        told = BinlogState(record.entries)
        if self.first is None:
            self._begin(told, place)
        elif not self.certain:
            self._believe(told)
        elif told != self.state:
            self._report(told, place, "full", self._deleted(told))
        self._base = self.state.copy()

    def differential(self, record: GtidState, place: Place) -> None:
        """Compare a state that holds what was logged since page 1."""
        base = self._base
        if base is None and not self.certain:
            return  # relative to a state that nobody knows
        told = (self.state if base is None else base).copy()
        told.load(record.entries)
        if not self.certain:
            self._believe(told)
        elif told != self.state:
            self._report(told, place, "differential", frozenset())

    def _begin(self, told: BinlogState, place: Place) -> None:
        self.first = told
        self._first_pairs = frozenset(told.entries())
        self._began_empty = place.file_no == 0 and not len(told)
        self._losses.known(told, self.state, is_start=not self._from_beginning)
        self.state = told.copy()
        self.certain = True

    def _believe(self, told: BinlogState) -> None:
        self._losses.known(told, self.state)
        self.state = told.copy()
        self.certain = True

    def _deleted(self, told: BinlogState) -> frozenset[int]:
        """Return the domains that are missing and could be deleted: no file has groups of them."""
        logged = (gtid for gtid in self.state.entries() if gtid not in self._first_pairs)
        oldest = self._oldest()
        in_use = {
            gtid.domain for gtid in logged if self._logged_in.get(gtid.domain, oldest) >= oldest
        }
        return frozenset(self.state.domains()).difference(told.domains(), in_use)

    def _report(self, told: BinlogState, place: Place, which: str, deleted: frozenset[int]) -> None:
        """Report in what a state differs from the running one."""
        ours = [gtid for gtid in self.state.entries() if gtid.domain not in deleted]
        lower = [gtid for gtid in ours if (told.seq(gtid.domain, gtid.server) or 0) < gtid.seq]
        higher = [
            gtid
            for gtid in told.entries()
            if (self.state.seq(gtid.domain, gtid.server) or 0) < gtid.seq
        ]
        if not lower and not higher and told == BinlogState(ours):
            for domain in sorted(deleted):
                text = f"domain {domain} was deleted from the GTID state"
                self._losses.report(Finding.at(Kind.DOMAIN_DELETED, place, text))
            self.state = told.copy()
            return
        if self._is_unwritten_first(lower, higher):
            self.state = told.copy()
            return
        if higher and not lower:
            text = f"{which} GTID state tells of groups that are not there"
            lost = self._describe_missing(told)
            self._losses.report(Finding.at(Kind.GROUPS_MISSING, place, text, lost=lost))
            self.state = told.copy()
            return
        wrong = lower + higher
        text = f"{which} GTID state differs from the groups before it"
        text += f" in {_name(wrong)}" if wrong else " in what is a domain's newest"
        self._losses.report(Finding.at(Kind.STATE_DIFFERS, place, text))

    def _describe_missing(self, told: BinlogState) -> str:
        """Return what a state tells of and the running one does not."""
        ranges: list[GtidRange] = []
        is_all = True
        for domain, servers in servers_by_domain(told).items():
            newest = told.newest(domain)
            assert newest is not None
            missing = missing_in(servers, newest, self.state)
            for gap in missing.ranges:
                ranges += name_servers(gap, servers)
            is_all &= missing.is_all
        return describe(ranges, is_all=is_all)

    def _is_unwritten_first(self, lower: list[Gtid], higher: list[Gtid]) -> bool:
        """
        Tell whether only that GTID is new which file 0 leaves out of its first state.

        It is left out when it is alone and has number 1. Source: ibb-format 5.2.
        """
        first = self._began_empty and not lower and len(higher) == 1 and higher[0].seq == 1
        self._began_empty = False
        return first


def _name(gtids: list[Gtid]) -> str:
    shown = ", ".join(map(str, gtids[:PAIRS_NAMED_MAX]))
    more = len(gtids) - PAIRS_NAMED_MAX
    return f"{shown} and {more} more" if more > 0 else shown
