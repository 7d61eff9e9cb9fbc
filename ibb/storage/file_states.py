"""
The full states with which files begin, once they were read: those of a file never change.

Where they only rise from one file to the next, the newest one that is before a position is found by
a few of them. That has to be seen file by file, since a server may log a lower number than before,
and a domain may be deleted; so it is kept, too. Source: ibb-format 8.3.
"""

import threading

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import GtidPosition

PAIRS_MAX = 1 << 19  # (domain, server) pairs of all states that are kept
RISING_PAIRS_MAX = 256  # of a state; to compare larger ones takes longer than it saves


class FileStates:
    """The states of one directory. Safe to use from several threads."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._states: dict[int, BinlogState] = {}
        self._pairs = 0
        self._rising = range(0)

    @property
    def rising(self) -> range:
        """Numbers of files one behind the other; whose states are known, and rise."""
        return self._rising

    def get(self, file_no: int) -> BinlogState | None:
        """Return the state that a file begins with, if it is known; it is not to be changed."""
        return self._states.get(file_no)

    def add(self, file_no: int, state: BinlogState) -> None:
        """Keep a state, as long as there is room for it; nobody changes it any more."""
        with self._mutex:
            if file_no not in self._states:
                if self._pairs + len(state) > PAIRS_MAX:
                    return
                self._states[file_no] = state
                self._pairs += len(state) + 1  # a file without pairs takes room, too
            self._extend(file_no)

    def forget(self, file_no: int) -> None:
        """Know nothing of a file that has gone, or may be another one from now on."""
        with self._mutex:
            state = self._states.pop(file_no, None)
            if state is not None:
                self._pairs -= len(state) + 1
            if file_no in self._rising:
                self._rising = range(file_no + 1, self._rising.stop)

    def newest_before(
        self, rising: range, position: GtidPosition
    ) -> tuple[int, BinlogState] | None:
        """
        Return the newest of some files whose state is before a position; None if there is none.

        Args:
            rising: some of what `rising` was.
            position: what a reader has.

        Raises:
            KeyError: one of them has gone since.
        """
        found = None
        low, high = rising.start, rising.stop  # the file is one of these, or none is
        while low < high:
            middle = (low + high) // 2
            state = self._states[middle]
            if state.is_before(position):
                found, low = (middle, state), middle + 1
            else:
                high = middle
        return found

    def _extend(self, file_no: int) -> None:
        """See how far states rise, with that of a file among them."""
        start, stop = self._rising.start, self._rising.stop
        if start == stop:
            start, stop = file_no, file_no + 1
        while stop in self._states:
            if not self._rises(stop - 1):
                start = stop  # those before are walked over again
            stop += 1
        while start - 1 in self._states and self._rises(start - 1):
            start -= 1
        self._rising = range(start, stop)

    def _rises(self, file_no: int) -> bool:
        state, later = self._states[file_no], self._states[file_no + 1]
        return len(later) <= RISING_PAIRS_MAX and state.rises_to(later)
