"""A pipeline at work: a snapshot where there is none, then what the binlog has behind it."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.pipeline.history_mark import NO_MARK, mark_before
from ibb.protocol.rows.table_schema import ColumnSchema, TableSchema
from ibb.storage.disk import OsDisk
from ibb.storage.inspect.recovered_view import recovered_view
from ibb.storage.read_only import ReadOnlyHistory

from .change_stream import check_history, read_batches
from .config import matches
from .errors import PipelineError
from .lake import Lake
from .ledger import Ledger
from .mariadb_source import compares_in_lower_case
from .place import Place
from .row_changes import TableName
from .shape import CHARSET_METADATA, TYPE_METADATA
from .snapshot import take_snapshot

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from ibb.protocol.rows.table_map import TableMap

    from .applier import Applied
    from .config import PipelineConfig
    from .row_changes import MicroBatch

POLL_SECONDS: Final = 0.5
EVERYTHING: Final = "*.*"  # the pattern of all tables
HISTORY_SECONDS_MAX: Final = 300.0  # until the binlog reaches the snapshot's position
_SPECIAL: Final = ("uuid", "inet4", "inet6")  # types of which a table map says nothing


class Progress(NamedTuple):
    """What to tell whoever runs the pipeline: called after each batch and each snapshot."""

    snapshot: Callable[[TableName, int], None]
    batch: Callable[[MicroBatch, Applied], None]


class Pipeline:
    """
    The pipeline of *config*; one process at a time may have it.

    Args:
        config: what to do.
        progress: told of what was done.
    """

    def __init__(self, config: PipelineConfig, progress: Progress) -> None:
        self._config = config
        self._progress = progress
        self._lake = Lake(config)
        self._schemas: dict[TableName, TableSchema | None] = {}

    def run(self, stop: threading.Event, *, once: bool, snapshot: Sequence[str] = ()) -> None:
        """
        Work until *stop* is set.

        Args:
            stop: ends it behind the batch that is at work.
            once: end also when everything that is there has been applied.
            snapshot: patterns of tables that are to be read anew first.

        Raises:
            PipelineError: it cannot go on; what was applied stays.
        """
        with self._lake.state.lock():
            ledger = self._ledger(snapshot)
            self._wait_for(ledger, stop)
            applier = self._lake.applier(ledger)
            while not stop.is_set():
                for batch in read_batches(self._config, applier.ledger, self._schema_of):
                    applied = applier.apply(batch)
                    self._schemas.clear()
                    self._progress.batch(batch, applied)
                    if stop.is_set():
                        return
                if once or stop.wait(POLL_SECONDS):
                    return

    def _ledger(self, snapshot: Sequence[str]) -> Ledger:
        """Return where the pipeline is, after the snapshots that are due."""
        state, config = self._lake.state, self._config
        ledger, due = Ledger.load(state), tuple(snapshot)
        if ledger is None:
            ledger = Ledger(Place.nowhere())
            due = due if config.server is None else (EVERYTHING,)
        due = tuple(dict.fromkeys((*ledger.due, *due)))  # the first of a run that was cut short
        if config.server is not None and EVERYTHING in due:
            ledger.lower_case = compares_in_lower_case(config.server)
        if ledger.lower_case:
            config = self._config = config.in_lower_case()
            due = tuple(map(str.lower, due))
        for name in [name for name in ledger.tables if not config.wants(name)]:
            ledger.forget(name)  # included again, it needs a snapshot
        ledger.due = due
        ledger.store(state)
        if due:
            self._snapshot(ledger)
            ledger.store(state)
        return ledger

    def _snapshot(self, ledger: Ledger) -> None:
        """Read anew the tables that are due; until the ledger is stored they stay so."""
        config, due = self._config, ledger.due
        if config.server is None:
            raise PipelineError("server: is missing: a snapshot needs the source's MariaDB")
        place, found = take_snapshot(
            config.server,
            lambda name: config.wants(name) and matches(name, due),
            self._lake.open,
            config.keys,
            self._progress.snapshot,
        )
        for name in found:
            ledger.left_at(name, place, ahead=True)
        if EVERYTHING in due:  # what the stream has before it is needed no more
            for name in ledger.tables.keys() - set(found):  # the server has them no more
                self._lake.put_aside(name, str(place.position))
                ledger.forget(name)
            ledger.move(place)
            ledger.prepared, ledger.mark = frozenset(), NO_MARK
        ledger.due = ()

    def _wait_for(self, ledger: Ledger, stop: threading.Event) -> None:
        """Wait until the binlog has what the tables have: a snapshot may be ahead of a relay."""
        position = ledger.place.position
        waited = 0.0
        while not stop.is_set():
            disk = recovered_view(OsDisk(), self._config.source)
            history = ReadOnlyHistory(disk, self._config.source, follow_unsynced=True)
            with closing(history):
                check_history(self._config, history, ledger)
                state = history.state()
                if all(state.contains(gtid) for gtid in position):
                    if ledger.mark == NO_MARK:  # before anything of it is applied
                        ledger.mark = mark_before(history.pages, history.end())
                        ledger.store(self._lake.state)
                    return
            if waited >= HISTORY_SECONDS_MAX:
                raise PipelineError(
                    f"source.path: {self._config.source} ends at {state.position()}, the tables "
                    f"are at {position}: is it the same server's binlog, and does its relay run?"
                )
            stop.wait(POLL_SECONDS)
            waited += POLL_SECONDS

    def _schema_of(self, table_map: TableMap) -> TableSchema | None:
        """Return what the change table knows of columns that a table map cannot describe."""
        name = self._config.table_name(table_map.database, table_map.table)
        if not table_map.optional.names:
            raise PipelineError(
                f"{name}: the binlog has no names of columns: set binlog_row_metadata=FULL at the "
                "source, and take a new snapshot"
            )
        if name not in self._schemas:
            self._schemas[name] = self._known_schema(name, table_map.optional.names)
        return self._schemas[name]

    def _known_schema(self, name: TableName, names: Sequence[str]) -> TableSchema | None:
        target = self._lake.open(name)
        if not target.exists:
            return None
        known = {}
        for field in target.schema:
            metadata = field.metadata or {}
            known[field.name] = ColumnSchema(
                field.name,
                metadata.get(TYPE_METADATA, b"").decode(),
                metadata.get(CHARSET_METADATA, b"").decode() or None,
            )
        is_special = any(column.type_text.startswith(_SPECIAL) for column in known.values())
        if not is_special or set(names) != set(known):
            return None  # the table map says everything, or the shape is another: that stops later
        return TableSchema(tuple(known[column] for column in names))
