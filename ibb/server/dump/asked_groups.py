"""The groups behind which a semi-synchronous replica was asked for an acknowledgement."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from ibb.protocol.gtid import Gtid
    from ibb.storage.position import Position

ASKED_MAX: Final = 4096  # requests without an answer; an answer to a later one counts for them


class AskedGroup(NamedTuple):
    """An acknowledgement was asked for behind a group."""

    place: tuple[int, int]  # number of the file and position in the client's stream
    gtid: Gtid
    end: Position  # of the binlog behind the group


class AskedGroups:
    """Those of one dump, of which one thread asks and another has the answers."""

    def __init__(self) -> None:
        # The oldest goes when there are too many: between a look at it and its removal that would
        # leave another one to be removed, which nobody has acknowledged.
        self._mutex = threading.Lock()
        self._asked: deque[AskedGroup] = deque(maxlen=ASKED_MAX)

    def add(self, group: AskedGroup) -> None:
        """Note a group that is behind all others."""
        with self._mutex:
            self._asked.append(group)

    def answered(self, place: tuple[int, int]) -> AskedGroup | None:
        """Forget the groups up to *place*; return the last of them, None without any."""
        newest = None
        with self._mutex:
            while self._asked and self._asked[0].place <= place:
                newest = self._asked.popleft()
        return newest
