"""What commands share that run on Spark: where, and with which settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

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


def jobs() -> Any:
    """Return the jobs: other commands do without what they need."""
    try:
        from ibb.pipeline.jobs import entry  # noqa: PLC0415
    except ImportError as error:
        raise click.ClickException(
            f"{error.name} is not installed: in a checkout, pip install '.[spark]'"
        ) from error
    return entry
