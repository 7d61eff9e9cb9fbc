"""
Which of many threads work, while others wait for their clients: a kernel.

A few threads at a time make the best of the processors and the interpreter, but one whose client
is slow to read does nothing. So who works has a permit, and lends it while it waits. Who comes back
is before those that begin; of either kind, who asks first is first. Runs as plain Python, too;
`work_permits.pxd` gives it C types.
"""

from __future__ import annotations

from typing import Final

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython

from .thread_locks import ThreadLocks

THREADS_MAX: Final = 128
_coming_back, _beginning, _kinds = 0, 1, 2  # of those that ask for a permit


class WorkPermits:
    """
    The permits of some threads; safe to use from all of them.

    Args:
        permits: how many may work at a time.
        resting_max: how many may wait for something else meanwhile; there are no more threads.

    Attributes:
        resting: how many do.
        free: how many more may work just now.
    """

    def __init__(self, permits: int, resting_max: int = 0) -> None:
        if permits < 1 or resting_max < 0 or permits + resting_max > THREADS_MAX:
            raise ValueError(f"{permits} permits, {resting_max} threads without one")
        self.free, self.resting, self._resting_max = permits, 0, resting_max
        self._threads = permits + resting_max
        self._mutex, self._turns = ThreadLocks(1), ThreadLocks(_kinds * self._threads)
        for turn in range(_kinds * self._threads):
            self._turns.take(turn)  # the next who does so waits
        if not cython.compiled:
            self._asking, self._first = [0] * _kinds, [0] * _kinds

    def take(self) -> None:
        """Return with a permit."""
        with cython.nogil:
            self._mutex.take(0)
            self._take(_beginning)

    def give(self) -> None:
        """Let another one have the permit."""
        with cython.nogil:
            self._mutex.take(0)
            self._hand_on()
            self._mutex.give(0)

    def give_way(self) -> None:
        """Return with a permit again, behind those that have come back."""
        with cython.nogil:
            self._mutex.take(0)
            if self._asking[_coming_back] == 0:
                self._mutex.give(0)
            else:
                self._hand_on()
                self._take(_beginning)

    def lend(self) -> bool:
        """Let others have the permit until `take_back`; False: too many have done so already."""
        return self.rest()

    def take_back(self) -> None:
        """Return with a permit again."""
        with cython.nogil:
            self.work_on()

    def rest(self) -> bool:
        """Do as `lend`, without the interpreter."""
        self._mutex.take(0)
        may = self.resting < self._resting_max
        if may:
            self.resting += 1
            self._hand_on()
        self._mutex.give(0)
        return may

    def work_on(self) -> None:
        """Do as `take_back`, likewise."""
        self._mutex.take(0)
        self.resting -= 1
        self._take(_coming_back)

    def _take(self, kind: int) -> None:
        """Take a permit, and release the mutex."""
        if self.free > 0:
            self.free -= 1
            self._mutex.give(0)
            return
        turn = kind * self._threads + (self._first[kind] + self._asking[kind]) % self._threads
        self._asking[kind] += 1
        self._mutex.give(0)
        self._turns.take(turn)

    def _hand_on(self) -> None:
        """Give a permit to who is to have it next."""
        for kind in range(_kinds):
            if self._asking[kind] > 0:
                turn = self._first[kind]
                self._first[kind] = (turn + 1) % self._threads
                self._asking[kind] -= 1
                self._turns.give(kind * self._threads + turn)
                return
        self.free += 1
