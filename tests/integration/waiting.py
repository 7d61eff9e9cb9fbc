"""Waiting for a condition instead of for a while."""

import time
from collections.abc import Callable

POLL_SECONDS = 0.05


def wait_until(condition: Callable[[], object], seconds: float, what: object = "") -> None:
    """
    Return when *condition* holds.

    Args:
        condition: is called again and again.
        seconds: after which it is a failure.
        what: is shown then; called first if it can be.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            shown = what() if callable(what) else what
            raise AssertionError(f"not within {seconds} s: {shown}")
        time.sleep(POLL_SECONDS)
