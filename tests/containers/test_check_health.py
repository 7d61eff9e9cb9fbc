"""The image's health check asks the server where it listens, however it was started."""

import importlib.util
import os
import socket
from pathlib import Path

import pytest

from ibb.demo.scratch_server import free_port
from ibb.server.login.accounts import AccountBook, make_account

from ..cli.process import Process

SOURCE = Path(__file__).parents[2] / "containers" / "ibb" / "check_health.py"
NOBODY = "127.0.0.1:9"  # the port of `discard`


@pytest.fixture
def check_health(tmp_path, monkeypatch):
    """The program, which sees no process yet: others of this machine are not of its container."""
    spec = importlib.util.spec_from_file_location("check_health", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "proc").mkdir()
    monkeypatch.setattr(module, "PROCESSES", tmp_path / "proc")
    return module


@pytest.fixture
def serve(tmp_path, check_health):
    """Return a function that starts a server which the program sees."""
    accounts = tmp_path / "accounts.toml"
    AccountBook([make_account("repl", "%", "secret")]).save(str(accounts))
    started = []

    def run(*arguments):
        sizes = ("--max-binlog-size", "1M", "--accounts", accounts)
        server = Process(tmp_path / "store", *sizes, *arguments)
        started.append(server)
        show(check_health, server.process.pid)
        return server

    yield run
    for server in started:
        server.kill()


def show(module, number):
    (module.PROCESSES / str(number)).symlink_to(f"/proc/{number}")


def address(host="127.0.0.1"):
    return f"{host}:{free_port()}"


@pytest.mark.parametrize(
    "more", [(), ("--ssl-state", "tls"), ("--ssl-state", "tls", "--skip-ssl")], ids=" ".join
)
@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])
def test_the_administrators_port_is_asked_as_it_is(
    check_health, serve, tmp_path, monkeypatch, host, more
):
    monkeypatch.chdir(tmp_path)
    if host == "0.0.0.0" and not more:
        more = ("--skip-ssl",)  # else it would not start
    serve("--listen", address(), "--admin-listen", address(host), *more)
    check_health.main()


def test_a_proxy_of_the_environment_is_not_asked(check_health, serve, monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, f"http://{NOBODY}")
    serve("--listen", address(), "--admin-listen", address())
    check_health.main()


def test_without_that_port_clients_are_greeted(check_health, serve):
    serve(f"--listen={address()}")
    check_health.main()


def test_a_file_of_settings_is_read_and_the_command_line_counts_before_it(
    check_health, serve, tmp_path
):
    settings = tmp_path / "ibb.toml"
    settings.write_text(f'listen = "{address()}"\nadmin_listen = "{NOBODY}"\n')
    serve("--config", settings, "--admin-listen", address())
    check_health.main()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0.0.0.0:5", ("127.0.0.1", 5)),
        ("0.0.0.0", ("127.0.0.1", 8307)),
        ("[::]:5", ("::1", 5)),
        ("[::1]", ("::1", 8307)),
        ("relay.internal:5", ("relay.internal", 5)),
    ],
)
def test_addresses_are_those_of_the_settings(check_health, text, wanted):
    assert check_health.address_of(text, 8307) == wanted


def test_a_server_that_has_gone_is_told(check_health, serve):
    where = address()
    server = serve("--listen", where, "--admin-listen", address())
    server.kill()
    with pytest.raises(SystemExit, match="no `ibb serve` runs here"):
        check_health.main()


@pytest.mark.parametrize("option", ["--listen", "--admin-listen"])
def test_a_server_that_does_not_answer_is_told(check_health, monkeypatch, option):
    monkeypatch.setattr(check_health, "SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = "{}:{}".format(*silent.getsockname())
        monkeypatch.setattr(check_health, "server_arguments", lambda: [option, where])
        with pytest.raises(SystemExit, match=f"{where}: .*timed out"):
            check_health.main()


def test_its_own_process_is_no_server(check_health):
    show(check_health, os.getpid())
    with pytest.raises(SystemExit, match="no `ibb serve` runs here"):
        check_health.main()
