"""`ibb serve` as a process of its own, the way users run it."""

import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Self

from ibb.demo.scratch_server import free_port

from .mariadb_server import PASSWORD, USER

READY_SECONDS_MAX = 30.0
STOP_SECONDS_MAX = 30.0
SAMPLE_SECONDS = 0.05


def ibb(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run one `ibb` command to its end and return its status and output."""
    return subprocess.run(
        [sys.executable, "-m", "ibb", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def children(pid: int) -> list[int]:
    """Return the process *pid* and everything below it."""
    below = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        below += [int(word) for word in (task / "children").read_text().split()]
    return [pid, *(found for child in below for found in children(child))]


class IbbProcess:
    """
    One `ibb serve` over *directory*; it keeps its port over restarts.

    Args:
        directory: of the `.ibb` files.
        folder: for accounts, log and password file; shared by no other process.
        arguments: more of `ibb serve`'s arguments.
    """

    def __init__(self, directory: Path, folder: Path, *arguments: str) -> None:
        self.directory = directory
        self.folder = folder
        self.arguments = arguments
        self.port = free_port()
        self.log = folder / "ibb.log"
        self._process: subprocess.Popen[str] | None = None
        self._accounts = folder / "accounts.toml"

    def relay_from(self, port: int, password: str = PASSWORD) -> Self:
        """Make it a relay of the primary on loopback *port*."""
        secret = self.folder / "upstream-password"
        secret.write_text(password + "\n")
        secret.chmod(0o600)
        self.arguments += (
            f"--upstream=mariadb://{USER}@127.0.0.1:{port}",
            f"--upstream-password-file={secret}",
        )
        return self

    def start(self) -> Self:
        """Start and wait for the `ready` line."""
        assert self._process is None, "already started"
        if not self._accounts.exists():
            words = ("--file", str(self._accounts), "--grant", "REPLICATION SLAVE")
            added = ibb("account", "add", *words, "--password-stdin", USER, stdin=PASSWORD)
            assert added.returncode == 0, added.stderr
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "ibb", "serve", str(self.directory)),
                    f"--listen=127.0.0.1:{self.port}",
                    f"--accounts={self._accounts}",
                    *self.arguments,
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        line = self._first_line()
        assert line == f"ready 127.0.0.1:{self.port}\n", f"{line!r}, log: {self.log_tail()}"
        return self

    def stop(self) -> int:
        """End it in order and return its exit status."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._reap()

    def kill(self) -> None:
        """End it with SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._reap()

    def close(self) -> None:
        """Leave nothing running, whatever happened before."""
        if self._process is not None:
            self.kill()

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def log_tail(self) -> str:
        """Return the end of its log, for a failure's text."""
        return self.log.read_text()[-4000:]

    def anonymous_bytes(self) -> int:
        """Return the anonymous resident memory of the process and everything below it."""
        assert self._process is not None
        total = 0
        for pid in children(self._process.pid):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Anonymous:"):
                    total += int(line.split()[1]) << 10
        return total

    def _first_line(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        lines: queue.Queue[str] = queue.Queue()
        reader = self._process.stdout.readline
        threading.Thread(target=lambda: lines.put(reader()), daemon=True).start()
        try:
            return lines.get(timeout=READY_SECONDS_MAX)
        except queue.Empty:
            return "(no line)"

    def _reap(self) -> int:
        assert self._process is not None
        process, self._process = self._process, None
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"ibb did not end: {self.log_tail()}") from None
        finally:
            assert process.stdout is not None
            process.stdout.close()
        return process.returncode


class MemoryWatch:
    """Samples a process's anonymous memory while a block runs: `.before` and `.peak`, in bytes."""

    def __init__(self, process: IbbProcess) -> None:
        self._process = process
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self.before = self.peak = process.anonymous_bytes()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            self.peak = max(self.peak, self._process.anonymous_bytes())
