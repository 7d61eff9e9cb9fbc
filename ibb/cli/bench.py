"""`ibb bench`: how fast this machine is with ibb, as ratios."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ibb.bench.commits import COMMITTERS_MAX, SECONDS_MAX, measure_commits
from ibb.bench.plots import draw, joined
from ibb.bench.profiles import PATHS
from ibb.bench.profiles import profile as profile_of
from ibb.bench.report import TITLES, as_object, notes, table_rows
from ibb.bench.suite import QUICK_ROWS, ROUNDS_MAX, ROWS, rows_named, run
from ibb.bench.workbench import SCALES, Workbench
from ibb.demo.installation import Installation

from .table import table


@click.group(invoke_without_command=True)
@click.option(
    "--quick", is_flag=True, help="Small data and the rows that matter most: under two minutes."
)
@click.option("--scale", type=click.Choice(list(SCALES)), help="Size of the data [default: full].")
@click.option(
    "--only",
    multiple=True,
    metavar="ROW",
    help="Measure this row (several times: these; catch-up-* means all such).",
)
@click.option("--list", "list_rows", is_flag=True, help="Say which rows there are, and end.")
@click.option(
    "--rounds", type=click.IntRange(1, ROUNDS_MAX), help="Of each row [default: 3; quick: 1]."
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder that keeps the data sets and holds the servers [default: a temporary one].",
)
@click.option("--no-mariadbd", is_flag=True, help="Measure this side alone.")
@click.option(
    "--plots",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for PNG plots as well.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object with every round's figures.")
@click.pass_context
def bench(context: click.Context, /, *, list_rows: bool, **options: Any) -> None:
    """
    Measure this machine against a real mariadbd; ratios, since absolute figures differ.

    Starts a throwaway mariadbd, if one is installed, and `ibb serve`, gives both the same groups,
    and reads both with the same reader, in turns. Wants 30 GiB of disk at full scale.

    \b
      ibb bench --quick
      ibb bench --data /var/tmp/bench --rounds 5 --plots plots
      ibb bench --only catch-up-1-bulk --rounds 3 --data /var/tmp/bench
      ibb bench profile serve-bulk --data /var/tmp/bench
      ibb bench commits --folder /var/lib/ibb --seconds 10

    docs/performance.md says what the rows mean. Exit status 0, whatever the figures are; 2: it
    could not run, or a server sent something else than was stored.
    """  # noqa: D301 - click's own sign for lines that stay as they are
    if context.invoked_subcommand is not None:
        return
    if list_rows:
        for row in ROWS:
            click.echo(f"{row.name:<24} {row.about} [{row.state}]")
        return
    _measure(**options)


def _measure(
    *,
    quick: bool,
    scale: str | None,
    only: tuple[str, ...],
    rounds: int | None,
    data: Path | None,
    no_mariadbd: bool,
    plots: Path | None,
    as_json: bool,
) -> None:
    rows = rows_named(only or (QUICK_ROWS if quick else ("*",)))
    rounds = rounds or (1 if quick else 3)
    sizes = SCALES[scale or ("quick" if quick else "full")]
    installation = None if no_mariadbd else Installation.find()
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task("", total=len(rows) * rounds)

        def tell(what: str) -> None:
            bar.update(task, description=what)

        def progress(done: int, what: str) -> None:
            bar.update(task, completed=done, description=what)

        with Workbench(sizes, data, installation, tell) as workbench:
            report = run(workbench, rows, rounds, progress)
    if as_json:
        click.echo(json.dumps(as_object(report)))
    else:
        for line in (*table(TITLES, table_rows(report)), "", *notes(report)):
            click.echo(line)
    if plots is not None:
        for path in draw(as_object(report), plots):
            click.echo(f"drawn: {path}", err=True)


@bench.command(name="draw")
@click.argument(
    "runs",
    nargs=-1,
    required=True,
    metavar="RUN...",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.option(
    "--plots",
    default="plots",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the PNG plots.",
)
def draw_runs(runs: tuple[Path, ...], plots: Path) -> None:
    """
    Draw what was measured before: each RUN is a file with the output of --json.

    Nothing is measured. Of a row that several files have, the last one's figures count.

    \b
      ibb bench --only 'catch-up-*' --json > catch-up.json
      ibb bench --only history --only seek-files --json > curves.json
      ibb bench draw catch-up.json curves.json --plots plots

    Exit status 0; 2: a file has something else, or matplotlib is not installed.
    """  # noqa: D301 - as above
    for path in draw(joined(runs), plots):
        click.echo(f"drawn: {path}", err=True)


@bench.command()
@click.argument("path", type=click.Choice(PATHS))
@click.option(
    "--scale",
    type=click.Choice(list(SCALES)),
    default="quick",
    show_default=True,
    help="Size of the data.",
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder that keeps the data sets [default: a temporary one].",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, nothing else.")
def profile(path: str, scale: str, data: Path | None, *, as_json: bool) -> None:
    """
    Where the processor's time goes on one PATH, by module and by function.

    The path runs in this process, and is sampled by the processor's clock: a busy machine or a
    slow disk does not show. What C code takes counts for the Python that calls it.

    \b
      ibb bench profile serve-one-row --scale quick --data /var/tmp/bench

    Exit status 0; 2: it could not run.
    """  # noqa: D301 - as above
    with Workbench(SCALES[scale], data) as workbench:
        found = profile_of(workbench, path)
    if as_json:
        click.echo(json.dumps(found._asdict()))
        return
    click.echo(f"{path}: {found.processor:.2f} processor seconds a GB")
    for shares in (found.modules, found.functions):
        click.echo("")
        for share in shares:
            click.echo(f"{share.share:7.1%}  {share.place}")


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
