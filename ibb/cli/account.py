"""`ibb account`: who may log in."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from ibb.protocol.authentication import PASSWORD_BYTES_MAX
from ibb.protocol.socket_peer import METHOD_NAME as UNIX_SOCKET
from ibb.server.config import ConfigError, parse_size
from ibb.server.login.accounts import REQUIREMENTS, AccountBook, make_account
from ibb.server.login.auth_methods import DEFAULT_METHOD, METHODS
from ibb.server.login.privileges import PRIVILEGES

from .password import ask_password

_file = click.option(
    "--file", "path", required=True, type=click.Path(dir_okay=False), help="The accounts file."
)
_host = click.option(
    "--host", default="%", show_default=True, help="Pattern for where USER comes from."
)


@click.group()
def account() -> None:
    """
    Accounts of a server, kept in a file of hashes.

    \b
      ibb account add --file accounts.toml --grant 'REPLICATION SLAVE' repl
      ibb account list --file accounts.toml
      ibb serve binlogs --accounts accounts.toml

    SIGHUP makes a running server read the file again; a broken one changes nothing. What the words
    mean is in docs/accounts.md. Exit status 0; 2: nothing was changed, and stderr says why.
    """  # noqa: D301 - click's own sign for lines that stay as they are


@account.command()
@click.argument("user")
@_file
@_host
@click.option(
    "--grant",
    "grants",
    multiple=True,
    help="Privileges, by MariaDB's names, with commas between them or one an option: "
    f"{', '.join(sorted(PRIVILEGES))}.",
)
@click.option(
    "--method",
    "methods",
    multiple=True,
    type=click.Choice(list(METHODS)),
    help=f"Way to log in; several are tried in this order. [default: {DEFAULT_METHOD}]",
)
@click.option(
    "--require",
    type=click.Choice([word for word in REQUIREMENTS if word], case_sensitive=False),
    help="SSL: only by TLS. X509: with a certificate, too.",
)
@click.option("--max-connections", type=click.IntRange(0), default=0, help="At a time; 0: any.")
@click.option(
    "--dump-rate", default="0", help="Bytes a second of a dump, e.g. 10M; 0: the server's."
)
@click.option(
    "--dump-delay",
    type=click.IntRange(0),
    default=0,
    help="Seconds that a group must be old for a dump; 0: the server's.",
)
@click.option(
    "--dump-lease",
    type=click.IntRange(0),
    default=0,
    help="Seconds for which a replica that has gone finds what it needs; 0: the server's.",
)
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
def add(
    user: str, path: str, host: str, methods: tuple[str, ...], password_stdin: bool, **rest: Any
) -> None:
    """
    Add USER, or replace it, and make the file if it is missing; its owner and mode stay.

    \b
    A replica, only by TLS and only from one network; the password is asked for:
      ibb account add --file accounts.toml --grant 'REPLICATION SLAVE' \\
          --method ed25519 --require SSL --host 10.0.7.0/24 repl
    Somebody who looks after the server:
      ibb account add --file accounts.toml --grant 'BINLOG MONITOR, BINLOG ADMIN' \\
          --host localhost dba
    The system's user of the same name on the unix socket, without a password:
      ibb account add --file accounts.toml --grant 'BINLOG MONITOR' \\
          --method unix_socket --host localhost monitor

    The file keeps what MariaDB keeps of a password, never the password. Exit status 0; 2: nothing
    was changed.
    """  # noqa: D301 - as above
    methods = methods or (DEFAULT_METHOD,)
    needed = set(methods) != {UNIX_SOCKET}
    password = _password(from_stdin=password_stdin) if needed else ""
    rest["require"] = rest["require"] or ""
    rest["dump_rate"] = parse_size(rest["dump_rate"])
    with AccountBook.changing(path) as book:
        replaced = book.add(make_account(user, host, password, methods=methods, **rest))
    if replaced:
        click.echo(f"{user}@{host} was there, and is replaced", err=True)


@account.command("list")
@_file
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def list_accounts(path: str, *, as_json: bool) -> None:
    """
    List accounts and what they may do; no hashes.

    \b
      ibb account list --file accounts.toml --json

    Exit status 0; 2: the file is missing or broken.
    """  # noqa: D301 - as above
    for entry in AccountBook.load(path):
        shown = {
            "user": entry.user,
            "host": entry.host,
            "methods": [name for name, _ in entry.auth],
            "grants": sorted(entry.grants),
            "require": entry.require,
            "max_connections": entry.max_connections,
            "dump_rate": entry.dump_rate,
            "dump_delay": entry.dump_delay,
            "dump_lease": entry.dump_lease,
        }
        click.echo(json.dumps(shown) if as_json else _as_line(shown))


@account.command()
@click.argument("user")
@_file
@_host
def remove(user: str, path: str, host: str) -> None:
    """
    Remove USER at one host pattern; its sessions go on until they end.

    \b
      ibb account remove --file accounts.toml --host '10.0.%' repl

    Exit status 0; 2: there is no such account, and nothing was changed.
    """  # noqa: D301 - as above
    with AccountBook.changing(path) as book:
        if not book.remove(user, host):
            raise ConfigError(f"no account {user}@{host} in {path}")


def _as_line(shown: dict[str, Any]) -> str:
    """Return an account as a person reads it."""
    words = [f"{shown['user']}@{shown['host']}", f"by {', '.join(shown['methods'])}"]
    words.append(f"may {', '.join(shown['grants']) or 'log in'}")
    if shown["require"]:
        words.append(f"requires {shown['require']}")
    if shown["max_connections"]:
        words.append(f"at most {shown['max_connections']} connections")
    if shown["dump_rate"]:
        words.append(f"{shown['dump_rate']} bytes/s")
    if shown["dump_delay"]:
        words.append(f"{shown['dump_delay']} s late")
    if shown["dump_lease"]:
        words.append(f"lease of {shown['dump_lease']} s")
    return "  ".join(words)


def _password(*, from_stdin: bool) -> str:
    """Return the password: the first line of standard input, or what is typed in blind."""
    if not from_stdin:
        return ask_password("--password-stdin reads it from standard input", confirm=True)
    data = sys.stdin.buffer.readline(PASSWORD_BYTES_MAX + 2)
    try:
        return data.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise ConfigError("the password is not UTF-8") from error
