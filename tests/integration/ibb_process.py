"""`ibb serve` as tests run it, and what its memory is."""

import threading
from pathlib import Path
from typing import Self

from ibb.demo.scratch_server import free_port
from ibb.demo.serve_process import ServeProcess

from .mariadb_server import PASSWORD, USER

SAMPLE_SECONDS = 0.05


class IbbProcess(ServeProcess):
    """One `ibb serve` on a port that is known before it starts, with the rig's account."""

    def __init__(self, directory: Path, folder: Path, *arguments: str) -> None:
        super().__init__(
            directory,
            folder,
            user=USER,
            password=PASSWORD,
            port=free_port(),
            arguments=arguments,
        )

    def strike(self) -> None:
        """Send SIGKILL from another thread, whatever it does just now."""
        process = self._process
        if process is not None:
            process.kill()

    def anonymous_bytes(self) -> int:
        """Return the anonymous resident memory of the process and everything below it."""
        total = 0
        for pid in with_children(self.pid):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Anonymous:"):
                    total += int(line.split()[1]) << 10
        return total


def with_children(pid: int) -> list[int]:
    """Return the process *pid* and everything below it."""
    below = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        below += [int(word) for word in (task / "children").read_text().split()]
    return [pid, *(found for child in below for found in with_children(child))]


class MemoryWatch:
    """Samples a process's anonymous memory while a block runs: `before` and `peak`, in bytes."""

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
