"""`ibb bench`: how fast this machine is with ibb, as ratios."""

from __future__ import annotations

import json

import click
from rich.console import Console

from ibb.bench.commits import COMMITTERS_MAX, SECONDS_MAX, measure_commits


@click.group()
def bench() -> None:
    """
    Measure this machine; ratios, since absolute figures differ from one to the next.

    \b
      ibb bench commits --folder /var/lib/ibb --seconds 10
    """  # noqa: D301 - click's own sign for lines that stay as they are


@bench.command()
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, writable=True),
    help="Where to make the stores, which are removed again [default: the temporary folder].",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0, SECONDS_MAX, min_open=True),
    default=3.0,
    show_default=True,
    help="Of each round.",
)
@click.option(
    "--committers",
    type=click.IntRange(1, COMMITTERS_MAX),
    default=512,
    show_default=True,
    help="Tasks, or threads, that commit side by side.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a round, nothing else.")
def commits(folder: str | None, seconds: float, committers: int, *, as_json: bool) -> None:
    """
    Durable commits a second, beside a bare loop of write and fdatasync.

    Every commit is synced before it counts. One committer waits for each sync of its own; many
    share them. The disk decides most of it: compare the ratios.

    \b
      ibb bench commits --folder /var/lib/ibb --seconds 10    the disk that will hold the binlog

    Exit status 0; 2: it could not run.
    """  # noqa: D301 - as above
    console = Console(stderr=True)
    with console.status("measuring") if console.is_terminal and not as_json else console:
        for found in measure_commits(folder, seconds=seconds, committers=committers):
            if as_json:
                click.echo(json.dumps(found._asdict()))
                continue
            ratio = "" if found.ratio is None else f"{found.ratio:8.2f} x bare"
            click.echo(f"{found.name:<26} {found.per_second:>10,.0f} {found.unit + '/s':<9}{ratio}")
