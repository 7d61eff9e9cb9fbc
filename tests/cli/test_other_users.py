"""Commands that root runs beside a server of another user: they leave that user's things alone."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ..pipeline.published import made_store
from .process import run

OTHER = 3307
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="wants root, who may be anybody")
# The interpreter itself may be where only root can come.
AS_OTHER = f"""
import os, sys, click, uvloop
import ibb.server.service
from ibb.cli.main import ibb as commands, main
list(commands.commands.values())
click.HelpFormatter().write_usage("ibb", "as when something is refused")
os.setgroups([]); os.setgid({OTHER}); os.setuid({OTHER})
main()
"""


@pytest.fixture
def folder():
    """Return a folder that everybody can look into, as pytest's own is not."""
    with tempfile.TemporaryDirectory(prefix="ibb-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def binlogs(folder):
    """Return a directory of the other user's."""
    directory = folder / "binlogs"
    made_store(directory, 20)
    for path in (directory, *directory.iterdir()):
        os.chown(path, OTHER, OTHER)
    return directory


def as_other(*arguments):
    command = [sys.executable, "-c", AS_OTHER, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def state(directory):
    found = {}
    for path in (directory, *directory.iterdir()):
        about = path.stat()
        found[path] = about.st_uid, about.st_gid, about.st_mode, about.st_mtime_ns
    return found


@pytest.mark.parametrize("command", ["backup", "groups", "verify", "inspect"])
def test_what_root_looks_at_stays_as_it_is(binlogs, folder, command):
    before = state(binlogs)
    assert run(command, binlogs, *[folder / "copy"] * (command == "backup")).returncode == 0
    assert state(binlogs) == before
    assert as_other("verify", binlogs).returncode == 0


def test_a_copy_that_root_has_made_is_refused_to_others_in_a_line(binlogs, folder):
    copy = folder / "copy"
    assert run("backup", binlogs, copy).returncode == 0
    refused = as_other("serve", copy, "--listen", "127.0.0.1:0")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.splitlines()[-1].endswith(f"Directory '{copy}' is not readable.")
    os.chown(copy, OTHER, OTHER)
    refused = as_other("serve", copy, "--listen", "127.0.0.1:0")
    assert (refused.returncode, refused.stdout) == (2, "")
    file = copy / "binlog-000000.ibb"
    assert refused.stderr == f"ibb: cannot open {file}: Permission denied\n"
