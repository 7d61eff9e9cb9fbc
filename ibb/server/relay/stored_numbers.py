"""
Which sequence numbers of a (domain, server) the store holds, exactly.

The binlog state knows only the newest one of each pair. That is enough unless an upstream sends a
number below it: then the history is read through once, and the pair's numbers are kept as runs.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from ibb.protocol.errors import IbbError
from ibb.storage.group_reader import GroupReader
from ibb.storage.position import Position

if TYPE_CHECKING:
    from ibb.protocol.group_run import GroupRun
    from ibb.protocol.gtid import Gtid
    from ibb.storage.history import History

RUNS_MAX: Final = 1_000_000  # of all pairs; one that counts up has a single run


class Runs:
    """A set of numbers as runs of neighbours."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []  # the last number of each run

    def add(self, number: int) -> None:
        """Add *number*, which may be there already."""
        at = bisect_right(self._starts, number)
        if at and number <= self._ends[at - 1]:
            return
        joins_left = at > 0 and self._ends[at - 1] == number - 1
        joins_right = at < len(self._starts) and self._starts[at] == number + 1
        if joins_left and joins_right:
            self._ends[at - 1] = self._ends[at]
            del self._starts[at], self._ends[at]
        elif joins_left:
            self._ends[at - 1] = number
        elif joins_right:
            self._starts[at] = number
        else:
            self._starts.insert(at, number)
            self._ends.insert(at, number)

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self._starts, number)
        return at > 0 and number <= self._ends[at - 1]

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self._starts)


class StoredNumbers:
    """
    Answers whether a GTID is stored.

    Args:
        history: the groups; what is not durable yet must be told by `note`.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._pairs: dict[tuple[int, int], Runs] = {}

    def holds(self, gtid: Gtid) -> bool:
        """
        Tell whether *gtid* is stored; the first question about a pair reads the whole history.

        Raises:
            IbbError: the numbers are so scattered that they take more than `RUNS_MAX` runs.
        """
        pair = gtid.domain, gtid.server
        if pair not in self._pairs:
            self._pairs[pair] = self._read(pair)
        return gtid.seq in self._pairs[pair]

    def note(self, gtid: Gtid) -> None:
        """Learn that *gtid* has been stored."""
        runs = self._pairs.get((gtid.domain, gtid.server))
        if runs is not None:
            runs.add(gtid.seq)

    def note_run(self, groups: GroupRun) -> None:
        """Learn that groups have been stored."""
        for start, stop, domain, server in groups.stretches() if self._pairs else ():
            runs = self._pairs.get((domain, server))
            if runs is not None:
                for seq in groups.seqs[start:stop]:
                    runs.add(seq)

    def _read(self, pair: tuple[int, int]) -> Runs:
        self._history.refresh()
        runs = Runs()
        known = sum(map(len, self._pairs.values()))
        reader = GroupReader(self._history.pages, Position(self._history.pages.first_file(), 0))
        while (group := reader.next()) is not None:
            if group.gtid is not None and (group.gtid.domain, group.gtid.server) == pair:
                runs.add(group.gtid.seq)
                if known + len(runs) > RUNS_MAX:
                    raise IbbError(f"sequence numbers of {pair} come in more than {RUNS_MAX} runs")
        return runs
