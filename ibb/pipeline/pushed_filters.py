"""
Filters that Spark pushes down, as narrower options.

Only what options can say is used, to read less; every filter is given back, so that Spark applies
it to the rows all the same.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql.datasource import Filter

    from .options import SourceOptions


def narrowed_by(options: SourceOptions, filters: Iterable[Filter]) -> SourceOptions:
    """Return options that leave out only rows that one of *filters* leaves out."""
    for one in filters:
        name = _column(one, options.mode)
        if isinstance(one, EqualTo | In) and name is not None:
            values = (one.value,) if isinstance(one, EqualTo) else tuple(one.value)
            options = _narrowed_to(options, name, values)
        elif name == "commit_time":
            options = _narrowed_in_time(options, one)
    return options


def _column(one: Filter, mode: str) -> str | None:
    """Return the column of ours that a filter is of; in mode table names of ours begin with _."""
    path: tuple[str, ...] = getattr(one, "attribute", ())
    if len(path) != 1:
        return None
    name = path[0].lower()
    if mode != "table":
        return name
    return name[1:] if name.startswith("_") else None


def _narrowed_to(options: SourceOptions, name: str, values: tuple[Any, ...]) -> SourceOptions:
    if name == "domain":
        wanted = frozenset(value for value in values if isinstance(value, int))
        both = wanted & options.domains if options.domains else wanted
        return replace(options, domains=both or frozenset((-1,)))  # there is no such domain
    if name == "database":
        names = frozenset(value for value in values if isinstance(value, str))
        both_names = names & options.databases if options.databases else names
        return replace(options, databases=both_names or frozenset(("",)))
    return options


def _narrowed_in_time(options: SourceOptions, one: Filter) -> SourceOptions:
    """Narrow down to whole seconds, as groups have them."""
    if not isinstance(one, GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual):
        return options
    if not isinstance(one.value, datetime):
        return options
    moment = one.value if one.value.tzinfo else one.value.replace(tzinfo=UTC)
    seconds = moment.timestamp()
    if isinstance(one, GreaterThan | GreaterThanOrEqual):
        known = options.filtered_since
        return replace(options, filtered_since=max(seconds, seconds if known is None else known))
    before, known = seconds + 1, options.filtered_before
    return replace(options, filtered_before=min(before, before if known is None else known))
