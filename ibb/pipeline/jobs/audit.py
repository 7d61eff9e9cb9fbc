"""Who changed which row when: the changed rows of a history that meet conditions."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions

from ibb.pipeline.change_rows import CHANGE_COLUMNS, GROUP_COLUMN
from ibb.pipeline.errors import OptionError

from .job_source import with_defaults

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

COLUMNS: Final = tuple(column.name for column in CHANGE_COLUMNS)
ORDER: Final = (GROUP_COLUMN.name, "position", "row")  # in a partition, which come in order


@dataclass(frozen=True, slots=True)
class RowsWanted:
    """
    Conditions that a changed row meets, all of them.

    Attributes:
        values: by column, in whatever case, what a row has in it, before its change or after; text
            as mode changes has it.
        servers: that committed; empty: any.
        threads: of the connections that committed, where the primary logs that; empty: any.
        statement: a regular expression that occurs in the statement, where the primary logs that.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    servers: frozenset[int] = frozenset()
    threads: frozenset[int] = frozenset()
    statement: str = ""

    @classmethod
    def parse(
        cls,
        values: Iterable[str] = (),
        servers: Iterable[int] = (),
        threads: Iterable[int] = (),
        statement: str | None = None,
    ) -> RowsWanted:
        """
        Read conditions as a person writes them.

        Args:
            values: each COLUMN=VALUE.
            servers: their ids.
            threads: their ids.
            statement: a regular expression, or None.

        Raises:
            OptionError: one of *values* is no such text, or says of a column two things.
        """
        wanted: dict[str, str] = {}
        for text in values:
            name, equals, value = text.partition("=")
            if not equals or not name:
                raise OptionError("--key", f"'{text}' is not COLUMN=VALUE")
            if wanted.setdefault(name.lower(), value) != value:
                raise OptionError("--key", f"column {name} cannot have two values")
        return cls(wanted, frozenset(servers), frozenset(threads), statement or "")


def changed_rows(spark: SparkSession, options: Mapping[str, str], wanted: RowsWanted) -> DataFrame:
    """
    Return the changed rows that are wanted, in the order of the history.

    That is the order in which they were committed. Neither the time of a group tells it, which is
    when its statement began, so that one that waited for a lock has an earlier one than what it
    waited for, nor its number, which may fall. Several directories come one behind the other.

    Args:
        spark: a session of the cluster.
        options: of the data source: which tables, operations, domains, GTIDs and times are read;
            what they leave out is not read at all. The columns are those of mode changes.
        wanted: conditions on rows.

    Raises:
        OptionError: an option is wrong.
    """
    given = {name: value for name, value in options.items() if name.lower() != "columns"}
    given["columns"] = ",".join((*COLUMNS, GROUP_COLUMN.name))
    frame = spark.read.format("ibb").options(**with_defaults(given, mode="changes")).load()
    conditions = list(_conditions(wanted))
    if conditions:
        frame = frame.where(reduce(and_, conditions))
    return frame.orderBy(functions.spark_partition_id(), *ORDER).select(*COLUMNS)


def _conditions(wanted: RowsWanted) -> Iterator[Column]:
    if wanted.servers:
        yield functions.col("server").isin(sorted(wanted.servers))
    if wanted.threads:
        yield functions.col("thread").isin(sorted(wanted.threads))
    if wanted.statement:
        yield functions.col("statement").rlike(wanted.statement)
    if wanted.values:
        before, after = (
            [_value(image, name) == value for name, value in wanted.values.items()]
            for image in ("before", "after")
        )
        yield reduce(and_, before) | reduce(and_, after)


def _value(image: str, name: str) -> Column:
    """Return a column's value in an image; one that is not in the image after has not changed."""
    before, after = _values("before", name), _values("after", name)
    if image == "before":
        return functions.get(before, 0)
    there = functions.size(after) > 0
    return functions.when(there, functions.get(after, 0)).otherwise(functions.get(before, 0))


def _values(image: str, name: str) -> Column:
    """Return the value of a column as an array of one, or an empty one; names have no case."""

    def is_wanted(key: Column, _: Column) -> Column:
        return functions.lower(key) == functions.lower(functions.lit(name))

    return functions.map_values(functions.map_filter(functions.col(image), is_wanted))
