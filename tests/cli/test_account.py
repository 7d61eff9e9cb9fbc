"""`ibb account`: the file it writes."""

import stat
import subprocess
import sys

import pytest

from ibb.protocol.native_password import hash_text, stage2
from ibb.server.accounts import AccountBook


def add(path, *arguments, password=b"secret\n"):
    return subprocess.run(
        [sys.executable, "-m", "ibb", "account", "add", "--file", path, *arguments],
        input=password,
        capture_output=True,
        timeout=30,
        check=False,
    )


def test_accounts_are_added_and_replaced(tmp_path):
    path = tmp_path / "accounts.toml"
    grant = ("--grant", "REPLICATION SLAVE", "--password-stdin")
    assert add(path, *grant, "repl").returncode == 0
    assert add(path, *grant, "--host", "10.%", "--grant", "reload", "other").returncode == 0
    assert add(path, *grant, "repl", password=b"new password").returncode == 0
    book = AccountBook.load(str(path))
    assert len(book) == 2
    assert book.find("repl", ["1.2.3.4"]).auth == (
        ("mysql_native_password", hash_text(stage2("new password"))),
    )
    assert book.find("other", ["10.2.3.4"]).grants == {"REPLICATION SLAVE", "RELOAD"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("arguments", "password", "message"),
    [
        (["--grant", "FLY"], b"x", b"unknown privilege"),
        ([], b"\n", b"needs a password"),
        ([], b"\xff\n", b"UTF-8"),
        ([], b"x" * 5000, b"at most 1024 bytes"),
    ],
)
def test_what_cannot_be_an_account_leaves_the_file(tmp_path, arguments, password, message):
    path = tmp_path / "accounts.toml"
    done = add(path, *arguments, "--password-stdin", "repl", password=password)
    assert done.returncode == 2
    assert message in done.stderr
    assert not path.exists()
