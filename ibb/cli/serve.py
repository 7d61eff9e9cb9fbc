"""`ibb serve`: the server, and the relay."""

from __future__ import annotations

import asyncio
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click
import uvloop

from ibb.server.config import Config, size_text
from ibb.server.config_file import config_from, read_config_file
from ibb.server.listening import address_text
from ibb.server.log import set_up_log
from ibb.server.service import serve as run_service

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import Field

    from ibb.server.server import Server


def _option(setting: Field[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the option for one setting; left out, it says nothing against the file."""
    name = "--" + setting.name.replace("_", "-")
    text = setting.metadata["help"]
    if isinstance(setting.default, bool):
        return click.option(name, setting.name, is_flag=True, default=None, help=text)
    default: Any = setting.default
    kind: Any = type(default)
    if setting.metadata.get("choices"):
        kind = click.Choice(setting.metadata["choices"])
    if setting.metadata["unit"] == "bytes":
        kind, default = str, size_text(default)
    shown = f" [default: {default}]" if setting.default not in ("", 0) else ""
    return click.option(name, setting.name, type=kind, default=None, help=text + shown)


def _all_options(command: Callable[..., None]) -> Callable[..., None]:
    for setting in reversed(fields(Config)):
        if not setting.metadata.get("file_only"):
            command = _option(setting)(command)
    return command


@click.command()
@click.argument("directory", type=click.Path(file_okay=False))
@click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, dir_okay=False),
    help="TOML file of settings, by the names of the options with underscores.",
)
@_all_options
def serve(directory: str, config_file: str | None, **options: object) -> None:
    """
    Serve DIRECTORY to replicas, as a relay with --upstream.

    \b
    A relay, with TLS by a certificate of its own that lasts:
      ibb serve binlogs --listen 0.0.0.0:3307 --accounts accounts.toml --ssl-state tls \\
          --require-tls --upstream mariadb://repl@primary --upstream-ssl verify \\
          --upstream-password-file upstream-password
    A directory that a MariaDB 12.3 server writes, read only:
      ibb serve /var/lib/mysql/binlogs --read-only --accounts accounts.toml

    `ibb account add` makes the accounts. Without a file of them one account is made, for this
    machine alone, and its password shown once. Each option may stand in a TOML file, too, by its
    name with underscores: --config FILE.

    Prints `ready HOST:PORT` once it accepts connections and logs to stderr. SIGHUP makes it read
    settings, accounts and certificates again. SIGTERM ends dumps at the end of a group, and it with
    exit status 0; 2: it could not start, or go on.
    """  # noqa: D301 - click's own sign for lines that stay as they are

    def read() -> Config:
        values = read_config_file(config_file) if config_file else {}
        values |= {name: value for name, value in options.items() if value is not None}
        return config_from(values)

    config = read()
    set_up_log(level=config.log_level, shape=config.log_format)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run_service(directory, config, _say_ready, read))


def _say_ready(server: Server) -> None:
    if server.made_up is not None:
        user, password = server.made_up
        click.echo(f"no accounts file: user {user}, password {password}", err=True)
    click.echo(f"ready {address_text(*server.address)}")  # click flushes
