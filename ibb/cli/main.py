"""`ibb`: the group of all commands, and how errors look."""

from __future__ import annotations

import sys

import click

from ibb import __version__
from ibb.kernels import side
from ibb.protocol.errors import IbbError

from .account import account
from .audit import audit
from .backup import backup
from .bench import bench
from .config import config
from .demo import demo
from .groups import groups
from .inspect import inspect
from .pipeline import pipeline
from .serve import serve
from .statistics import statistics
from .status import status
from .verify import verify

EXIT_FAILED = 2  # could not run; a wrong usage as well


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
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
      ibb audit binlogs --table shop.orders        who changed which row when
      ibb statistics binlogs --by day,server       how much changed
      ibb backup binlogs copy                      a copy, also beside a running server

    \b
    Exit status
      0  done
      1  `verify` or `config check` has found something wrong, or `demo` a difference
      2  wrong usage, or it could not run: stderr says why in one line
    """  # noqa: D301 - click's own sign for lines that stay as they are
    del debug  # `main` looks for it: it must work for errors of any place


for command in (
    account,
    audit,
    backup,
    bench,
    config,
    demo,
    groups,
    inspect,
    pipeline,
    serve,
    statistics,
    status,
    verify,
):
    ibb.add_command(command)


def main() -> None:
    """Run the command line; errors are one line on stderr and exit status 2."""
    try:
        ibb(prog_name="ibb")
    except (IbbError, OSError) as error:
        if "--debug" in sys.argv[1:]:
            raise
        click.echo(f"ibb: {error}", err=True)
        sys.exit(EXIT_FAILED)
