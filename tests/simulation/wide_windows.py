"""
Makes the moments between two lines long, so that threads meet where they otherwise hardly would.

A trace function sleeps now and then before a line of the code that it watches, and of what that
code itself calls: what a lock keeps together is then far apart for who does not take the lock.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

SWITCH_SECONDS = 1e-6  # between two threads of the interpreter
SLEEP_SECONDS = 2e-4
SLEEP_CHANCE = 0.25  # before each line
OWN_CODE = "/ibb/"

Trace = Callable[[FrameType, str, Any], Any]


@contextmanager
def wide_windows(seed: int, watched: Callable[[CodeType], bool]) -> Iterator[None]:
    """Sleep between lines of *watched* code, in threads that are begun inside the block."""
    rng = random.Random(seed)

    def sleep(event: str) -> None:
        if event == "line" and rng.random() < SLEEP_CHANCE:
            time.sleep(rng.random() * SLEEP_SECONDS)

    def line(_: FrameType, event: str, __: Any) -> Trace:
        sleep(event)
        return line

    def called_line(_: FrameType, event: str, __: Any) -> Trace:
        sleep(event)
        return called_line

    def call(frame: FrameType, _: str, __: Any) -> Trace | None:
        caller = frame.f_back
        if watched(frame.f_code):
            return line
        is_called = caller is not None and caller.f_trace is line
        return called_line if is_called and OWN_CODE in frame.f_code.co_filename else None

    interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    threading.settrace(call)
    try:
        yield
    finally:
        threading.settrace(None)  # type: ignore[arg-type]
        sys.setswitchinterval(interval)
