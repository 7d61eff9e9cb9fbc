"""What deploy/ibb.service takes away: systemd understands it, and the server misses nothing."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pymysql
import pytest

from . import confined
from .process import IBB, SECONDS_MAX, run

EXPOSURE_MAX = 15  # tenths, as systemd-analyze counts; 14 with Debian 12's
FORBIDDEN = (
    "import os; os.chown('.', 0, 0)",
    "import os; os.sched_setaffinity(0, [0])",
    "import mmap; mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)",
)

pytestmark = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason=confined.WITHOUT)


@pytest.fixture
def confinement(tmp_path):
    """Return the words that a confined command begins with."""
    path = tmp_path / "filter"
    path.write_bytes(confined.unit_filter())
    return [sys.executable, confined.__file__, str(path)]


def test_systemd_understands_every_line(tmp_path):
    unit = tmp_path / "ibb.service"
    text = confined.UNIT.read_text()
    unit.write_text(text.replace("/opt/ibb/current/bin/ibb", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True
    )
    assert [line for line in done.stderr.splitlines() if "ibb.service" in line] == []


def test_a_server_that_is_taken_over_reaches_little(tmp_path):
    command = ["systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE_MAX}"]
    done = subprocess.run([*command, confined.UNIT], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("program", FORBIDDEN)
def test_what_is_forbidden_is_refused(confinement, program):
    done = subprocess.run(
        [*confinement, sys.executable, "-c", program], capture_output=True, text=True
    )
    assert "PermissionError" in done.stderr


def test_a_server_that_is_confined_lives_and_ends_as_any_other(confinement, tmp_path):
    accounts, link = tmp_path / "accounts.toml", tmp_path / "ibb.sock"
    options = ("--password-stdin", "--grant", "ALL PRIVILEGES", "me")
    assert run("account", "add", "--file", accounts, *options, input="sesame").returncode == 0
    settings = tmp_path / "ibb.toml"
    settings.write_text(
        f'listen = "127.0.0.1:0"\nadmin_listen = "127.0.0.1:0"\nsocket = "{link}"\n'
        f'accounts = "{accounts}"\nssl_state = "{tmp_path / "tls"}"\nmax_binlog_size = "1M"\n'
    )
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(SECONDS_MAX)
        process = subprocess.Popen(
            [*confinement, *IBB, "serve", str(tmp_path / "store"), "--config", str(settings)],
            env=os.environ | {"NOTIFY_SOCKET": str(tmp_path / "notify")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert manager.recv(4096).startswith(b"READY=1")
            state = Path(f"/proc/{process.pid}/status").read_text()
            assert re.search(r"^Seccomp:\t2$", state, re.MULTILINE)
            with (
                pymysql.connect(unix_socket=str(link), user="me", password="sesame") as connection,
                connection.cursor() as cursor,
            ):
                cursor.execute("FLUSH BINARY LOGS")
                cursor.execute("SHOW BINARY LOGS")
                assert len(cursor.fetchall()) > 1
            process.send_signal(signal.SIGHUP)
            assert manager.recv(4096).startswith(b"RELOADING=1")
            assert manager.recv(4096).startswith(b"READY=1")
            process.send_signal(signal.SIGTERM)
            log = process.communicate(timeout=SECONDS_MAX)[1]
        finally:
            process.kill()
            process.wait()
    assert process.returncode == 0, log
    assert "Operation not permitted" not in log
