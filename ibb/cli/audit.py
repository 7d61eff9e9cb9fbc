"""`ibb audit`: who changed which row when."""

from __future__ import annotations

import json
from datetime import UTC
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from .spark_extra import entry_of
from .spark_options import read_options, spark_options, what_is_read

if TYPE_CHECKING:
    from datetime import datetime

_STATEMENT_SHOWN = 200  # characters, on a line for people


@click.command()
@click.argument("source")
@read_options
@click.option(
    "--op", multiple=True, metavar="OP", help="insert, update or delete; may be repeated."
)
@click.option(
    "--key",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="What a row has before or after its change.",
)
@click.option("--server", multiple=True, type=int, help="Only of this server id; may be repeated.")
@click.option("--thread", multiple=True, type=int, help="Only of this connection id.")
@click.option("--statement", metavar="REGEX", help="Only by statements in which this occurs.")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="At most so many rows.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a row.")
@spark_options
def audit(
    source: str,
    master: str | None,
    conf: tuple[str, ...],
    limit: int | None,
    *,
    as_json: bool,
    **given: Any,
) -> None:
    """
    Tell who changed which row when in SOURCE: a directory, a URL of one, or a server.

    A line for each changed row, in the order of commits: time, GTID, server, connection, operation,
    table, key, and what has changed. Connection and statement are there if the primary logs them
    (GTID events of 12.3, binlog_annotate_row_events); the user is in no binlog. What was there
    before is ? where that is not logged (binlog_row_image). TRUNCATE and DDL change rows that no
    binlog has. Without --master Spark runs on this machine.

    \b
      ibb audit binlogs --table shop.orders --key id=4711
      ibb audit mariadb://repl@primary --start-datetime 2026-01-31T00:00Z --op delete \\
          --option passwordFile=/etc/ibb/repl-password
      ibb audit s3://bucket/binlogs --server 7 --json --master spark://spark.example:7077

    Exit status 0: done, whether rows were found or not; 2: it could not run. docs/spark.md has all
    --option.
    """  # noqa: D301 - click's own sign for lines that stay as they are
    job = entry_of("jobs")
    options = what_is_read(source, given, ops=given.pop("op"))
    wanted = job.RowsWanted.parse(
        given["key"], given["server"], given["thread"], given["statement"]
    )
    with job.job_session("ibb audit", master or job.DEFAULT_MASTER, conf) as spark:
        rows = job.changed_rows(spark, options, wanted)
        if limit is not None:
            rows = rows.limit(limit)
        found = False
        for row in islice(rows.toLocalIterator(), limit):
            found = True
            click.echo(_as_json(row.asDict()) if as_json else _as_line(row.asDict()))
    if not found and limit != 0:
        click.echo("no changed row meets all of these conditions", err=True)


def _as_json(row: dict[str, Any]) -> str:
    return json.dumps({**row, "commit_time": f"{_utc(row):%Y-%m-%dT%H:%M:%SZ}"}, ensure_ascii=False)


def _as_line(row: dict[str, Any]) -> str:
    before, after = row["before"] or {}, row["after"] or {}
    key = " ".join(f"{name}={_text(value)}" for name, value in sorted((row["key"] or {}).items()))
    if row["op"] == "update":
        changed = sorted(name for name in after if before.get(name, after) != after[name])
        # With binlog_row_image=MINIMAL the image before has little more than the key.
        old = {name: _text(before[name]) if name in before else "?" for name in changed}
        what = (f"{name}: {old[name]} -> {_text(after[name])}" for name in changed)
    else:
        what = (f"{name}: {_text(value)}" for name, value in sorted((after or before).items()))
    thread = "-" if row["thread"] is None else row["thread"]
    who = f"server {row['server']} thread {thread}"
    told = click.style(f"{row['op']:<6}", fg="red" if row["op"] == "delete" else None)
    by = "" if row["statement"] is None else f"  [{_on_a_line(row['statement'])}]"
    return (
        f"{_utc(row):%Y-%m-%d %H:%M:%S}  {row['gtid']:<16}  {who:<20}  {told}"
        f"  {row['database']}.{row['table']}  {key or '-'}  {', '.join(what)}{by}"
    )


def _on_a_line(statement: str) -> str:
    words = " ".join(statement.split())
    return words if len(words) <= _STATEMENT_SHOWN else words[:_STATEMENT_SHOWN] + "..."


def _text(value: str | None) -> str:
    return "NULL" if value is None else json.dumps(value, ensure_ascii=False)


def _utc(row: dict[str, Any]) -> datetime:
    """Return when a row was committed; Spark gives the local time."""
    moment: datetime = row["commit_time"].astimezone(UTC)
    return moment
