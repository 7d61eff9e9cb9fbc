"""A pipeline that keeps a relay's tables while it is soaked."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

from ..integration.waiting import wait_until

STOP_SECONDS_MAX = 120.0  # also until it can be asked to, on a busy machine
COMMAND_SECONDS_MAX = 300.0
TAIL_BYTES = 4096
CAUGHT = re.compile(r"^SigCgt:\s*([0-9a-f]+)$", re.MULTILINE)
BATCH = re.compile(r"^batch to \d+-\d+-(\d+):", re.MULTILINE)


class SoakPipeline:
    """
    `ibb pipeline run` over a relay's directory, as a process of its own.

    Args:
        folder: an existing one, for its tables, configuration and log.
        source: the directory of `.ibb` files.
        socket: of the server that they come from.
        database: whose tables it keeps.
    """

    def __init__(self, folder: Path, source: Path, socket: Path, database: str) -> None:
        self._config = folder / "pipeline.toml"
        self._config.write_text(
            f'[source]\npath = "{source}"\n[target]\npath = "lake"\n[pipeline]\nname = "soak"\n'
            f'[tables]\ninclude = ["{database}.*"]\n[server]\nsocket = "{socket}"\n'
        )
        self._said = folder / "said"
        self._errors = folder / "errors"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process's id; it must run."""
        assert self._process is not None
        return self._process.pid

    @property
    def errors(self) -> list[str]:
        """The lines that it has written to stderr."""
        return self._errors.read_text(errors="replace").splitlines()

    @property
    def number(self) -> int:
        """The sequence number that its tables have."""
        with self._said.open("rb") as said:
            said.seek(max(said.seek(0, 2) - TAIL_BYTES, 0))
            found = BATCH.findall(said.read().decode())
        return int(found[-1]) if found else 0

    def start(self) -> None:
        """Start it; does not wait."""
        with self._said.open("ab") as said, self._errors.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ibb", "pipeline", "run", str(self._config)],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=errors,
                start_new_session=True,
            )

    def stop(self) -> int:
        """End it in order, once it is so far that it can be, and return its exit status."""
        assert self._process is not None
        wait_until(self._can_be_asked, STOP_SECONDS_MAX, lambda: self.errors)
        self._process.send_signal(signal.SIGTERM)
        status = self._process.wait(STOP_SECONDS_MAX)
        self._process = None
        return status

    def _can_be_asked(self) -> bool:
        """Tell whether it has its handler of SIGTERM, or has ended by itself."""
        assert self._process is not None
        if self._process.poll() is not None:
            return True
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        found = CAUGHT.search(status)
        assert found is not None
        return bool(int(found[1], 16) >> (signal.SIGTERM - 1) & 1)

    def kill(self) -> None:
        """End it with SIGKILL, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def differences(self) -> list[str]:
        """Catch up, while nobody writes; return a line for whatever is not as at the server."""
        caught_up, checked = self._command("run", "--once"), self._command("check")
        lines = [line for line in checked.stdout.splitlines() if not line.startswith("equal ")]
        if not checked.stdout:
            lines = ["no table was compared"]
        for done in (caught_up, checked):
            if done.returncode or done.stderr:
                lines.append(f"{done.args[4]}: status {done.returncode}: {done.stderr.strip()}")
        return lines

    def _command(self, name: str, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "ibb", "pipeline", name, str(self._config), *options],
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS_MAX,
            check=False,
        )
