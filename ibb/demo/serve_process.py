"""`ibb serve` as a process of its own, started as a user starts it."""

import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from ibb.protocol.errors import IbbError

from .server_process import ServerProcess

READY_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 60.0
COMMAND_SECONDS_MAX = 60.0
GRANTS = "REPLICATION SLAVE, BINLOG MONITOR"
LOG_CHARACTERS_MAX = 4000  # of the log, quoted when something fails


class ServeProcessError(IbbError):
    """`ibb` did not do what was asked; the text holds the end of its log."""


def run_ibb(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run one `ibb` command to its end; return its status, output and errors."""
    return subprocess.run(
        [sys.executable, "-m", "ibb", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS_MAX,
        check=False,
    )


class ServeProcess(ServerProcess):
    """
    One `ibb serve` over *directory*, with an account *user* that may replicate.

    Args:
        directory: of the `.ibb` files.
        folder: an existing folder for its accounts, passwords and log; of no other process.
        port: on loopback; 0 takes a free one, which a restart keeps.
        arguments: more of `ibb serve`'s arguments.
        grants: what the account may.
    """

    def __init__(
        self,
        directory: Path,
        folder: Path,
        *,
        user: str,
        password: str,
        port: int = 0,
        arguments: Sequence[str] = (),
        grants: str = GRANTS,
    ) -> None:
        super().__init__()
        self.directory = directory
        self.folder = folder
        self.port = port
        self.arguments = list(arguments)
        self.log = folder / "ibb.log"
        self._user = user
        self._grants = grants
        self._password = password
        self._accounts = folder / "accounts.toml"

    def relay_from(self, port: int, *, password: str | None = None) -> Self:
        """Make it a relay of the primary on loopback *port*, where its user exists too."""
        secret = self.folder / "upstream-password"
        secret.touch(mode=0o600)
        secret.write_text((self._password if password is None else password) + "\n")
        self.arguments += (
            f"--upstream=mariadb://{self._user}@127.0.0.1:{port}",
            f"--upstream-password-file={secret}",
        )
        return self

    def start(self) -> Self:
        """
        Start and wait for the `ready` line.

        Raises:
            ServeProcessError: it ended, or was not ready in `READY_SECONDS_MAX`.
        """
        assert self._process is None, "already started"
        if not self._accounts.exists():
            self._add_account()
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        assert self._process.stdout is not None
        # readline has no time limit of its own; a killed process ends it.
        timer = threading.Timer(READY_SECONDS_MAX, self._process.kill)
        timer.start()
        try:
            line = self._process.stdout.readline()
        finally:
            timer.cancel()
        word, _, address = line.rstrip().partition(" ")
        if word != "ready":
            self.kill()
            raise ServeProcessError(f"ibb serve did not start: {line}{self.log_tail()}")
        self.port = int(address.rpartition(":")[2])
        return self

    def stop(self) -> int:
        """
        End it in order and return its exit status.

        Raises:
            ServeProcessError: still there after `STOP_SECONDS_MAX`; it was killed then.
        """
        status = self._terminate(STOP_SECONDS_MAX)
        if status is None:
            raise ServeProcessError(f"ibb serve did not stop: {self.log_tail()}")
        return status

    def log_tail(self) -> str:
        """Return the end of its log."""
        return self.log.read_text(errors="replace")[-LOG_CHARACTERS_MAX:]

    def _command(self) -> list[str]:
        return [
            *(sys.executable, "-m", "ibb", "serve", str(self.directory)),
            f"--listen=127.0.0.1:{self.port}",
            f"--accounts={self._accounts}",
            *self.arguments,
        ]

    def _add_account(self) -> None:
        words = ("account", "add", "--file", str(self._accounts), "--grant", self._grants)
        done = run_ibb(*words, "--password-stdin", self._user, stdin=self._password)
        if done.returncode != 0:
            raise ServeProcessError(f"ibb account add: {done.stderr}")
