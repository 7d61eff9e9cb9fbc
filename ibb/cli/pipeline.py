"""`ibb pipeline`: change tables of a source, run and compared."""

from __future__ import annotations

import signal
import sys
import threading
from typing import TYPE_CHECKING

import click

from ibb.heap import keep_heaps_small
from ibb.protocol.gtid import GtidPosition

from .spark_extra import entry_of

if TYPE_CHECKING:
    from types import FrameType

EXIT_FOUND = 1


@click.group()
def pipeline() -> None:
    """
    Keep tables of a MariaDB server in a lakehouse: docs/change-tables.md.

    \b
      ibb pipeline run shop.toml
      ibb pipeline check shop.toml
      ibb pipeline as-of shop.toml shop.orders 0-101-7 orders.parquet

    Exit status 0: done; 1: `check` has found a difference; 2: it could not run.
    """  # noqa: D301 - click's own sign for lines that stay as they are


@pipeline.command()
@click.argument("config", type=click.Path(exists=True, dir_okay=False))
@click.option("--once", is_flag=True, help="End when everything that is there has been applied.")
@click.option(
    "--snapshot", multiple=True, metavar="PATTERN", help="Read these tables anew first: shop.*"
)
def run(config: str, snapshot: tuple[str, ...], *, once: bool) -> None:
    """
    Bring the tables of CONFIG up to date, and keep them so until SIGTERM or Ctrl-C.

    Without tables a snapshot comes first, if CONFIG names a server. One line on stdout for each
    snapshot of a table and each batch. Killed at any moment, it goes on where it was.

    \b
      ibb pipeline run shop.toml --once
      ibb pipeline run shop.toml --snapshot shop.orders

    Exit status 0: stopped, or done; 2: it cannot go on, stderr says why in one line.
    """  # noqa: D301 - as above
    keep_heaps_small()
    tables = entry_of("tables")
    stop = threading.Event()

    def ask_to_stop(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, ask_to_stop)
    signal.signal(signal.SIGINT, ask_to_stop)
    progress = tables.Progress(
        lambda name, rows: click.echo(f"snapshot {name}: {rows} rows"),
        lambda batch, applied: click.echo(
            f"batch to {batch.end}: {applied.rows} rows in {applied.tables} tables"
            f"{' (applied before)' if applied.skipped else ''}"
        ),
        click.echo,
    )
    tables.Pipeline(tables.read_config(config), progress).run(stop, once=once, snapshot=snapshot)


@pipeline.command()
@click.argument("config", type=click.Path(exists=True, dir_okay=False))
def check(config: str) -> None:
    """
    Compare the tables of CONFIG with the server: rows and checksums at one GTID.

    The server's tables are read in one consistent view; the change tables must be as far, so let
    `ibb pipeline run` catch up. One line a table.

    \b
      ibb pipeline check shop.toml

    Exit status 0: all are equal; 1: some differ; 2: it could not run.
    """  # noqa: D301 - as above
    tables = entry_of("tables")
    bad = 0
    for result in tables.check_tables(tables.read_config(config)):
        bad += not result.is_equal
        click.echo(result.line())
    sys.exit(EXIT_FOUND if bad else 0)


@pipeline.command()
@click.argument("config", type=click.Path(exists=True, dir_okay=False))
@click.argument("table")
@click.argument("gtid")
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--from-history", is_flag=True, help="Read the history table; GTIDs of all domains.")
def as_of(config: str, table: str, gtid: str, file: str, *, from_history: bool) -> None:
    """
    Write TABLE as it was right behind the group GTID into a Parquet FILE.

    It is the table's last version before, and what the binlog has from there: both must be left.
    With --from-history it is what the history table says, which needs neither.

    \b
      ibb pipeline as-of shop.toml shop.orders 0-101-7 orders.parquet
      ibb pipeline as-of --from-history shop.toml shop.orders 0-101-7 orders.parquet

    Exit status 0: done; 2: it cannot be told, stderr says why in one line.
    """  # noqa: D301 - as above
    tables = entry_of("tables")
    database, _, name = table.partition(".")
    position = GtidPosition.parse(gtid)
    settings, wanted = tables.read_config(config), tables.TableName(database, name)
    if from_history:
        rows = tables.write_history_as_of(settings, wanted, position, file)
        click.echo(f"{table} as of {position}: {rows} rows, from its history")
        return
    done = tables.write_as_of(settings, wanted, position, file)
    click.echo(
        f"{table} as of {position}: {done.rows} rows, from the version of "
        f"'{done.version}' and {done.groups} groups behind it"
    )
