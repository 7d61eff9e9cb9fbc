"""
Two threads meet at every place: one stops inside a call, the other does all that it can.

A lock that keeps the other out is not noticed; without it the other goes in between, at each
instruction in turn. So what a lock is for is shown without chance, and without its being named.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

OWN_CODE = "/ibb/"
KEPT_OUT_SECONDS = 0.01  # after which the other is believed to wait for a lock
HANG_SECONDS = 60.0
STOPS_MAX = 100  # of one scene; more instructions are passed over evenly
ANYWHERE = ("",)


class Meeting(NamedTuple):
    """
    What two threads do.

    Attributes:
        first: is stopped somewhere inside.
        second: is done meanwhile.
        check: what holds afterwards.
    """

    first: Callable[[], object]
    second: Callable[[], object]
    check: Callable[[], None]


def swapped(meeting: Meeting) -> Meeting:
    """Return the same with the other one stopped."""
    return Meeting(meeting.second, meeting.first, meeting.check)


class Stopped:
    """
    A thread that stops at its n-th instruction in the storage layer.

    Args:
        call: what it does.
        at: the number of the instruction; 0: none, they are only counted; None: nor that.
        within: how the names of the modules end that count.
    """

    def __init__(
        self, call: Callable[[], object], at: int | None, within: tuple[str, ...] = ANYWHERE
    ) -> None:
        self.failures: list[BaseException] = []
        self.instructions = 0
        self.has_stopped = threading.Event()  # or has ended
        self.may_go_on = threading.Event()
        self._at = at
        self._within = within
        self.thread = threading.Thread(target=self._run, args=(call,), daemon=True)
        self.thread.start()

    def _run(self, call: Callable[[], object]) -> None:
        if self._at is not None:
            sys.settrace(self._trace)
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - raised by `meet`
            self.failures.append(error)
        finally:
            sys.settrace(None)
            self.has_stopped.set()

    def _trace(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any] | None:
        file = frame.f_code.co_filename
        if OWN_CODE not in file or not file.endswith(self._within):
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        if event == "opcode":
            self.instructions += 1
            if self.instructions == self._at:
                self.has_stopped.set()
                self.may_go_on.wait(HANG_SECONDS)
        return self._trace


def meet(meeting: Meeting, at: int, within: tuple[str, ...]) -> int:
    """Let the second thread in at an instruction of the first; return how many it has had."""
    first = Stopped(meeting.first, at, within)
    assert first.has_stopped.wait(HANG_SECONDS)
    second = Stopped(meeting.second, None)
    second.thread.join(KEPT_OUT_SECONDS)
    first.may_go_on.set()
    for one in (first, second):
        one.thread.join(HANG_SECONDS)
        assert not one.thread.is_alive(), f"stopped at {at}: a thread hangs"
        for failure in one.failures:
            raise failure
    meeting.check()
    return first.instructions


def meet_everywhere(
    scene: Callable[[], Meeting], *, stops: int = STOPS_MAX, within: tuple[str, ...] = ANYWHERE
) -> int:
    """Let two threads meet at every instruction of the first; return at how many they did."""
    instructions = meet(scene(), 0, within)
    assert instructions > 0, "the first thread never came by where it is to be stopped"
    places = range(1, instructions + 1, -(-instructions // stops))
    for at in places:
        try:
            meet(scene(), at, within)
        except BaseException as error:
            error.add_note(f"the first thread was stopped at instruction {at} of {instructions}")
            raise
    return len(places)
