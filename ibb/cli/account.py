"""`ibb account`: who may log in."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ibb.server.accounts import PASSWORD_BYTES_MAX, AccountBook, make_account
from ibb.server.config import ConfigError


@click.group()
def account() -> None:
    """Accounts of a server, kept in a file of hashes."""


@account.command()
@click.argument("user")
@click.option(
    "--file", "path", required=True, type=click.Path(dir_okay=False), help="The accounts file."
)
@click.option("--host", default="%", show_default=True, help="Pattern for where USER comes from.")
@click.option("--grant", "grants", multiple=True, help="Privileges, by MariaDB's names.")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
def add(user: str, path: str, host: str, grants: tuple[str, ...], *, password_stdin: bool) -> None:
    """
    Add USER, or replace it, and make the file if it is missing.

    The file keeps MariaDB's hash of the password; a running server reads it at its next start.
    """
    book = AccountBook.load(path) if Path(path).exists() else AccountBook()
    book.add(make_account(user, host, _password(from_stdin=password_stdin), grants))
    book.save(path)


def _password(*, from_stdin: bool) -> str:
    """Return the password: the first line of standard input, or what is typed in blind."""
    if not from_stdin:
        return str(click.prompt("Password", hide_input=True, confirmation_prompt=True))
    data = sys.stdin.buffer.readline(PASSWORD_BYTES_MAX + 2)
    try:
        return data.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise ConfigError("the password is not UTF-8") from error
