"""How a view of the source's tables begins: at one GTID, and with the tables as they are there."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final

from ibb.protocol.gtid import GtidPosition

from .errors import PipelineError
from .mariadb_source import View, check_prepared, open_connections
from .place import Place
from .source_tables import rows_of, source_tables
from .view_lock import held_still

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pymysql

    from .config import ServerConfig
    from .row_changes import TableName
    from .source_tables import SourceTable

VIEWS_MAX: Final = 20  # until one whose tables are not defined anew meanwhile
SECOND: Final = 1.02  # in which names look the same; the clock of files is some milliseconds behind
YOUNG_SECONDS: Final = 0.05  # between looks at whether that is over
YOUNG_LOOKS_MAX: Final = 30


@contextmanager
def view_of_tables(
    config: ServerConfig, wants: Callable[[TableName], bool], *, goes_on: bool
) -> Iterator[tuple[View, list[SourceTable]]]:
    """
    Open connections that see the server at one GTID, and tell how the wanted tables are defined.

    Definitions are not part of a view, and to read those of many tables under its lock would hold
    writers up: they are read before it and behind it, and must be the same.

    Args:
        config: the server.
        wants: which tables.
        goes_on: the stream is to go on from there, which prepared XA transactions, in neither of
            the two, do not allow.

    Raises:
        PipelineError: the server cannot be reached or held still for a moment, its settings do not
            allow a pipeline, its clock stands still, a table cannot be kept as a change table or is
            defined anew all the time, or XA transactions are prepared.
    """
    with ExitStack() as stack:
        control, workers = open_connections(stack, config)
        if goes_on:
            check_prepared(control)  # before the lock, which they may hold up
        tables = source_tables(control, wants)
        for _ in range(VIEWS_MAX):
            _wait_for_age(control, tables)
            view, before = _seen_by(control, workers, goes_on=goes_on), tables
            tables = source_tables(control, wants)
            changed = _changed(before, tables)
            if not changed:
                yield view, tables
                return
            for worker in workers:
                rows_of(worker, "ROLLBACK")
        raise PipelineError(
            f"{changed[0]}: its definition changes while the server is looked at, again and again: "
            "try once more when it stays"
        )


def _changed(before: list[SourceTable], after: list[SourceTable]) -> list[TableName]:
    """Return the tables that are not in both lists with all that they are, their age too."""
    then, now = ({table.name: table for table in tables} for tables in (before, after))
    return [
        name
        for name in sorted(then.keys() | now.keys())
        if name not in then
        or name not in now
        or then[name].key != now[name].key
        or then[name].named_at != now[name].named_at
        or not then[name].schema.equals(now[name].schema, check_metadata=True)
    ]


def _wait_for_age(control: pymysql.Connection[Any], tables: list[SourceTable]) -> None:
    """Wait until no table was named within a second: one that is named next looks the same."""
    ages: list[float] = []
    for _ in range(YOUNG_LOOKS_MAX):
        ((now,),) = rows_of(control, "SELECT UNIX_TIMESTAMP(SYSDATE(6))")
        ages = [float(now) - one.named_at for one in tables if one.named_at is not None]
        if not any(0 <= age < SECOND for age in ages):
            return
        time.sleep(YOUNG_SECONDS)
    raise PipelineError(
        f"the server's clock does not go on: {min(age for age in ages if age >= 0):.3f} s ago a "
        "table was made or renamed, still; begin again when it is right"
    )


def _seen_by(
    control: pymysql.Connection[Any],
    workers: Sequence[pymysql.Connection[Any]],
    *,
    goes_on: bool,
) -> View:
    """Return a view; while its transactions begin commits wait."""
    with held_still(control):
        if goes_on:  # again: from here on none can be prepared
            check_prepared(control)
        for worker in workers:
            rows_of(worker, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
        now = rows_of(control, "SELECT @@GLOBAL.gtid_binlog_pos, UNIX_TIMESTAMP()")
    ((position, seconds),) = now
    return View(workers, Place(GtidPosition.parse(position), int(seconds)))
