"""`ibb`: the group of all commands, and how errors look."""

from __future__ import annotations

import os
import sys
from collections import UserDict
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import click

from ibb import __version__
from ibb.kernels import side
from ibb.protocol.errors import IbbError

if TYPE_CHECKING:
    from collections.abc import Iterator

EXIT_FAILED = 2  # could not run; a wrong usage as well
EXIT_UNREAD = 141  # 128 and SIGPIPE
EXIT_INTERRUPTED = 130  # 128 and SIGINT, as of whatever a shell starts
NAMES: Final = (
    *("account", "audit", "backup", "bench", "config", "demo", "groups", "inspect", "pipeline"),
    *("serve", "statistics", "status", "verify"),
)


class _Commands(UserDict[str, click.Command]):
    """The commands by name; each is imported when it is asked for: all take half a second."""

    def __missing__(self, name: str) -> click.Command:
        if name not in NAMES:
            raise KeyError(name)
        command: click.Command = getattr(import_module(f"ibb.cli.{name}"), name)
        return command

    def __contains__(self, name: object) -> bool:
        return name in NAMES

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


class _Ibb(click.Group):
    def make_context(self, *args: Any, **more: Any) -> click.Context:
        with _read_to_the_end():  # --help is printed here
            return super().make_context(*args, **more)

    def invoke(self, ctx: click.Context) -> object:
        with _read_to_the_end():
            return super().invoke(ctx)


@contextmanager
def _read_to_the_end() -> Iterator[None]:
    """End with a status of its own when whoever reads the output has had enough."""
    try:
        yield
    except BrokenPipeError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise click.exceptions.Exit(EXIT_UNREAD) from error


@click.group(
    cls=_Ibb, commands=_Commands(), context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(
    __version__, prog_name="ibb", message=f"%(prog)s, version %(version)s ({side()})"
)
@click.option("--debug", is_flag=True, help="Show where an error came from.")
def ibb(*, debug: bool) -> None:
    """
    Serve, relay and inspect MariaDB's page-based binlogs (.ibb files).

    \b
      ibb demo                                     a whole replication at work
      ibb account add --file accounts.toml --grant 'REPLICATION SLAVE' repl
      ibb serve binlogs --accounts accounts.toml   a master; with --upstream a relay
      ibb status mariadb://watcher@127.0.0.1:3307  how a server fares
      ibb config check ibb.toml                    what is wrong with a file of settings
      ibb groups binlogs --from 0-1-100            what is stored
      ibb verify binlogs                           whether it is whole
      ibb backup binlogs copy                      a copy, also beside a running server

    With the extra `spark` (pip install '.[spark]', and Java):

    \b
      ibb audit binlogs --table shop.orders        who changed which row when
      ibb statistics binlogs --by day,server       how much changed
      ibb pipeline run tables.toml                 tables kept as Delta tables

    \b
    Exit status
      0  done
      1  `verify` or `config check` has found something wrong, or `demo` a difference
      2  wrong usage, or it could not run: stderr says why in one line
      130  ended by Ctrl-C
      141  whoever read the output closed it, such as `head`
    """  # noqa: D301 - click's own sign for lines that stay as they are
    del debug  # `main` looks for it: it must work for errors of any place


def main() -> None:
    """Run the command line; errors are one line on stderr and exit status 2."""
    try:
        sys.exit(ibb(prog_name="ibb", standalone_mode=False))
    except click.ClickException as error:
        error.show()
        sys.exit(EXIT_FAILED)
    except click.Abort:
        click.echo("Aborted!", err=True)
        sys.exit(EXIT_INTERRUPTED)
    except (IbbError, OSError) as error:
        if "--debug" in sys.argv[1:]:
            raise
        click.echo(f"ibb: {error}", err=True)
        sys.exit(EXIT_FAILED)
