"""
What the runbooks take for granted: a primary, a relay that runs as a service, replicas.

In the folder of a page lie `primary.cnf`, `relay.cnf`, `replica.cnf`, by which clients log in,
and `systemctl` and `journalctl`, which stand in for the real ones: the tests' machine runs no
services.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ibb.demo.installation import Installation
from ibb.server.login.accounts import AccountBook, make_account

from ..integration.mariadb_server import PRIMARY_OPTIONS, REPLICA_OPTIONS, MariadbServer
from .console import Console

PASSWORD = "sesame"
ROWS = "--binlog-format=ROW"
WRITING_REPLICA = ("--log-bin=bin", "--log-slave-updates", ROWS)
SYSTEMCTL = """\
#!/usr/bin/env bash
start() {
    : >ibb.out
    ibb serve binlogs --config ibb.toml >>ibb.out 2>>ibb.log </dev/null &
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
    *) "$1" "$2" ;;
esac
"""
JOURNALCTL = """\
#!/usr/bin/env bash
exec tail -n "${@: -1}" ibb.log
"""
SETTINGS = """\
listen = "127.0.0.1:3307"
accounts = "accounts.toml"
upstream = "mariadb://repl@127.0.0.1:3306"
upstream_password_file = "upstream-password"
server_id = 10
max_binlog_size = "1M"
"""


@contextmanager
def estate(
    installation: Installation,
    folder: Path,
    *,
    relay: bool = True,
    replicas: int = 0,
    wrapper: tuple[str, ...] = (),
    before: str = "",
) -> Iterator[Console]:
    """
    Lend a console beside running servers; all of them end with it.

    Args:
        installation: the MariaDB of primary and replicas.
        folder: of the page, empty.
        relay: whether the service runs, and has its account on the primary.
        replicas: how many there are, `replica.cnf`, `replica2.cnf`; they follow the relay.
        wrapper: see `Console`.
        before: commands that come before the relay's first start.
    """
    with ExitStack() as ends:
        console = ends.enter_context(Console(folder, *wrapper))
        primary = _server(installation, folder, "primary", 1, (*PRIMARY_OPTIONS, ROWS))
        ends.callback(primary.kill)
        console.ports["3306"] = str(primary.port)
        (folder / ".my.cnf").symlink_to("primary.cnf")  # by which `mariadb` alone logs in
        if relay:
            _start_relay(console, primary, before)
        for number in range(replicas):
            name = "replica" if number == 0 else f"replica{number + 1}"
            options = (*REPLICA_OPTIONS, *WRITING_REPLICA)
            replica = _server(installation, folder, name, 2 + number, options)
            ends.callback(replica.kill)
            console.ports[f"{3308 + number}"] = str(replica.port)
            if relay:
                replica.replicate_from(int(console.ports["3307"]), user="repl", password=PASSWORD)
        yield console


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


def _start_relay(console: Console, primary: MariadbServer, before: str) -> None:
    """Make what the service reads and the stand-ins for systemd's programs, and start it."""
    primary.run(
        "SET sql_log_bin = 0",
        f"CREATE USER repl@'%' IDENTIFIED BY '{PASSWORD}'",
        "GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO repl@'%'",
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
    (folder / "bin").mkdir()
    for name, text in (("systemctl", SYSTEMCTL), ("journalctl", JOURNALCTL)):
        path = folder / "bin" / name
        path.write_text(text)
        path.chmod(0o755)
    for command in (before, "systemctl start ibb"):
        status, said = console.run(command or "true")
        assert status == 0, said
