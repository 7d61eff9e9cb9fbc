"""A server that runs as a process of ours: whether it is there, and how it is ended."""

import signal
import subprocess
from typing import Any


class ServerProcess:
    """Holds the process that a `start` of its own has made, if it runs."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[Any] | None = None

    @property
    def pid(self) -> int:
        """The process's id; it must run."""
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """End it with SIGKILL, as a crash would, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._reap(None)

    def _terminate(self, seconds: float) -> int | None:
        """End it in order; return its exit status, None: it was killed after so many seconds."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._reap(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def _reap(self, seconds: float | None) -> int:
        assert self._process is not None
        status = self._process.wait(seconds)
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process = None
        return status
