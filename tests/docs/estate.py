"""
What the runbooks take for granted: a primary, a relay that runs as a service, replicas.

In the folder of a page lie `primary.cnf`, `relay.cnf`, `replica.cnf`, by which clients log in,
and `systemctl` and `journalctl`, which stand in for the real ones: the tests' machine runs no
services. What the first starts is what `deploy/ibb.service` says, with the system calls that it
leaves.
"""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ibb.demo.installation import Installation
from ibb.server.connections.certificate import self_signed
from ibb.server.login.accounts import AccountBook, make_account

from ..cli import confined
from ..integration.mariadb_server import PRIMARY_OPTIONS, REPLICA_OPTIONS, MariadbServer
from .console import ROOT, Console
from .sources import ENVIRONMENT, provide_python, provide_sources

PASSWORD = "sesame"
ROWS = "--binlog-format=ROW"
WRITING_REPLICA = ("--log-bin=bin", "--log-slave-updates", ROWS)
SYSTEMCTL = """\
#!/usr/bin/env bash
words() { # what a unit starts, with the paths of this folder
    sed -En 's:/(etc|var/lib)/ibb/::g; s:^'"$1"'=/opt/ibb/current/bin/::p' \\
        "etc/systemd/system/$2.service"
}
start() {
    $(<confinement) $(words ExecStartPre "$1") >>ibb.log || exit 1
    : >ibb.out
    $(<confinement) $(words ExecStart "$1") >>ibb.out 2>>ibb.log </dev/null &
    echo $! >ibb.pid
    until grep -q ready ibb.out; do
        kill -0 "$(cat ibb.pid)" 2>/dev/null || { tail ibb.log; exit 1; }
        sleep 0.1
    done
}
stop() { kill "$(cat ibb.pid)"; tail --pid="$(cat ibb.pid)" -f /dev/null; }
case $1 in
    reload)
        before=$(grep -c reload ibb.log)
        kill -HUP "$(cat ibb.pid)"
        until [ "$(grep -c reload ibb.log)" -gt "$before" ]; do sleep 0.1; done ;;
    restart) stop; start "$2" ;;
    enable) start "$3" ;; # behind --now
    daemon-reload) ;;
    *) "$1" "$2" ;;
esac
"""
JOURNALCTL = """\
#!/usr/bin/env bash
exec tail -n "${@: -1}" ibb.log
"""
SETTINGS = """\
listen = "127.0.0.1:3307"
accounts = "/etc/ibb/accounts.toml"
upstream = "mariadb://repl@127.0.0.1:3306"
upstream_password_file = "/etc/ibb/upstream-password"
server_id = 10
max_binlog_size = "1M"
"""


@contextmanager
def estate(
    installation: Installation,
    folder: Path,
    *,
    relay: bool = True,
    running: bool = True,
    encrypted: bool = False,
    replicas: int = 0,
    sources: tuple[str, ...] = (),
    wrapper: tuple[str, ...] = (),
    before: str = "",
    after: str = "",
) -> Iterator[Console]:
    """
    Lend a console beside running servers; all of them end with it.

    Args:
        installation: the MariaDB of primary and replicas.
        folder: of the page, empty.
        relay: whether the relay has its settings, and its account on the primary.
        running: whether it is a service, and runs.
        encrypted: whether there are certificates, and logins by ed25519.
        replicas: how many there are, `replica.cnf`, `replica2.cnf`; they follow the relay.
        sources: versions that can be installed; what is, runs instead of this tree.
        wrapper: see `Console`.
        before: commands that come before the relay's first start.
        after: commands that come after all starts.
    """
    with ExitStack() as ends:
        environment = ENVIRONMENT if sources else {}
        console = ends.enter_context(Console(folder, *wrapper, environment=environment))
        _make_folders(folder)
        for version in sources:
            provide_sources(folder, version)
        if sources:
            provide_python(folder)
        of_primary, of_replicas = _encryption(installation, folder) if encrypted else ((), ())
        options = (*PRIMARY_OPTIONS, ROWS, *of_primary)
        primary = _server(installation, folder, "primary", 1, options)
        ends.callback(primary.kill)
        console.ports["3306"] = str(primary.port)
        (folder / ".my.cnf").symlink_to("primary.cnf")  # by which `mariadb` alone logs in
        if relay:
            _prepare_relay(console, primary)
        if relay and running:
            _start_relay(console, before)
        for number in range(replicas):
            name = "replica" if number == 0 else f"replica{number + 1}"
            options = (*REPLICA_OPTIONS, *WRITING_REPLICA, *of_replicas)
            replica = _server(installation, folder, name, 2 + number, options)
            ends.callback(replica.kill)
            console.ports[f"{3308 + number}"] = str(replica.port)
            if relay and running:
                replica.replicate_from(int(console.ports["3307"]), user="repl", password=PASSWORD)
        _run(console, after)
        yield console


def _make_folders(folder: Path) -> None:
    """Make the folders of the system; those of `ibb` are the page's own, where paths are short."""
    for name in ("backups", "etc/mysql", "etc/systemd/system", "opt/ibb", "run", "var/lib"):
        (folder / name).mkdir(parents=True)
    for name in ("etc/ibb", "var/lib/ibb"):
        (folder / name).symlink_to(folder)
    (folder / "deploy").symlink_to(ROOT / "deploy")


def _encryption(
    installation: Installation, folder: Path
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Make one certificate for all, which vouches for itself; return options of the servers."""
    for name, data in zip(("cert.pem", "key.pem"), self_signed("localhost"), strict=True):
        (folder / name).write_bytes(data)
    for place in ("etc/ibb/ca.pem", "etc/mysql/ca.pem"):
        (folder / place).symlink_to(folder / "cert.pem")
    (plugins,) = installation.base.glob("lib/*-linux-gnu/libmariadb3/plugin")
    shown = (f"--ssl-cert={folder}/cert.pem", f"--ssl-key={folder}/key.pem")
    return (*shown, "--plugin-load-add=auth_ed25519"), (f"--plugin-dir={plugins}",)


def _server(
    installation: Installation, folder: Path, name: str, number: int, options: tuple[str, ...]
) -> MariadbServer:
    (folder / name).mkdir()
    server = MariadbServer(installation, folder / name, server_id=number, options=options)
    server.initialise()
    server.start()
    settings = f"[client]\nuser=root\nsocket={server.socket}\n"
    (folder / f"{name}.cnf").write_text(settings)
    return server


def _prepare_relay(console: Console, primary: MariadbServer) -> None:
    """Make what the service reads, and the stand-ins for systemd's programs."""
    primary.run(
        "SET sql_log_bin = 0",
        f"CREATE USER repl@'%' IDENTIFIED BY '{PASSWORD}'",
        "GRANT REPLICATION SLAVE ON *.* TO repl@'%'",
    )
    folder = console.folder
    here = console.here
    (folder / "ibb.toml").write_text(here(SETTINGS))
    (folder / "relay.cnf").write_text(
        here(f"[client]\nuser=me\npassword={PASSWORD}\nhost=127.0.0.1\nport=3307\n")
    )
    secret = folder / "upstream-password"
    secret.touch(0o600)
    secret.write_text(f"{PASSWORD}\n")
    with AccountBook.changing(str(folder / "accounts.toml")) as book:
        book.add(make_account("repl", "%", PASSWORD, ["REPLICATION SLAVE"]))
        book.add(make_account("me", "%", PASSWORD, ["ALL PRIVILEGES"]))
    allowed = confined.unit_filter()  # nothing is filtered where systemd is not at hand to say what
    (folder / "filter").write_bytes(allowed or b"")
    confinement = f"{sys.executable} {confined.__file__} {folder / 'filter'}"
    (folder / "confinement").write_text(confinement if allowed else "")
    (folder / "bin").mkdir(exist_ok=True)
    for name, text in (("systemctl", SYSTEMCTL), ("journalctl", JOURNALCTL)):
        path = folder / "bin" / name
        path.write_text(text)
        path.chmod(0o755)


def _start_relay(console: Console, before: str) -> None:
    (console.folder / "etc/systemd/system/ibb.service").symlink_to(ROOT / "deploy/ibb.service")
    _run(console, before)
    _run(console, "systemctl start ibb")


def _run(console: Console, commands: str) -> None:
    status, said = console.run(commands or "true")
    assert status == 0, said
