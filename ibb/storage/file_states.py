"""
The full states with which files begin, once they were read: those of a file never change.

Where they only rise from one file to the next, the newest one that is before a position is found by
a few of them. That has to be seen file by file, since a server may log a lower number than before,
and a domain may be deleted; so it is kept, too, and servers note it for their next start
(`rising_note`).
Source: ibb-format 8.3.
"""

import threading
from collections.abc import Callable

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import GtidPosition

PAIRS_MAX = 1 << 19  # (domain, server) pairs of all states that are kept
POOR_GUESSES_MAX = 2  # behind which the middle is taken once
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
        """Numbers of files one behind the other, whose states rise; the last one's is known."""
        return self._rising

    def get(self, file_no: int) -> BinlogState | None:
        """Return the state that a file begins with, if it is known; it is not to be changed."""
        return self._states.get(file_no)

    def add(self, file_no: int, state: BinlogState) -> None:
        """Keep a state, as long as there is room for it; nobody changes it any more."""
        with self._mutex:
            if file_no not in self._states:
                if self._pairs + len(state) > PAIRS_MAX:
                    self._trim()
                if self._pairs + len(state) > PAIRS_MAX:
                    return
                self._states[file_no] = state
                self._pairs += len(state) + 1  # a file without pairs takes room, too
            self._extend(file_no)

    def has_room(self) -> bool:
        """Tell whether half of the room is left, or is now: of states that rise few are needed."""
        with self._mutex:
            if self._pairs > PAIRS_MAX // 2:
                self._trim()
            return self._pairs <= PAIRS_MAX // 2

    def trust(self, rising: range) -> bool:
        """Take it that the states of some files rise, the last one's is known; return whether."""
        with self._mutex:
            if rising[-1] not in self._states or not set(self._rising) <= {rising[-1]}:
                return False
            self._rising = rising
            return True

    def forget(self, file_no: int) -> None:
        """Know nothing of a file that has gone, is damaged, or may be another one from now on."""
        with self._mutex:
            self._drop(file_no)
            if file_no in self._rising:
                self._rising = range(file_no + 1, self._rising.stop)

    def newest_before(
        self,
        rising: range,
        position: GtidPosition,
        read: Callable[[int], BinlogState],
        is_certain: Callable[[int, BinlogState], bool] = lambda *_: False,
    ) -> tuple[int, BinlogState] | None:
        """
        Return the newest of some files whose state is before a position; None if there is none.

        Args:
            rising: some of what `rising` was.
            position: what a reader has.
            read: returns the state of a file that is not known; raises KeyError if it has none.
            is_certain: tells of one whose state is before it whether it surely is the newest,
                where the next one would have to be read to see that.

        Raises:
            KeyError: one of them has gone since, or is damaged.
        """
        found: tuple[int, BinlogState] | None = None
        above: tuple[int, BinlogState] | None = None
        low, high = rising.start, rising.stop  # the file is one of these, or none is
        poor = 0  # guesses one behind the other that left more than half of them
        while low < high:
            size, middle, is_guess = high - low, (low + high) // 2, False
            if above is None:
                middle = high - 1  # most who ask are near the end
            elif found is None:
                middle = low
            elif poor < POOR_GUESSES_MAX:  # one that was right wants a look at the next file
                middle = min(max(_guess(found, above, position), low), high - 1)
                is_guess = True
            state = self._states.get(middle)
            if state is None:
                if middle not in self._rising:
                    raise KeyError(middle)
                state = read(middle)
            if state.is_before(position):
                found, low = (middle, state), middle + 1
                if is_guess and low not in self._states and is_certain(middle, state):
                    return found
            else:
                above, high = (middle, state), middle
            poor = poor + 1 if is_guess and high - low > size // 2 else 0
        return found

    def _drop(self, file_no: int) -> None:
        state = self._states.pop(file_no, None)
        if state is not None:
            self._pairs -= len(state) + 1

    def _trim(self) -> None:
        """Forget the states between the ends of those that rise: they are read where compared."""
        for file_no in self._rising[1:-1]:
            self._drop(file_no)

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
        state, later = self._states.get(file_no), self._states.get(file_no + 1)
        if state is None or later is None or len(later) > RISING_PAIRS_MAX:
            return False
        return state.rises_to(later)


def _guess(
    found: tuple[int, BinlogState], above: tuple[int, BinlogState], position: GtidPosition
) -> int:
    """Guess the newest file before a position, as if files had equally many groups."""
    (low, earlier), (high, later) = found, above
    for domain, server, seq in position:
        first, last = earlier.seq(domain, server) or 0, later.seq(domain, server) or 0
        if first <= seq < last:
            return low + (high - low) * (seq - first) // (last - first)
    return (low + high) // 2
