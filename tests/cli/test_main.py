"""What the shell gets to know of a command: one line, and an exit status that means one thing."""

import os
import pty
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from ibb.protocol.gtid import Gtid
from ibb.storage import Store

from ..integration.waiting import wait_until
from ..server.conftest import publish
from ..tiny import SMALL
from .process import IBB, SECONDS_MAX, run

PRESSES_MAX = 5  # of Ctrl-C


@pytest.mark.parametrize(
    ("words", "otherwise"),
    [
        (["status", "mariadb://u@127.0.0.1:1"], "--password-file FILE, or $IBB_PASSWORD"),
        (["account", "add", "--file", "accounts.toml", "u"], "--password-stdin"),
    ],
)
def test_without_a_terminal_no_password_is_asked_for(tmp_path, words, otherwise):
    environment = {name: value for name, value in os.environ.items() if name != "IBB_PASSWORD"}
    done = run(
        *words,
        env=environment,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # no /dev/tty either
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "no terminal to ask for the password" in done.stderr
    assert otherwise in done.stderr


def test_ctrl_c_is_no_verdict(tmp_path):
    """`verify` ends with 1 where something is wrong, and only there."""
    mine, theirs = pty.openpty()
    words = [*IBB, "account", "add", "--file", "accounts.toml", "u"]
    # Who runs tests in the background of a shell has them ignore it, and what they start too.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        words, cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    signal.signal(signal.SIGINT, before)
    os.close(theirs)
    shown = b""

    def is_asked() -> bool:
        nonlocal shown
        shown += os.read(mine, 1000)
        return b"Password" in shown

    try:
        wait_until(is_asked, SECONDS_MAX)
        for _ in range(PRESSES_MAX):
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                # Python hears of one that comes right before a read only when that has ended.
                process.wait(SECONDS_MAX / PRESSES_MAX)
                break
        assert process.returncode == 130
    finally:
        process.kill()
        process.wait()
        os.close(mine)


@pytest.mark.parametrize("words", [["inspect", "store"], ["--help"], ["verify", "--help"]])
def test_whoever_reads_the_output_may_have_enough(tmp_path, words):
    with Store.open(tmp_path / "store", SMALL):
        pass
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*IBB, *words],
        cwd=tmp_path,
        stdout=writer,
        stderr=subprocess.PIPE,
        timeout=SECONDS_MAX,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("command", ["audit", "statistics"])
def test_what_needs_spark_says_so_where_it_is_missing(tmp_path, command):
    """The module that imports it is hidden, as if the extra were not installed."""
    code = (
        "import sys; sys.modules['pyspark'] = None; sys.argv = ['ibb', *sys.argv[1:]];"
        "from ibb.cli.main import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, command, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "this needs Spark, and pyspark is not installed" in done.stderr


def test_positions_that_are_none_name_their_option(tmp_path):
    with Store.open(tmp_path / "store", SMALL) as store:
        publish(store, Gtid(0, 1, 1))
    for option in ("--from", "--until"):
        done = run("groups", tmp_path / "store", option, "nonsense")
        assert (done.returncode, done.stdout) == (2, "")
        assert f"{option}: 'nonsense' is no list of GTIDs" in done.stderr
    done = run("groups", tmp_path / "store", "--from", "0-1-9")
    assert done.returncode == 2
    assert "--from 0-1-9: " in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nohost"], "URL must be mariadb://USER@HOST:PORT"),
        (["mariadb://u:p@h"], "put the password into --password-file"),
        (["mariadb://u@h", "--ssl-fp", "12"], "--ssl-fp must be 64 hexadecimal digits"),
        (["mariadb://u@h", "--ssl-ca", "/nowhere"], "--ssl-ca: cannot be used: [Errno 2] No such"),
    ],
)
def test_status_speaks_of_its_own_options(words, said):
    done = run("status", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "upstream" not in done.stderr


def test_a_name_that_does_not_resolve_is_named():
    environment = {**os.environ, "IBB_PASSWORD": "x"}
    done = run("status", "mariadb://u@nowhere.invalid", env=environment)
    assert done.returncode == 2
    assert "cannot find nowhere.invalid" in done.stderr
