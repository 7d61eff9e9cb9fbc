"""`ibb statistics`: how much changed, by table, operation, day or server."""

from __future__ import annotations

import json
from datetime import UTC
from typing import Any

import click

from .spark_extra import entry_of
from .spark_options import read_options, spark_options, what_is_read
from .table import table

_GROUP_TITLES = ("gtid", "time", "server", "rows", "bytes", "tables")


@click.command()
@click.argument("source")
@read_options
@click.option(
    "--by",
    default="database,table,op",
    show_default=True,
    metavar="NAMES",
    help="Of day, server, domain, database, table and op, commas between; '': all in one line.",
)
@click.option(
    "--largest",
    type=click.IntRange(0, 10_000),
    default=10,
    show_default=True,
    metavar="N",
    help="So many of the largest groups, too.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@spark_options
def statistics(
    source: str,
    by: str,
    largest: int,
    master: str | None,
    conf: tuple[str, ...],
    *,
    as_json: bool,
    **given: Any,
) -> None:
    """
    Count what changed in SOURCE: a directory, a URL of one, or a server.

    Rows, bytes and groups by table and operation, or by what --by says, then the largest groups.
    Days are UTC. Bytes are those of events; a line without a table is what is no row: GTIDs,
    statements, and groups that changed no row. Without --master Spark runs on this machine.

    \b
      ibb statistics binlogs
      ibb statistics binlogs --by day,server --largest 0 --json
      ibb statistics s3://bucket/binlogs --by day,database,table --start-datetime 2024-01-01 \\
          --master spark://spark.example:7077

    Exit status 0: done; 2: it could not run. docs/spark.md has all --option.
    """  # noqa: D301 - click's own sign for lines that stay as they are
    job = entry_of("jobs")
    options = what_is_read(source, given)
    names = [name.strip() for name in by.split(",") if name.strip()]
    with job.job_session("ibb statistics", master or job.DEFAULT_MASTER, conf) as spark:
        found = job.statistics(spark, options, by=names, largest=largest)
        counts = [row.asDict() for row in found.counts.toLocalIterator()]
        groups = [row.asDict() for row in found.largest.collect()] if largest else []
    for group in groups:
        group["commit_time"] = f"{group['commit_time'].astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    if as_json:
        for row in (*counts, *groups):
            click.echo(json.dumps(row, ensure_ascii=False, default=str))
        return
    titles = (*names, "rows", "bytes", "groups")
    for line in table(titles, ([row[name] for name in titles] for row in counts)):
        click.echo(line)
    if groups:
        click.echo()
        rows = ([*list(group.values())[:-1], " ".join(group["tables"])] for group in groups)
        for line in table(_GROUP_TITLES, rows):
            click.echo(line)
