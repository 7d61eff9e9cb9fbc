"""What commands share that run on Spark: where, with which settings, and what they read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .spark_extra import entry_of

if TYPE_CHECKING:
    from collections.abc import Callable

master_option = click.option(
    "--master",
    metavar="MASTER",
    help="Where Spark runs: local[4], spark://HOST:7077, yarn, k8s://...",
)
conf_option = click.option(
    "--conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark, as spark-submit's."
)


def spark_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --master and --conf."""
    return master_option(conf_option(command))


_READ = (
    click.option("--start-position", metavar="GTIDS", help="Only groups after this position."),
    click.option("--stop-position", metavar="GTIDS", help="Nothing after these GTIDs."),
    click.option("--start-datetime", metavar="TIME", help="Only what was committed then or later."),
    click.option("--stop-datetime", metavar="TIME", help="Only what was committed before."),
    click.option(
        "--database", multiple=True, metavar="NAME", help="Only of this; may be repeated."
    ),
    click.option(
        "--table", multiple=True, metavar="NAME.NAME", help="Only of this; may be repeated."
    ),
    click.option(
        "--option",
        multiple=True,
        metavar="NAME=VALUE",
        help="An option of the Spark data source: passwordFile, schemaFile, ...",
    ),
)


def read_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command what says which part of a history it reads."""
    for option in reversed(_READ):
        command = option(command)
    return command


def what_is_read(source: str, given: dict[str, Any], **more: Any) -> dict[str, str]:
    """Return options of the data source by those of the command line, which it takes out."""
    found: dict[str, str] = entry_of("jobs").source_options(
        source,
        given.pop("option"),
        startingGtid=given.pop("start_position"),
        endingGtid=given.pop("stop_position"),
        startingTime=given.pop("start_datetime"),
        endingTime=given.pop("stop_datetime"),
        databases=given.pop("database"),
        tables=given.pop("table"),
        **more,
    )
    return found
