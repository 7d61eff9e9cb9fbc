"""Code of an older commit, from the repository's own history, beside the code under test."""

import json
import signal
import subprocess
import sys
from pathlib import Path

from ibb.demo.serve_process import ServeProcess

ROOT = Path(__file__).parents[2]
COMMAND_SECONDS = 120.0
# Publishes what it is given, one group a line, in any version, and ends as it is told.
PUBLISH = """
import os, signal, sys
from ibb.protocol.gtid import Gtid
from ibb.storage.options import StoreOptions
from ibb.storage.store import Store

sizes = {"max_binlog_size": 256 << 10, "state_interval": 32 << 10, "redo_segment_size": 1 << 20}
store = Store.open(sys.argv[1], StoreOptions(**sizes))
for line in sys.stdin:
    domain, server, number, events = line.split()
    with store.begin() as group:
        group.write(bytes.fromhex(events))
        group.commit(Gtid(int(domain), int(server), int(number)))
if sys.argv[2] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
store.close()
"""


class Code:
    """
    A version of the program.

    Args:
        folder: where its package is.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Not the package in the present directory.
        self.python = ["env", f"PYTHONPATH={folder}", sys.executable, "-P"]

    def run(self, *arguments, text=""):
        """Run its Python to the end."""
        return subprocess.run(
            [*self.python, *arguments],
            input=text,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
        )

    def publish(self, directory, groups, end):
        """Publish GTIDs with events, then close the store, or be killed; return what it said."""
        lines = [f"{gtid.domain} {gtid.server} {gtid.seq} {data.hex()}\n" for gtid, data in groups]
        done = self.run("-c", PUBLISH, str(directory), end, text="".join(lines))
        wanted = -signal.SIGKILL if end == "killed" else 0
        return "" if done.returncode == wanted else done.stderr or str(done.returncode)

    def groups(self, directory):
        """Return GTID, place and digest of each group, as this version reads it."""
        done = self.run("-m", "ibb", "groups", str(directory), "--json")
        assert done.returncode == 0, done.stderr
        found = map(json.loads, done.stdout.splitlines())
        return [tuple(one[name] for name in ("gtid", "file", "offset", "sha256")) for one in found]


def older_code(commit, folder):
    """Unpack a commit's package into *folder*; None: the history does not go back so far."""
    made = subprocess.run(
        ["git", "archive", commit, "ibb"], cwd=ROOT, capture_output=True, check=False
    )
    if made.returncode:
        return None
    subprocess.run(["tar", "-x", "-C", str(folder)], input=made.stdout, check=True)
    return Code(folder)


class VersionedServer(ServeProcess):
    """
    `ibb serve` of one version or another.

    Args:
        code: the version it starts with; may be set while it is stopped.
    """

    def __init__(self, code, *arguments, **options):
        super().__init__(*arguments, **options)
        self.code = code

    def _command(self):
        return [*self.code.python, *super()._command()[1:]]


def contents(directory):
    """Return the bytes of a directory's files, without those that say who has it open."""
    return {path: path.read_bytes() for path in directory.iterdir() if path.name != "ibb.lock"}
