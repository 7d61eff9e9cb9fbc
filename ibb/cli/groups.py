"""`ibb groups`: one line for each event group."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from ibb.protocol.errors import IbbError, SqlError
from ibb.protocol.gtid import GtidPosition
from ibb.storage.belongings import check_holds_binlog
from ibb.storage.file_name import binlog_name
from ibb.storage.inspect.group_listing import list_groups
from ibb.storage.inspect.recovered_view import recovered_view
from ibb.storage.os_disk import OsDisk
from ibb.storage.read_only import ReadOnlyHistory

if TYPE_CHECKING:
    from collections.abc import Callable

    from ibb.storage.inspect.group_summary import GroupSummary

_HASH_DIGITS = 12  # of the hash, on a line for people


def _position(
    _: click.Context, parameter: click.Parameter, value: str | None
) -> GtidPosition | None:
    """Read a GTID position."""
    try:
        return None if value is None else GtidPosition.parse(value)
    except SqlError as error:
        name = parameter.opts[0]
        raise IbbError(f"{name}: {value!r} is no list of GTIDs, as 0-1-100,7-1-5") from error


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False))
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option(
    "--from", "start", callback=_position, metavar="GTIDS", help="Only groups after this position."
)
@click.option("--until", callback=_position, metavar="GTIDS", help="Stop after these GTIDs.")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="At most so many groups.")
def groups(
    directory: str,
    start: GtidPosition | None,
    until: GtidPosition | None,
    limit: int | None,
    *,
    as_json: bool,
) -> None:
    """
    List the event groups in DIRECTORY, oldest first.

    The directory is only read, and may be in use: groups that are only in its redo log yet are
    listed too, once they are synced. Files that are purged before it is their turn are left out,
    and told of on standard error. sha256 is that of the group's events as stored,
    GTID event first; positions are GTID lists such as 0-1-100,7-1-5.

    \b
      ibb groups binlogs --from 0-1-100,7-1-5 --limit 10
      ibb groups binlogs --json | jq -r 'select(.bytes > 1000000) | .gtid'

    Exit status 0; 2: no binlog is there, or something is damaged or missing, told of after the
    groups before it.
    """  # noqa: D301 - click's own sign for lines that stay as they are
    show: Callable[[GroupSummary], str] = _as_json if as_json else _as_line
    check_holds_binlog(OsDisk(), directory)
    disk = recovered_view(OsDisk(), directory)
    history = ReadOnlyHistory(disk, directory, follow_unsynced=True)
    try:
        found = list_groups(
            history,
            start,
            until,
            limit,
            lambda text: click.echo(f"ibb: {text}", err=True),
        )
        for group in found:
            click.echo(show(group))
    except SqlError as error:  # 1236, in the words that a replica gets
        raise IbbError(f"--from {start}: {error.message}") from error
    finally:
        history.close()


def _as_json(summary: GroupSummary) -> str:
    return json.dumps(
        {
            "gtid": str(summary.gtid),
            "file": summary.position.file_no,
            "offset": summary.position.offset,
            "bytes": summary.size,
            "events": summary.events,
            "sha256": summary.sha256,
            "time": _time(summary).isoformat().replace("+00:00", "Z"),
            "tables": summary.tables,
        }
    )


def _as_line(summary: GroupSummary) -> str:
    gtid = click.style(f"{summary.gtid!s:<20}", fg="green")  # colours only on terminals
    place = f"{binlog_name(summary.position.file_no)}:{summary.position.offset}"
    return (
        f"{gtid}  {_time(summary):%Y-%m-%d %H:%M:%S}  {place:<30}  {summary.size:>10}  "
        f"{summary.events:>6}  {summary.sha256[:_HASH_DIGITS]}  {' '.join(summary.tables)}"
    ).rstrip()


def _time(summary: GroupSummary) -> datetime:
    return datetime.fromtimestamp(summary.timestamp, UTC)
