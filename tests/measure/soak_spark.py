"""A Spark stream that follows a relay while it is soaked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from ibb.pipeline.session import NoJava, find_java

STOP_SECONDS_MAX = 120.0


def why_no_spark() -> str:
    """Return what is missing, "" if a stream can be started."""
    if find_spec("pyspark") is None:
        return "PySpark is not installed (the extra `spark`)"
    try:
        find_java()
    except NoJava as error:
        return str(error)
    return ""


class Failure(NamedTuple):
    """What ended the stream, and when, in seconds since 1970."""

    at: float
    text: str


class SoakSpark:
    """
    `spark_follower.py` behind a server, as a session of processes of its own.

    Args:
        folder: an existing one, for its checkpoint and what it says.
        port: of the server, on loopback.
    """

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder
        self._port = port
        self._said = folder / "said"
        self._errors = folder / "errors"
        self._process: subprocess.Popen[bytes] | None = None
        self._read = 0  # bytes of what it said
        self._batches: dict[int, tuple[int, int, int]] = {}
        self.number = 0
        self.wrong: list[str] = []
        self.failures: list[Failure] = []

    def start(self) -> None:
        """Start it; does not wait."""
        with self._said.open("wb") as said, self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", f"{__package__}.spark_follower", str(self._port),
                 str(self._folder)],
                stdin=subprocess.DEVNULL, stdout=said, stderr=errors, start_new_session=True,
                env=os.environ | {"TMPDIR": str(self._folder)},  # that is left behind
            )  # fmt: skip

    def look(self) -> int:
        """Take in what it has said since; return the number of the newest group that it had."""
        with self._said.open("rb") as said:
            said.seek(self._read)
            whole, newline, _ = said.read().rpartition(b"\n")
        self._read += len(whole) + len(newline)
        for line in whole.decode(errors="replace").splitlines():
            self.take(line)
        return self.number

    def take(self, line: str) -> None:
        """Note what a line says."""
        kind, _, rest = line.partition(" ")
        if kind == "failed":
            at, _, text = rest.partition(" ")
            self.failures.append(Failure(float(at), text))
        elif kind == "batch":
            batch, *range_ = map(int, rest.split())
            self._take_batch(batch, (range_[0], range_[1], range_[2]))
        else:
            self.wrong.append(f"Spark: {line}")

    def _take_batch(self, batch: int, groups: tuple[int, int, int]) -> None:
        """Note a batch; one that comes again must have the same groups."""
        first, last, count = groups
        before = self._batches.get(batch)
        if before is None:
            self._batches[batch] = groups
            if first != self.number + 1 or count != last - first + 1:
                self.wrong.append(f"Spark: batch {batch} has {groups} behind {self.number}")
            self.number = max(self.number, last)
        elif before != groups:
            self.wrong.append(f"Spark: batch {batch} had {before}, and then {groups}")

    def processes(self) -> list[int]:
        """Return those of its processes that run Python."""
        assert self._process is not None
        found = []
        for pid in session_of(self._process.pid):
            with suppress(OSError):
                if not Path(f"/proc/{pid}/comm").read_text().startswith("java"):
                    found.append(pid)
        return found

    def stop(self) -> None:
        """End it in order, and note what it left unsaid."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        status = self._process.wait(STOP_SECONDS_MAX)
        self.look()
        if status:
            said = self._errors.read_text(errors="replace").splitlines()
            self.wrong.append(f"Spark ended with status {status}: {said[-1:]}")
        self.kill()

    def kill(self) -> None:
        """End what is left of it with SIGKILL."""
        if self._process is not None:
            for pid in session_of(self._process.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


def session_of(leader: int) -> list[int]:
    """Return the processes of a session."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(ProcessLookupError):
                if os.getsid(int(folder.name)) == leader:
                    found.append(int(folder.name))
    return found
