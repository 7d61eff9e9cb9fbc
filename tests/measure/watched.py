"""Processes of a measurement, and the anonymous memory that they take."""

from __future__ import annotations

import multiprocessing
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..integration.ibb_process import with_children

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

SAMPLE_SECONDS = 0.02
SPAWN = multiprocessing.get_context("spawn")


class Figures(NamedTuple):
    """What a process took: seconds, and bytes of anonymous memory at rest and at most."""

    seconds: float
    idle: int
    peak: int

    @property
    def over_idle(self) -> int:
        return self.peak - self.idle


def anonymous_bytes(pid: int) -> int:
    """Return the anonymous resident memory of a process and all below it; 0 once it is gone."""
    total = 0
    try:
        for one in with_children(pid):
            for line in Path(f"/proc/{one}/status").read_text().splitlines():
                if line.startswith("RssAnon:"):
                    total += int(line.split()[1]) << 10
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return total


class Watch:
    """Samples a process until `stop`; `peak` in bytes."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self.idle = self.peak = anonymous_bytes(pid)
        self._begun = time.monotonic()
        self._thread.start()

    def stop(self) -> Figures:
        """End and return what was seen."""
        seconds = time.monotonic() - self._begun
        self._ended.set()
        self._thread.join()
        return Figures(seconds, self.idle, self.peak)

    def _sample(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            self.peak = max(self.peak, anonymous_bytes(self._pid))


class Helper:
    """
    A process that runs *role*, which gets a connection and *arguments*.

    The role sends something when it is ready, waits for a word, works, and sends its result.
    """

    def __init__(self, role: Callable[..., None], *arguments: object) -> None:
        self._connection, other = SPAWN.Pipe()
        self._process = SPAWN.Process(target=role, args=(other, *arguments), daemon=True)
        self._process.start()
        other.close()
        self.ready = self._connection.recv()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def go(self) -> None:
        """Let it work."""
        self._connection.send("go")

    def result(self) -> int:
        """Return what it sends at last."""
        result: int = self._connection.recv()
        return result

    def close(self) -> None:
        """End it."""
        self._connection.close()
        self._process.terminate()
        self._process.join()


@contextmanager
def helping(role: Callable[..., None], *arguments: object) -> Iterator[Helper]:
    """Lend a helper for a block."""
    helper = Helper(role, *arguments)
    try:
        yield helper
    finally:
        helper.close()


def say_ready(connection: Connection, what: object = None) -> None:
    """Tell that the role is ready, and wait for the word."""
    connection.send(what)
    connection.recv()
