"""All rows of tables at one GTID, from where the stream goes on without gap or overlap."""

from __future__ import annotations

import logging
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.pipeline.ddl.cursor import UnclearError

from .errors import PipelineError
from .generated import check_key
from .key_values import check_keys
from .snapshot_view import view_of_tables
from .source_tables import TableRedefined

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from .change_target import KeptTable
    from .config import ServerConfig
    from .mariadb_source import View
    from .place import Place
    from .row_changes import TableName
    from .source_tables import SourceTable


SNAPSHOTS_MAX: Final = 5  # begun, until the tables of one are not defined anew meanwhile


class Taken(NamedTuple):
    """
    A snapshot.

    Attributes:
        place: where the server was.
        tables: that it had there, all filled.
        gone: that were filled when the snapshot began before, and where the server was then; it has
            them no more.
    """

    place: Place
    tables: list[TableName]
    gone: dict[TableName, Place]


def take_snapshot(
    config: ServerConfig,
    wants: Callable[[TableName], bool],
    open_target: Callable[[TableName], KeptTable],
    keys: Mapping[TableName, Sequence[str]],
    report: Callable[[TableName, int], None],
) -> Taken:
    """
    Fill the tables that are wanted, in place of what they hold.

    Each table is filled in one commit. A snapshot that was cut short is due still in the ledger,
    and begun anew.

    Args:
        config: the server.
        wants: which tables.
        open_target: opens a table.
        keys: keys in place of the server's.
        report: told of each table that is done, with its rows.

    Raises:
        PipelineError: the server cannot be read, has prepared XA transactions, a table cannot be
            kept, its key does not tell its rows apart, or is defined anew again and again.
    """
    filled: dict[TableName, Place] = {}
    for _ in range(SNAPSHOTS_MAX):
        try:
            with view_of_tables(config, wants, goes_on=True) as (view, tables):
                for number, table in enumerate(tables):
                    view.keep_name(table, tables[number + 1 :])
                    target, key = open_target(table.name), _key(table, keys)
                    view.check_unique(table, key)
                    where = f"{table.name} at {view.place.position}"
                    rows = _checked(_rows(view, table, config), where, key)
                    target.fill(table.schema, key, rows, view.place)
                    filled[table.name] = view.place
                    report(table.name, target.rows)
                names = [table.name for table in tables]
                gone = {name: place for name, place in filled.items() if name not in names}
                return Taken(view.place, names, gone)
        except TableRedefined as error:
            refused = error
            logging.getLogger(__name__).warning("%s: the snapshot begins once more", error)
    raise PipelineError(f"{refused}, again and again: try once more when it stays") from refused


def _key(table: SourceTable, keys: Mapping[TableName, Sequence[str]]) -> Sequence[str]:
    """Return the columns that tell a table's rows apart; raises PipelineError if they do not."""
    key = keys.get(table.name, table.key)
    unknown = [column for column in key if column not in table.schema.names]
    if unknown:
        raise PipelineError(f"tables.keys.{table.name}: the table has no column {unknown[0]}")
    try:
        check_key(table.schema, key)
    except UnclearError as error:
        raise PipelineError(
            f"{table.name}: {error}: name another (tables.keys), or leave the table out "
            "(tables.exclude)"
        ) from error
    return key


def _checked(pieces: Iterator[pa.Table], where: str, key: Sequence[str]) -> Iterator[pa.Table]:
    """Yield *pieces* of a table, the keys of whose rows are checked."""
    for piece in pieces:
        check_keys(where, piece, key)
        yield piece


def _rows(view: View, table: SourceTable, config: ServerConfig) -> Iterator[pa.Table]:
    """Yield a table in ranges of its key, of which as many are read at a time as connections."""
    free: SimpleQueue[int] = SimpleQueue()
    for worker in range(config.workers):
        free.put(worker)

    def read(condition: str) -> list[pa.Table]:
        worker = free.get()
        try:
            return list(view.read(table, worker, condition))
        finally:
            free.put(worker)

    ranges = deque(view.ranges(table, config.chunk_rows))
    if len(ranges) == 1:  # of any size: not collected
        yield from view.read(table, 0, ranges[0])
        return
    with ThreadPoolExecutor(config.workers) as pool:
        reading: deque[Future[list[pa.Table]]] = deque()
        while ranges or reading:
            while ranges and len(reading) < config.workers:
                reading.append(pool.submit(read, ranges.popleft()))
            yield from reading.popleft().result()
