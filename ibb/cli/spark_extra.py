"""What commands use of the pipeline, which other commands do without."""

from importlib import import_module
from typing import Any

import click


def entry_of(package: str) -> Any:
    """
    Return the functions for commands of a package of the pipeline.

    Args:
        package: its name, e.g. `tables`.

    Raises:
        click.UsageError: something of the extra `spark` is not installed; it says how to.
    """
    try:
        return import_module(f"ibb.pipeline.{package}.entry")
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        raise click.UsageError(
            f"this needs Spark, and {missing} is not installed: in a checkout, "
            "pip install '.[spark]'"
        ) from error
