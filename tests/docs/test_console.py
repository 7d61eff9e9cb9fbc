"""What the pages show is what happens: each command of theirs is run, and its output compared."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ..integration.installations import mariadb_10_11
from .console import Console, Step, matches, steps
from .covered_pages import ROOT, RUN, is_root_a_mount
from .estate import estate


@pytest.fixture
def folder():
    """A folder with a short name: that of a unix socket has 107 bytes at most."""
    path = Path(tempfile.mkdtemp(prefix="ibb-"))
    yield path
    shutil.rmtree(path)


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.parametrize("page", RUN)
def test_a_page_shows_what_happens(page, folder):
    needed = RUN[page]
    if needed is None:
        with Console(folder) as console:
            console.play(ROOT / page)
        return
    if "wrapper" in needed and not is_root_a_mount():
        pytest.skip("the root is a folder (chroot), of which nobody can have mounts of their own")
    with estate(mariadb_10_11(), folder, **needed) as console:
        console.play(ROOT / page)


def test_the_readme_publishes_and_reads_back_from_python(folder):
    page = (ROOT / "README.md").read_text()
    ((program, shown),) = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", page, re.DOTALL)
    for _ in range(2):  # the second time everything is there
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stdout) == (0, shown), done.stderr


def test_commands_and_their_output_are_found():
    page = "```console\n$ one\nsaid\n$ two \\\n  more\n$ three 'a\n  b'\n```\n```\n$ no\n```\n"
    assert steps(page) == [
        Step("one", ["said"]),
        Step("two \\\n  more", []),
        Step("three 'a\n  b'", []),
    ]


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        (["0-1-5"], ["0-1-5"]),
        (["at 2026-11-22 14:50:45"], ["at 2027-01-01 00:00:01"]),
        (["at 2026-11-22 14:50:45"], ["at 2027-01-01  0:00:01"]),  # as mariadbd writes it
        (["| binlog-000000.ibb |    17433 |"], ["| binlog-000000.ibb | 4711 |"]),
        (["begin ... end"], ["begin and so on end"]),
        (["...", "last"], ["first", "second", "last"]),
        (["...", "last"], ["last"]),
    ],
)
def test_what_may_differ(expected, said):
    assert matches(expected, said)


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        (["0-1-5"], ["0-1-6"]),
        ([], ["a warning"]),
        (["one"], []),
        (["ERROR 1236"], ["ERROR 1235"]),
        (["there: 0"], ["there: -1"]),
    ],
)
def test_what_may_not_differ(expected, said):
    assert not matches(expected, said)


def test_folders_users_and_machines_are_those_of_the_run(folder):
    with Console(folder) as console:
        there = console.here("install -o ibb -g ibb /etc/ibb && chown ibb:ibb /var/lib/ibb/binlogs")
        owner, group = os.getuid(), os.getgid()
        assert there == (
            f"install -o {owner} -g {group} {folder}/etc/ibb"
            f" && chown {owner}:{group} {folder}/var/lib/ibb/binlogs"
        )
        assert console.here("mariadb://me@relay.internal '10.0.7.%'") == (
            "mariadb://me@localhost '127.0.0.%'"
        )
        for other in ("/run/ibb-secrets", "/opt/var/lib/ibb", "docs/backups"):
            assert console.here(other) == other


def test_a_page_that_is_not_true_is_noticed(folder):
    with Console(folder) as console:
        console.check(Step("echo yes", ["yes"]))
        with pytest.raises(AssertionError, match="says otherwise"):
            console.check(Step("echo yes", ["no"]))
        with pytest.raises(AssertionError, match="exit status 3"):
            console.check(Step("(exit 3)", []))


def test_a_shell_that_ends_is_told_of_with_what_it_said(folder):
    with Console(folder, "sh", "-c", "echo cannot begin; exit 1") as console:
        os.waitid(os.P_PID, console._shell.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(AssertionError, match="the shell ended in: true\ncannot begin"):
            console.run("true")
