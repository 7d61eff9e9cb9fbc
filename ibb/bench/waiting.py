"""Waiting for what a measurement begins with."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from .errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Callable

POLL_SECONDS: Final = 0.05


def wait_until(condition: Callable[[], bool], seconds: float, failure: str) -> None:
    """
    Return when *condition* holds.

    Args:
        condition: asked again and again.
        seconds: for so long.
        failure: what has not come about behind that.

    Raises:
        BenchError: it did not come about.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise BenchError(f"{failure} within {seconds:g} s")
        time.sleep(POLL_SECONDS)
