"""
How old a group is, for readers that are served late.

A group says when it was written. One whose time has not come yet, by a writer with a wrong clock
or `SET timestamp`, counts as written when it was seen to be there; the groups that were behind it
at that moment do as well, so that many such groups do not wait one after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ibb.server.log import get_log
from ibb.storage.position import Position

if TYPE_CHECKING:
    from ibb.storage.group_reader import StoredGroup
    from ibb.storage.history import History

    from .pacing import Pace

SKEW_SECONDS_MAX: Final = 60  # that clocks may differ by without a line in the log


class GroupAge:
    """
    Tells one reader when groups were written.

    Args:
        history: where the groups come from.
        pace: what the reader is allowed.
        server_id: of the reader, for the log.
    """

    def __init__(self, history: History, pace: Pace, server_id: int) -> None:
        self._history = history
        self._pace = pace
        self._server_id = server_id
        self._seen_to = Position(0, 0)  # the end of the history when a group was met
        self._seen_at = 0.0
        self._told = False

    def written_at(self, group: StoredGroup) -> float:
        """Return when *group* counts as written, in seconds since 1970; never later than now."""
        now, timestamp = self._pace.now(), group.timestamp
        if timestamp <= now:
            return timestamp
        if group.position >= self._seen_to:
            self._seen_to, self._seen_at = self._history.end(), now
            if timestamp > now + SKEW_SECONDS_MAX and not self._told:
                self._told = True
                get_log().warning(
                    "group_from_the_future",
                    gtid=str(group.gtid),
                    timestamp=timestamp,
                    replica_server_id=self._server_id,
                    waits_seconds=self._pace.delay,
                )
        return self._seen_at
