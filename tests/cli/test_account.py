"""`ibb account`: the file it writes."""

import shlex
import stat
import subprocess
import sys

import pytest
from click.testing import CliRunner

from ibb.cli.main import ibb
from ibb.cli.serve import serve
from ibb.protocol.native_password import hash_text, stage2
from ibb.server.config import ConfigError
from ibb.server.config_file import config_from
from ibb.server.login.accounts import AccountBook


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


def test_what_is_added_and_removed_keeps_mode_links_and_secret(tmp_path):
    path, link = tmp_path / "accounts.toml", tmp_path / "link.toml"
    link.symlink_to(path.name)
    runner = CliRunner()
    words = ["--file", str(link), "u"]
    assert (
        runner.invoke(ibb, ["account", "add", "--password-stdin", *words], input="x").exit_code == 0
    )
    path.chmod(0o640)
    secret = AccountBook.load(str(path)).decoy_secret
    assert runner.invoke(ibb, ["account", "remove", *words]).exit_code == 0
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    book = AccountBook.load(str(path))
    assert (len(book), book.decoy_secret) == (0, secret)
    before = path.read_bytes()
    assert isinstance(runner.invoke(ibb, ["account", "remove", *words]).exception, ConfigError)
    assert path.read_bytes() == before


def test_who_takes_the_place_of_another_is_told(tmp_path):
    path = tmp_path / "accounts.toml"
    for said in ("", "repl@% was there, and is replaced\n"):
        done = add(path, "--password-stdin", "repl", password=b"secret\n")
        assert (done.returncode, done.stderr.decode()) == (0, said)


def examples(text, *words):
    """Return the command lines that a help shows, without its own first line."""
    joined = text.replace("\\\n", " ")
    lines = [shlex.split(line) for line in joined.splitlines() if line.startswith("    ibb ")]
    return [line[1:] for line in lines if line[1 : len(words) + 1] == list(words)]


def test_the_examples_of_the_help_make_accounts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ibb.cli.password.has_terminal", lambda: True)
    runner = CliRunner()
    shown = runner.invoke(ibb, ["account", "add", "--help"]).output
    found = examples(shown, "account", "add")
    assert len(found) == 3
    for words in found:
        done = runner.invoke(ibb, words, input="secret\nsecret\n")
        assert done.exit_code == 0, done.output
    listed = runner.invoke(ibb, ["account", "list", "--file", "accounts.toml"]).output
    assert "repl@10.0.7.0/24  by ed25519  may REPLICATION SLAVE  requires SSL" in listed
    assert "monitor@localhost  by unix_socket" in listed


def test_the_examples_of_serve_are_settings_that_fit_together():
    shown = CliRunner().invoke(ibb, ["serve", "--help"]).output
    found = examples(shown, "serve")
    assert len(found) == 2
    for words in found:
        context = serve.make_context("serve", words[1:])
        given = {name: value for name, value in context.params.items() if value is not None}
        del given["directory"]
        assert config_from(given).accounts == "accounts.toml"
