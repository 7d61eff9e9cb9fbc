"""
A real MariaDB server in a temporary folder: made, started, stopped and killed at will.

It keeps nothing of value: everything that costs a sync is off, the only account is `root`
without a password on the unix socket, and it listens on loopback.
"""

import os
import random
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from ibb.protocol.errors import IbbError

from .installation import Installation
from .server_process import ServerProcess

START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 120.0
STATEMENT_SECONDS_MAX = 120.0
POLL_SECONDS = 0.02
LOG_CHARACTERS_MAX = 2000  # of the error log, quoted when a server fails
# Below the range that Linux gives to outgoing connections, so that a server that is down for a
# moment finds its port free when it comes back.
PORTS = range(20000, 32000)
PORT_TRIES_MAX = 200

SCRATCH_OPTIONS = (
    "--bind-address=127.0.0.1",
    "--skip-name-resolve",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-doublewrite=0",
    "--innodb-log-file-size=64M",
    "--innodb-buffer-pool-size=64M",
    "--innodb-stats-persistent=0",
    "--sync-binlog=0",
    "--performance-schema=0",
)


class ScratchServerError(IbbError):
    """A MariaDB server or client did not do what was asked; the text holds its own words."""


def free_port() -> int:
    """
    Return a loopback TCP port that nobody listens on, outside the ephemeral range.

    Raises:
        ScratchServerError: none was found in `PORT_TRIES_MAX` tries.
    """
    for port in random.sample(PORTS, PORT_TRIES_MAX):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise ScratchServerError(f"no free port in {PORTS} in {PORT_TRIES_MAX} tries")


class ScratchServer(ServerProcess):
    """
    One server in *folder*, which must be short enough for a unix socket's name (107 bytes).

    Args:
        installation: the version to run.
        folder: an existing empty folder; holds data, socket and error log.
        server_id: `server_id`, different for every member of a topology.
        options: more of mariadbd's options; a later one wins over an earlier.
    """

    def __init__(
        self,
        installation: Installation,
        folder: Path,
        *,
        server_id: int,
        options: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self.installation = installation
        self.folder = folder
        self.server_id = server_id
        self.options = list(options)
        self.port = free_port()
        self.data = folder / "data"
        self.socket = folder / "sock"
        self.error_log = folder / "error.log"

    def initialise(self) -> None:
        """
        Make the data folder with the system tables.

        Raises:
            ScratchServerError: mariadbd refused, with the end of what it said.
        """
        self.data.mkdir()
        command = self._command("--bootstrap", "--innodb-log-file-size=16M")
        done = subprocess.run(
            command,
            input=self.installation.system_tables().encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=START_SECONDS_MAX,
            check=False,
        )
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace")
            raise ScratchServerError(f"mariadbd --bootstrap: {said[-LOG_CHARACTERS_MAX:]}")

    def start(self) -> None:
        """
        Start mariadbd and wait until it answers.

        Raises:
            ScratchServerError: it ended, or did not answer in `START_SECONDS_MAX`.
        """
        assert self._process is None, "already started"
        with self.error_log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(*self._server_options()),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the parent; we stop it in order
            )
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise ScratchServerError(f"mariadbd did not start: {self._log_tail()}")
            time.sleep(POLL_SECONDS)

    def stop(self) -> None:
        """
        Shut down in order and wait for the end; nothing to do when it does not run.

        Raises:
            ScratchServerError: still there after `STOP_SECONDS_MAX`; it was killed then.
        """
        if self._process is not None and self._terminate(STOP_SECONDS_MAX) is None:
            raise ScratchServerError(f"mariadbd did not stop: {self._log_tail()}")

    def client_command(self, *arguments: str) -> list[str]:
        """Return the command line of the `mariadb` client as root on the unix socket."""
        return self.installation.command(
            "mariadb", "--no-defaults", f"--socket={self.socket}", "--user=root", *arguments
        )

    def sql(self, statements: str) -> list[list[str]]:
        """
        Run *statements* through the `mariadb` client and return the rows of their answers.

        Every value is text as the client prints it (`NULL` for null).

        Raises:
            ScratchServerError: a statement failed; the text is the client's.
        """
        done = subprocess.run(
            self.client_command("--batch", "--skip-column-names"),
            input=statements.encode(),
            capture_output=True,
            timeout=STATEMENT_SECONDS_MAX,
            check=False,
        )
        if done.returncode != 0:
            raise ScratchServerError(done.stderr.decode(errors="replace").strip())
        return [line.split("\t") for line in done.stdout.decode(errors="replace").splitlines()]

    def _answers(self) -> bool:
        try:
            self.sql("SELECT 1;")
        except ScratchServerError:
            return False
        return True

    def _server_options(self) -> list[str]:
        return [
            *SCRATCH_OPTIONS,
            f"--port={self.port}",
            f"--socket={self.socket}",
            f"--pid-file={self.folder / 'pid'}",
            f"--server-id={self.server_id}",
            *self.options,
        ]

    def _command(self, *arguments: str) -> list[str]:
        base, share = self.installation.base, self.installation.share()
        # mariadbd refuses to run as root unless told so.
        user = ["--user=root"] if os.geteuid() == 0 else []
        return self.installation.command(
            "mariadbd",
            "--no-defaults",
            *user,
            f"--basedir={base}",
            f"--lc-messages-dir={share}",
            f"--character-sets-dir={share / 'charsets'}",
            f"--datadir={self.data}",
            f"--tmpdir={self.folder}",
            *arguments,
        )

    def _log_tail(self) -> str:
        return self.error_log.read_text(errors="replace")[-LOG_CHARACTERS_MAX:]
