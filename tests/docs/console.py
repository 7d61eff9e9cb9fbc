"""
Runs what the pages show: blocks of ```console, in a scratch folder, by one shell a page.

A line `$ command` is run, also over several lines, by `\\` or inside quotes; what stands behind it
must be what it says. A server (`ibb serve`, `mariadbd`) goes on in the background, as in a terminal
of its own, once it has said what stands behind it, among other lines. `...` stands for anything,
alone on its line for any lines. Times, hashes, numbers of connections, files and pages, ports, and
all of three digits and more may differ. Folders of the system lie in the scratch folder, what
belongs to the user `ibb` belongs to who runs the tests, and other machines are this one.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Self

from ibb.demo.scratch_server import free_port

from ..integration.waiting import wait_until

ROOT = Path(__file__).parents[2]
COMMAND_SECONDS_MAX = 120
SERVERS = re.compile(r"(?:ibb serve|(?:\S*/)?mariadbd) ")
BLOCK = re.compile(r"^```console[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PORTS = ("3306", "3307", "3308", "3309")
FOLDERS = re.compile(
    r"(?<![\w./-])/(?:backups|etc/(?:ibb|mysql|systemd)|opt/ibb|run/ibb|usr/src|var/lib/ibb)(?![\w-])"
)
OWNER = f"{os.getuid()}:{os.getgid()}"
_ELSEWHERE = (  # other users and machines, and who stands in for them
    (re.compile(r"\bibb:ibb\b"), OWNER),
    (re.compile(r"-o ibb -g ibb\b"), "-o {} -g {}".format(*OWNER.split(":"))),
    (re.compile(r"\b(?:primary|relay)\.internal\b"), "localhost"),
    (re.compile(r"\b10\.0\.7\."), "127.0.0."),
)
SAID_CHARACTERS_MAX = 4000  # of a server, quoted when it says something else
DONE = "-- done: "
END = f"status=$?; echo; echo '{DONE}'$status"
_SETTINGS = {"LC_ALL": "C.UTF-8", "COLUMNS": "200"}  # words and lines as on any machine
_PROGRAMS = f"{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin"
_VARYING = (  # what differs from run to run, and what stands for it in a comparison
    (re.compile(r"\d{4}-\d\d-\d\d[ T][ \d]\d:\d\d:\d\d(?:\.\d+)?Z?"), "TIME"),
    (re.compile(r"\b\d{6} [ \d]\d:\d\d:\d\d"), "TIME"),
    (re.compile(r"\b[0-9a-f]{12,}\b|0x[0-9A-F]{8}"), "HASH"),
    (re.compile(r"(?<!ERROR )(?<!error )\b\d+\.\d+ s\b"), "SECONDS"),
    (re.compile(r"(?<!ERROR )(?<!error )(?<!error: )\b\d{3,}\b"), "N"),
    (re.compile(r"\(\d+ MB/s\)|\(N MB/s\)"), "(SPEED)"),
    (re.compile(r"\b(Id: |thread_id=)\d+"), r"\1N"),
    (re.compile(r"\b\d+ (used pages|records|files|pages are)\b"), r"N \1"),
    (re.compile(r"-{2,}"), "--"),
    (re.compile(r"[ \t]+"), " "),
)


class Step(NamedTuple):
    """A command, and the lines that the page shows behind it."""

    command: str
    output: list[str]


def steps(page: str) -> list[Step]:
    """Return the commands of a page, in their order."""
    found: list[Step] = []
    for block in BLOCK.findall(page):
        open_ended = False
        for line in block.splitlines():
            if open_ended:
                found[-1] = Step(f"{found[-1].command}\n{line}", [])
            elif line.startswith("$ "):
                found.append(Step(line[2:], []))
            else:
                assert found, f"output without a command: {line}"
                found[-1].output.append(line)
            open_ended = not found[-1].output and _goes_on(found[-1].command)
    return found


def _goes_on(command: str) -> bool:
    """Tell whether a command wants another line: behind `\\`, or inside quotes."""
    try:
        shlex.split(command)
    except ValueError:
        return True
    return command.endswith("\\")


class Console:
    """
    One shell in *folder*; ends with everything that it has started.

    Args:
        folder: an existing folder, short enough for the names of sockets.
        wrapper: what the shell is started by, such as `unshare`.
        folders: which of the system's lie in *folder*.
        environment: of the shell, beside the usual one.
    """

    def __init__(
        self,
        folder: Path,
        *wrapper: str,
        folders: re.Pattern[str] = FOLDERS,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.folder = folder
        self._folders = folders
        self.ports = {port: str(free_port()) for port in PORTS}
        self._servers = 0
        # A server that starts removes what others had left in its folder for temporary tables.
        self._temporary = tempfile.TemporaryDirectory(prefix="ibb-", ignore_cleanup_errors=True)
        self._shell = subprocess.Popen(
            [*wrapper, "bash", "--noprofile", "--norc"],
            cwd=folder,
            env=os.environ
            | {
                "PATH": f"{folder}/bin:{folder}/opt/ibb/current/bin:{_PROGRAMS}",
                "HOME": str(folder),
                "TMPDIR": self._temporary.name,
                "PYTHONPATH": str(ROOT),
                **_SETTINGS,
                **environment,
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.wait()
        for pipe in (self._shell.stdin, self._shell.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):  # a shell that ended before it read all
                pipe.close()
        self._temporary.cleanup()

    def play(self, page: Path) -> None:
        """Run a page from its first command to its last one, and compare."""
        for step in steps(page.read_text()):
            self.check(step)

    def check(self, step: Step) -> None:
        """Run one command; raises AssertionError if it says something else, or fails."""
        if SERVERS.match(step.command):
            self._check_server(step)
            return
        status, said = self.run(step.command)
        shown = f"$ {step.command}\n" + "\n".join(said)
        assert status == 0, f"exit status {status}: {shown}"
        expected = [self.here(line) for line in step.output]
        assert matches(expected, said), f"the page says otherwise: {shown}"

    def run(self, command: str) -> tuple[int, list[str]]:
        """Return the exit status of a command and the lines that it said."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        with suppress(BrokenPipeError):  # what it said when it ended is told below
            self._shell.stdin.write(f"{{ {self.here(command)}\n}} </dev/null\n{END}\n")
            self._shell.stdin.flush()
        timer = threading.Timer(COMMAND_SECONDS_MAX, os.killpg, (self._shell.pid, signal.SIGKILL))
        timer.start()
        said: list[str] = []
        try:
            for line in self._shell.stdout:
                if line.startswith(DONE):
                    return int(line.removeprefix(DONE)), said[:-1] if said[-1] == "" else said
                said.append(line.rstrip("\n"))
        finally:
            timer.cancel()
        raise AssertionError(f"the shell ended in: {command}\n" + "\n".join(said))

    def _check_server(self, step: Step) -> None:
        self._servers += 1
        path = self.folder / f".server{self._servers}"
        command = step.command
        if command.startswith("ibb serve ") and "--listen" not in command:
            command += f" --listen 127.0.0.1:{PORTS[1]}"
        path.touch()
        self.run(f"{{ {command}\n}} >{path.name} 2>&1 </dev/null &")
        wanted = ["...", *map(self.here, step.output), "..."]
        wait_until(
            lambda: matches(wanted, path.read_text().splitlines()),
            COMMAND_SECONDS_MAX,
            lambda: f"$ {command}\n{path.read_text()[-SAID_CHARACTERS_MAX:]}",
        )

    def here(self, text: str) -> str:
        """Return a text with the ports, folders, users and machines of this run."""
        for written, port in self.ports.items():
            text = re.sub(rf"\b{written}\b", port, text)
        for pattern, place in _ELSEWHERE:
            text = pattern.sub(place, text)
        return self._folders.sub(rf"{self.folder}\g<0>", text)


def matches(expected: list[str], said: list[str]) -> bool:
    """Tell whether *said* is what a page shows."""
    pattern = ""
    for line in expected:
        if line.strip() == "...":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            parts = (re.escape(_plain(part)) for part in line.rstrip().split("..."))
            pattern += ".*".join(parts) + r"\n"
    text = "".join(f"{_plain(line.rstrip())}\n" for line in said)
    return re.fullmatch(pattern, text) is not None


def _plain(line: str) -> str:
    for varying, sign in _VARYING:
        line = varying.sub(sign, line)
    return line
