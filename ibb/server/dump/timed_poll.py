"""
A clock, and the wait for a socket, for kernels that have no time for the interpreter: a kernel.

Runs as plain Python, too; `timed_poll.pxd` gives it C types.
"""

from __future__ import annotations

import select
import time

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython


def clock() -> int:
    """Return nanoseconds of a clock that only goes on."""
    if cython.compiled:
        clock_gettime(CLOCK_MONOTONIC, cython.address(now))  # noqa: F821
        seconds = now.tv_sec  # noqa: F821
        return seconds * 1_000_000_000 + now.tv_nsec  # noqa: F821
    return time.monotonic_ns()


def can_take(descriptor: int, nanoseconds: int) -> bool:
    """Tell whether a socket takes something within some time, or would say why not."""
    if cython.compiled:
        asked.fd, asked.events, asked.revents = descriptor, POLLOUT, 0  # noqa: F821
        return poll(cython.address(asked), 1, nanoseconds // 1_000_000 + 1) > 0  # noqa: F821
    return _can_take(descriptor, nanoseconds / 1e6)


def _can_take(descriptor: int, milliseconds: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return bool(poll.poll(milliseconds))
