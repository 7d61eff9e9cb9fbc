"""
How far a relay is behind its upstream, told by the age of what comes in.

A primary that has more to send does not say how much. So what is known when a group has been stored
is how old it was by then: 0 where the relay keeps up, a day where a slow network feeds it a day's
backlog. That stays until the next group, or until a heartbeat, which a primary sends when it has
nothing more. What begins a dump says nothing: those events come whatever is behind them.
"""

from __future__ import annotations


class RelayLag:
    """
    Kept by the thread that stores, read by any; outlives connections, which change nothing of it.

    Times are in seconds since 1970: *now* by our clock, timestamps by the upstream's.

    Attributes:
        clock_ahead: seconds that our clock is ahead of the upstream's.
    """

    def __init__(self) -> None:
        self.clock_ahead = 0
        self._coming: int | None = None  # timestamp of the newest group, until it is stored
        self._stored_late = 0  # how old the newest was when it had been stored
        self._has_all = False  # nothing more, the upstream says

    def begin(self, timestamp: int) -> None:
        """Note that a group of this time has begun to come."""
        self._has_all = False
        self._coming = timestamp

    def heard_heartbeat(self) -> None:
        """Note that the upstream has nothing more, behind whole groups only."""
        self._has_all = True

    def stored(self, now: float) -> None:
        """Note that all groups that have come are whole, and stored."""
        if self._has_all:
            self._stored_late = 0
        elif self._coming is not None:
            self._stored_late = self._age(self._coming, now)
        self._coming = None

    def seconds(self, now: float) -> int:
        """Return the age of what comes in or is being stored; between, how old that was."""
        coming = self._coming
        return self._stored_late if coming is None else self._age(coming, now)

    def _age(self, timestamp: int, now: float) -> int:
        """Return it; a group made by a third clock may be of times to come."""
        return max(0, int(now) - timestamp - self.clock_ahead)
