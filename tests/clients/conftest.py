"""A primary and a relay of it with the same accounts and certificate, for every client to visit."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pymysql
import pytest

from ibb.demo.installation import Installation
from ibb.demo.serve_process import run_ibb
from ibb.server.connections.certificate import self_signed

from ..integration.conftest import mariadb_10, mariadb_11, new_rig
from ..integration.ibb_process import IbbProcess
from ..integration.mariadb_server import PACKET_BYTES_MAX, MariadbServer
from ..integration.waiting import wait_until
from .drivers import METHODS, NATIVE, PARSEC, SHA2, Place
from .row_workload import row_workload

__all__ = ["mariadb_10", "mariadb_11", "site"]

SECRET = "s3cret"
ROOT = Path(__file__).parents[2]
PROGRAM_SECONDS_MAX = 120.0
FOLLOW_SECONDS_MAX = 60.0


class Site(NamedTuple):
    """The two servers that every client must see alike."""

    primary: MariadbServer
    ibb: IbbProcess
    certificate: Path
    plugins: Path

    def places(self, server: MariadbServer | IbbProcess) -> dict[str, Place]:
        """Return where and as whom to log in to one of them, by role."""
        return {
            role: Place(server.port, role, SECRET, str(self.certificate), str(self.plugins))
            for role in ("admin", "nobody", *METHODS)
        }


@pytest.fixture(scope="session")
def site(mariadb_10: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Both servers, the relay having all that the primary has."""
    folder = tmp_path_factory.mktemp("certificate")
    paths = [folder / "certificate.pem", folder / "key.pem"]
    for path, data in zip(paths, self_signed("localhost"), strict=True):
        path.write_bytes(data)
    certificate, key = paths
    (plugins,) = mariadb_10.base.glob("lib/*-linux-gnu/libmariadb3/plugin")
    with new_rig() as rig:
        primary = rig.primary(
            mariadb_10,
            "--plugin-load-add=auth_ed25519",
            "--binlog-format=ROW",
            "--binlog-row-metadata=FULL",
            "--character-set-server=utf8mb4",
            f"--ssl-cert={certificate}",
            f"--ssl-key={key}",
        )
        add_accounts(primary)
        row_workload(primary)
        ibb = rig.ibb(
            f"--ssl-cert={certificate}",
            f"--ssl-key={key}",
            f"--max-allowed-packet={PACKET_BYTES_MAX}",
        ).relay_from(primary.port)
        for role in ("admin", "nobody", *METHODS):
            add_account(ibb, role)
        ibb.start()
        follow(primary, ibb)
        yield Site(primary, ibb, certificate, plugins)


def add_accounts(primary: MariadbServer) -> None:
    """Make the accounts that a 10.11 can have."""
    statements = ["SET sql_log_bin = 0"]
    for role in ("admin", "nobody", *METHODS):
        if role not in (SHA2, PARSEC):
            plugin = role if role in METHODS else NATIVE
            how = f"VIA {plugin} USING PASSWORD('{SECRET}')"
            statements.append(f"CREATE USER `{role}`@'%' IDENTIFIED {how}")
    primary.run(*statements, "GRANT ALL ON *.* TO admin@'%'")


def add_account(ibb: IbbProcess, role: str) -> None:
    """Make the account of a role."""
    words = ["account", "add", "--file", str(ibb.folder / "accounts.toml"), "--password-stdin"]
    words += ["--method", role if role in METHODS else NATIVE]
    if role == "admin":
        words += ["--grant", "ALL PRIVILEGES"]
    done = run_ibb(*words, role, stdin=SECRET)
    assert done.returncode == 0, done.stderr


def rows_of(port: int, sql: str) -> list[tuple[object, ...]]:
    """Return what a server answers the administrator."""
    link = pymysql.connect(host="127.0.0.1", port=port, user="admin", password=SECRET)
    with link, link.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


def position(port: int) -> set[str]:
    """Return `gtid_binlog_pos` of a server; the order of its domains means nothing."""
    return set(str(rows_of(port, "SELECT @@GLOBAL.gtid_binlog_pos")[0][0]).split(","))


def follow(primary: MariadbServer, ibb: IbbProcess) -> None:
    """Wait until the relay has all that the primary has."""
    wanted = position(primary.port)
    wait_until(lambda: position(ibb.port) == wanted, FOLLOW_SECONDS_MAX, ibb.log_tail)


def run_program(*words: str, stdin: str = "", **environment: str) -> str:
    """Run a Python program of the tests and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", *words],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PROGRAM_SECONDS_MAX,
        check=False,
        cwd=ROOT,
        env=os.environ | environment,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout
