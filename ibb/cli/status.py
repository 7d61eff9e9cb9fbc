"""`ibb status`: how a server fares, asked by SQL."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import click

from ibb.server.config import DEFAULT_PORT, Config
from ibb.server.config_file import read_password_file
from ibb.server.log import set_up_log
from ibb.server.relay.upstream import UpstreamAddress
from ibb.server.relay.upstream_tls import UpstreamTls
from ibb.server.status_report import read_report

from .password import ask_password
from .table import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ibb.server.status_report import Report, Row

PASSWORD_VARIABLE: Final = "IBB_PASSWORD"  # noqa: S105 - its name
FILES_SHOWN: Final = 10  # the newest
_UPSTREAM_SHOWN: Final = (
    *("Master_Host", "Master_Port", "Slave_IO_Running", "Slave_SQL_Running"),
    *("Seconds_Behind_Master", "Gtid_IO_Pos", "Last_IO_Errno", "Last_IO_Error"),
)


@click.command()
@click.argument("url")
@click.option(
    "--password-file",
    type=click.Path(exists=True, dir_okay=False),
    help=f"File that holds the password; without it ${PASSWORD_VARIABLE}, or it is asked for.",
)
@click.option(
    "--ssl",
    "ssl_mode",
    type=click.Choice(["off", "prefer", "verify", "unverified"]),
    default="prefer",
    show_default=True,
    help="TLS, as upstream_ssl of `ibb serve`.",
)
@click.option("--ssl-ca", default="", help="Certificates that vouch for the server's, PEM.")
@click.option("--ssl-fp", default="", help="SHA-256 of the server's certificate, hexadecimal.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, with everything.")
def status(
    url: str,
    password_file: str | None,
    ssl_mode: str,
    ssl_ca: str,
    ssl_fp: str,
    *,
    as_json: bool,
) -> None:
    """
    Show how the server at URL fares, mariadb://USER@HOST:PORT: positions, upstream, readers, files.

    \b
      ibb status mariadb://watcher@127.0.0.1:3307 --password-file watcher-password
      ibb status mariadb://watcher@db2.example --ssl verify --json

    The names are those of SHOW BINLOG STATUS, SHOW REPLICA STATUS, SHOW BINLOG READERS, SHOW
    BINLOG LEASES, SHOW BINLOG STORAGE and SHOW BINARY LOGS, and of the dashboard. The account
    needs REPLICATION CLIENT (BINLOG MONITOR), SLAVE MONITOR for the upstream and REPLICATION
    MASTER ADMIN for the readers; what it may not see is told as an error in its place. The port
    is 3307 where it is left out.

    Exit status 0; 2: there was no answer, or the login was refused.
    """  # noqa: D301 - click's own sign for lines that stay as they are
    set_up_log(level="warning", shape="text")
    names = ("URL", "--password-file")
    wanted = Config(upstream_ssl=ssl_mode, upstream_ssl_ca=ssl_ca, upstream_ssl_fp=ssl_fp)
    tls = UpstreamTls.from_config(wanted, "--ssl-{}".format)
    address = UpstreamAddress.parse(url, "", tls, DEFAULT_PORT, names=names)
    # Only after all that may be wrong in these is a password asked for.
    address = replace(address, password=_password(password_file))
    report = asyncio.run(read_report(address))
    if as_json:
        click.echo(json.dumps(report, indent=2))
        return
    for line in _lines(report):
        click.echo(line)


def _password(path: str | None) -> str:
    if path is not None:
        return read_password_file(path)
    if PASSWORD_VARIABLE in os.environ:
        return os.environ[PASSWORD_VARIABLE]
    return ask_password(f"--password-file FILE, or ${PASSWORD_VARIABLE}")


def _lines(report: Report) -> Iterator[str]:
    for section, found in report.items():
        if section != next(iter(report)):
            yield ""
        yield click.style(f"{section}:", bold=True)
        if isinstance(found, str):
            yield f"  {found}"
        elif not found:
            yield "  none"
        else:
            yield from (f"  {line}" for line in _section(section, found))


def _section(section: str, rows: list[Row]) -> Iterator[str]:
    left_out = 0
    if section == "upstream":
        rows = [{name: row.get(name) for name in _UPSTREAM_SHOWN} for row in rows]
    if section == "files":
        left_out = max(0, len(rows) - FILES_SHOWN)
        rows = rows[left_out:]
    if len(rows) == 1:
        width = max(map(len, rows[0]))
        yield from (f"{name:{width}}  {_shown(value)}" for name, value in rows[0].items())
    else:
        yield from table(list(rows[0]), [list(row.values()) for row in rows])
    if left_out:
        yield f"and {left_out} older ones"


def _shown(value: str | int | None) -> str:
    return "-" if value is None else str(value)
