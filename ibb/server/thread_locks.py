"""
Locks that are taken and given without the interpreter: a kernel, for kernels.

One thread may give what another one has taken. A lock counts: given before who waits for it has
woken, and given again, it is there for two. Runs as plain Python, too; `thread_locks.pxd` gives it
C types.
"""

from __future__ import annotations

import threading
from typing import Final

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython

LOCKS_MAX: Final = 256


class ThreadLocks:
    """
    A row of locks, which are free at first.

    Args:
        count: how many.
    """

    def __init__(self, count: int) -> None:
        if not 1 <= count <= LOCKS_MAX:
            raise ValueError(f"{count} locks")
        if not cython.compiled:
            self._locks = [threading.Semaphore() for _ in range(count)]
            return
        for which in range(count):
            self._locks[which] = PyThread_allocate_lock()  # noqa: F821
            if self._locks[which] == cython.NULL:
                raise MemoryError
            self._count = which + 1

    def __dealloc__(self) -> None:
        """Give the locks back to the system."""
        if cython.compiled:
            for which in range(self._count):
                PyThread_free_lock(self._locks[which])  # noqa: F821

    def take(self, which: int) -> None:
        """Return when a lock is free, and take it."""
        if cython.compiled:
            PyThread_acquire_lock(self._locks[which], 1)  # noqa: F821
        else:
            self._locks[which].acquire()

    def give(self, which: int) -> None:
        """Give a lock back, or to who waits for it."""
        if cython.compiled:
            PyThread_release_lock(self._locks[which])  # noqa: F821
        else:
            self._locks[which].release()
