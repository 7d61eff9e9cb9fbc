"""`ibb config`: the file of settings, before a server goes by it."""

from __future__ import annotations

import sys

import click

from ibb.server.config_check import check_config_file

EXIT_FINDINGS = 1


@click.group()
def config() -> None:
    """
    Settings of a server, kept in a TOML file.

    \b
      ibb config check /etc/ibb/ibb.toml
      ibb serve binlogs --config /etc/ibb/ibb.toml

    Exit status 0; 1: a server would not start by it; 2: it could not be read.
    """  # noqa: D301 - click's own sign for lines that stay as they are


@config.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
def check(file: str) -> None:
    """
    Say everything that is wrong with a FILE of settings, before a server goes by it.

    \b
      ibb config check /etc/ibb/ibb.toml

    A line for each finding, FILE:LINE: what it is and what to do: names that are none, values of
    the wrong type or outside their bounds, settings that exclude each other, files that are
    missing or broken. Behind `advice:` stands what keeps no server from a start, as files that are
    open to others. Nothing is made or changed.

    Exit status 0, also with advice; 1: something is wrong; 2: the file could not be read.
    """  # noqa: D301 - click's own sign for lines that stay as they are
    findings = check_config_file(file)
    for finding in findings:
        kind = "advice: " if finding.is_advice else ""
        click.echo(f"{file}:{finding.line}: {kind}{finding.text}")
    if not all(finding.is_advice for finding in findings):
        sys.exit(EXIT_FINDINGS)
    click.echo(f"{file}: nothing wrong")
