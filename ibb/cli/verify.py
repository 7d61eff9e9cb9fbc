"""`ibb verify`: every check there is, on a directory that may be in use."""

from __future__ import annotations

import json
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from ibb.storage.belongings import check_holds_binlog
from ibb.storage.os_disk import OsDisk
from ibb.storage.verify import Totals, verify_directory
from ibb.storage.verify.finding import NOTHING, Finding, Severity

from .spark_extra import entry_of
from .spark_options import spark_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ibb.protocol.binlog_state import BinlogState

EXIT_FOUND = 1
_DOMAINS_SHOWN = 4  # in the summary
_COLOURS = {Severity.NOTE: "blue", Severity.WARNING: "yellow", Severity.DAMAGE: "red"}


@click.command()
@click.argument("directory")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a finding, nothing else.")
@spark_options
def verify(directory: str, master: str | None, conf: tuple[str, ...], *, as_json: bool) -> None:
    """
    Check the binlog in DIRECTORY: every page, record, event group and GTID state.

    The directory is only read, and may be in use. With --master a Spark cluster shares the work,
    and DIRECTORY may be a URL such as s3://bucket/binlogs; what is found is the same.

    \b
      ibb verify binlogs
      ibb verify binlogs --json | jq -r 'select(.severity != "note") | .text'
      ibb verify /archive/binlogs --master spark://spark.example:7077

    Exit status 0: nothing is wrong, though there may be notes; 1: something is; 2: the check could
    not run. docs/verify.md lists the kinds.
    """  # noqa: D301 - click's own sign for lines that stay as they are
    totals, began = Totals(), time.monotonic()
    show: Callable[[Finding], str] = _as_json if as_json else _as_line
    bad = 0
    with _findings(directory, master, conf, totals, quiet=as_json) as findings:
        for finding in findings:
            bad += finding.severity is not Severity.NOTE
            click.echo(show(finding))
    if not as_json:
        click.echo(_summary(totals, bad, time.monotonic() - began))
    sys.exit(EXIT_FOUND if bad else 0)


@contextmanager
def _findings(
    directory: str, master: str | None, conf: tuple[str, ...], totals: Totals, *, quiet: bool
) -> Iterator[Iterator[Finding]]:
    """Begin the check, here or on a cluster."""
    is_url = "://" in directory
    if not is_url:
        if not Path(directory).is_dir():
            what = "is a file" if Path(directory).exists() else "does not exist"
            raise click.BadParameter(f"Directory '{directory}' {what}.")
        check_holds_binlog(OsDisk(), directory)
    if master is not None:
        jobs = entry_of("jobs")
        if is_url:
            check_holds_binlog(*jobs.disk_of(directory))
        with jobs.job_session("ibb verify", master, conf) as spark:
            yield jobs.verify_on(spark, directory, totals=totals)
        return
    if is_url or conf:
        raise click.UsageError("a URL, and --conf, go with --master")
    with _progress_bar(visible=not quiet) as bar:
        task = bar.add_task("", total=None)

        def progress(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield verify_directory(OsDisk(), directory, progress=progress, totals=totals)


def _progress_bar(*, visible: bool) -> Progress:
    console = Console(stderr=True)
    return Progress(
        TextColumn("checking"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        redirect_stdout=sys.stdout.isatty(),  # else findings would follow the bar to stderr
        disable=not (visible and console.is_terminal),
    )


def _as_json(finding: Finding) -> str:
    return json.dumps(
        {
            "kind": finding.kind,
            "severity": finding.severity,
            "file": finding.file,
            "page": finding.page,
            "offset": finding.offset,
            "text": finding.text,
            "lost": finding.lost,
        }
    )


def _as_line(finding: Finding) -> str:
    severity = click.style(f"{finding.severity:<8}", fg=_COLOURS[finding.severity])
    place = finding.file or "-"
    if finding.page is not None:
        place += f" page {finding.page}"
    if finding.offset is not None:
        place += f" offset {finding.offset}"
    lost = "" if finding.lost == NOTHING else f" [lost: {finding.lost}]"
    return f"{severity} {finding.kind:<20} {place}: {finding.text}{lost}"


def _summary(totals: Totals, bad: int, seconds: float) -> str:
    state, before = _short(totals.last), _short(totals.first)
    rate = totals.size / max(seconds, 1e-6) / 1e6
    return (
        f"{totals.files} files, {totals.size} bytes, {totals.pages} used pages, "
        f"{totals.records} records, {totals.groups} groups, GTIDs from '{before}' to '{state}', "
        f"{seconds:.1f} s ({rate:.0f} MB/s): {bad or 'nothing'} found"
    )


def _short(state: BinlogState | None) -> str:
    """Return a GTID position that fits on a line."""
    gtids = [] if state is None else list(state.position())
    shown = ",".join(map(str, gtids[:_DOMAINS_SHOWN]))
    more = len(gtids) - _DOMAINS_SHOWN
    return f"{shown},... {more} domains more" if more > 0 else shown
