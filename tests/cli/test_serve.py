"""`ibb serve` as a process: what it prints, how it ends, what it refuses."""

import json
import os
import re
import signal
import socket
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from ibb.protocol.gtid import Gtid
from ibb.server.config import Config
from ibb.server.login.accounts import AccountBook, make_account
from ibb.server.server import Server
from ibb.storage.store import Store

from ..server.conftest import SMALL, publish
from ..server.raw_client import RawClient
from ..server.waiting import answer_of
from .process import run


@pytest.fixture
def accounts_file(tmp_path):
    path = tmp_path / "accounts.toml"
    AccountBook([make_account("repl", "%", "secret", ["REPLICATION SLAVE"])]).save(str(path))
    return path


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_ready_once_and_ends_with_status_0(serve, tmp_path, accounts_file, number):
    serving = serve(tmp_path / "new", "--accounts", accounts_file, "--listen", "127.0.0.1:0")
    assert re.fullmatch(r"ready 127\.0\.0\.1:[1-9][0-9]*\n", serving.ready)
    status, out, err = serving.end(number)
    assert (status, out) == (0, "")
    assert "server_started" in err
    assert "server_stopped" in err


async def test_a_store_is_served_with_the_settings_of_file_and_line(serve, tmp_path, accounts_file):
    with Store.open(tmp_path / "store", SMALL) as store:
        for seq in range(1, 6):
            publish(store, Gtid(0, 1, seq))
    settings = tmp_path / "ibb.toml"
    settings.write_text('server_id = 77\nserver_version = "10.6.1-MariaDB"\nlog_format = "json"\n')
    serving = serve(
        tmp_path / "store",
        "--config", settings,
        "--accounts", accounts_file,
        "--listen", "127.0.0.1:0",
        "--server-version", "11.4.2-MariaDB",
        "--socket", tmp_path / "s",
    )  # fmt: skip
    async with await RawClient.logged_in(serving) as client:
        assert await client.value("SELECT @@server_id") == "77"
        assert await client.value("SELECT VERSION()") == "11.4.2-MariaDB"
        await client.prepare("0-1-3")
        dump = await client.dump(server_id=5)
        await dump.preamble(rotate_checksum=True)
        assert [group.gtid.seq for group in await dump.groups(2)] == [4, 5]
        status, _, err = serving.end()
    assert status == 0
    assert '"event": "server_started"' in err


def test_a_restart_writes_nothing_into_the_history(serve, tmp_path, accounts_file):
    with Store.open(tmp_path / "store", SMALL) as store:
        publish(store, Gtid(0, 1, 1), wait=True)
        end = store.end()
    for _ in range(2):
        serve(tmp_path / "store", "--accounts", accounts_file, "--listen", "127.0.0.1:0").end()
    with Store.open(tmp_path / "store", replace(SMALL, format_description="upstream")) as store:
        assert store.end() == end


async def test_without_accounts_one_is_made_and_shown(serve, tmp_path):
    serving = serve(tmp_path / "new", "--listen", "127.0.0.1:0")
    line = serving.process.stderr.readline()
    while not (found := re.search(r"user (\S+), password (\S+)", line)):
        line = serving.process.stderr.readline()
    async with await RawClient.logged_in(serving, found[1], found[2]) as client:
        assert await client.value("SELECT 1") == "1"
    assert serving.end()[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--listen", "0.0.0.0:0"], "loopback"),
        (["--listen", "nonsense:"], "not an address"),
        (["--read-only", "--upstream", "mariadb://u@h"], "exclude each other"),
        (["--upstream", "http://h"], "mariadb://USER@HOST:PORT"),
        (["--upstream", "mariadb://u:pw@h"], "upstream_password_file"),
        (["--max-binlog-size", "1X"], "not a size"),
        (["--page-size", "1000"], "page_size"),
        (["--accounts", "/nowhere"], "cannot read /nowhere"),
        (["--upstream-ssl-ca", "/nowhere"], "upstream_ssl_ca"),  # for CHANGE MASTER
        (["--read-only"], "list"),
    ],
)
def test_what_cannot_work_is_one_line_and_status_2(tmp_path, arguments, message):
    done = run("serve", tmp_path / "missing", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert message in done.stderr
    assert done.stderr.startswith("ibb: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("option", ["--listen", "--admin-listen"])
def test_a_taken_port_is_found_before_a_store_is_made(tmp_path, accounts_file, option):
    where = {"--listen": "127.0.0.1:0", "--admin-listen": "127.0.0.1:0"}
    with socket.create_server(("127.0.0.1", 0)) as other:
        where[option] = "127.0.0.1:{1}".format(*other.getsockname())
        words = [word for pair in where.items() for word in pair]
        done = run("serve", tmp_path / "new", "--accounts", accounts_file, *words)
    assert done.returncode == 2
    assert f"{where[option]} cannot be had: Address already in use" in done.stderr
    assert option in done.stderr
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("options", "reason"), [(["--read-only"], "no binlog is in"), ([], "of a database server")]
)
def test_a_directory_that_is_not_meant_is_left_alone(tmp_path, accounts_file, options, reason):
    """One without a binlog is not served as an empty one, nor filled beside a server's data."""
    path = tmp_path / "mistyped"
    path.mkdir()
    (path / "ibdata1").write_bytes(b"")
    where = ("--accounts", accounts_file, "--listen", "127.0.0.1:0")
    done = run("serve", path, *where, *options)
    assert done.returncode == 2
    assert reason in done.stderr
    assert str(path) in done.stderr
    assert [file.name for file in path.iterdir()] == ["ibdata1"]


def test_a_password_that_everybody_may_read_is_warned_of(serve, tmp_path, accounts_file):
    secret = tmp_path / "password"
    secret.write_text("secret\n")
    arguments = ("--accounts", accounts_file, "--listen", "127.0.0.1:0")
    upstream = ("--upstream", "mariadb://u@127.0.0.1:1", "--upstream-password-file", secret)
    for mode, warned in ((0o644, True), (0o640, False)):
        secret.chmod(mode)
        _, _, err = serve(tmp_path / "store", *arguments, *upstream).end()
        assert ("password_file_open" in err) == warned


@pytest.mark.parametrize("named_at_start", [False, True])
async def test_tls_towards_the_upstream_is_demanded_of_one_that_sql_names(
    serve, tmp_path, named_at_start
):
    """Not dropped with the address that had it, nor absent where there was none."""
    path, secret = tmp_path / "accounts.toml", tmp_path / "password"
    accounts = AccountBook([make_account("repl", "%", "secret", ["ALL PRIVILEGES"])])
    accounts.save(str(path))
    secret.write_text("secret\n")
    with Store.open(tmp_path / "primary", SMALL) as store:
        config = Config(listen="127.0.0.1:0", skip_ssl=True)
        primary = Server(store, config=config, accounts=accounts)
        await primary.start()
        url = f"mariadb://repl@127.0.0.1:{primary.port()}"
        named = ("--upstream", url, "--upstream-password-file", secret) if named_at_start else ()
        arguments = ("--accounts", path, "--listen", "127.0.0.1:0", "--upstream-ssl", "verify")
        serving = serve(tmp_path / "relay", *arguments, *named)
        async with await RawClient.logged_in(serving) as client:
            await client.query("STOP SLAVE")
            await client.query("RESET SLAVE ALL")
            await client.query(
                f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={primary.port()}, "
                "MASTER_USER='repl', MASTER_PASSWORD='secret'"
            )
            await client.query("START SLAVE")
            error = await answer_of(lambda: upstream_error(client))
        assert "offers no TLS" in error
        assert not primary.has_dumps()
        serving.end()
        await primary.stop()


async def upstream_error(client):
    result = await client.query("SHOW REPLICA STATUS")
    (row,) = result.rows
    return row[[column.name for column in result.columns].index("Last_IO_Error")].decode()


def test_debug_shows_where_an_error_came_from(tmp_path):
    done = run("--debug", "serve", tmp_path, "--listen", "nonsense:")
    assert done.returncode != 0
    assert "Traceback" in done.stderr


def test_a_port_that_is_taken_is_one_line_and_status_2(serve, tmp_path, accounts_file):
    serving = serve(tmp_path / "one", "--accounts", accounts_file, "--listen", "127.0.0.1:0")
    port = serving.address[1]
    done = run("serve", tmp_path / "two", "--listen", f"127.0.0.1:{port}")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("ibb: ")
    serving.end()


def test_a_directory_that_is_served_is_locked(serve, tmp_path, accounts_file):
    serving = serve(tmp_path / "one", "--accounts", accounts_file, "--listen", "127.0.0.1:0")
    done = run("serve", tmp_path / "one", "--listen", "127.0.0.1:0")
    assert done.returncode == 2
    assert "another process writes this directory" in done.stderr
    serving.end()


def test_the_password_of_the_upstream_is_no_argument(tmp_path):
    done = run("serve", tmp_path, "--upstream-password", "x")
    assert done.returncode == 2
    assert "No such option" in done.stderr


def test_version_and_help():
    assert re.fullmatch(r"ibb, version \S+ \(.+\)\n", run("--version").stdout)
    for command in ("serve", "groups", "account", "demo"):
        assert run(command, "--help").stdout.startswith("Usage: ibb ")


def test_pages_for_administrators_are_served_beside(serve, tmp_path, accounts_file):
    addresses = ("--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
    serving = serve(
        tmp_path / "new", "--accounts", accounts_file, *addresses, "--log-format", "json"
    )
    lines = [json.loads(serving.process.stderr.readline()) for _ in range(2)]
    (port,) = [line["port"] for line in lines if line["event"] == "admin_started"]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=20) as answer:
        assert json.load(answer) == {"ready": True, "reasons": []}
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        assert b"\nibb_redo_checkpoints_total 1.0\n" in answer.read()
    assert serving.end()[0] == 0


def test_without_their_packages_pages_are_refused_in_a_line(tmp_path, accounts_file):
    hidden = tmp_path / "hidden"
    (hidden / "uvicorn").mkdir(parents=True)
    (hidden / "uvicorn" / "__init__.py").write_text(
        "raise ModuleNotFoundError('none', name='uvicorn')\n"
    )
    where = ("--accounts", accounts_file, "--listen", "127.0.0.1:0", "--admin-listen", "[::1]:0")
    environment = os.environ | {"PYTHONPATH": f"{hidden}:{Path.cwd()}"}
    done = run("serve", tmp_path / "new", *where, env=environment)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "ibb: admin_listen needs uvicorn: install the extra `web`, from a checkout with "
        "pip install '.[web]'"
    )
