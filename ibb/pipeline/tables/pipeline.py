"""A pipeline at work: a snapshot where there is none, then what the binlog has behind it."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.heap import malloc_trim
from ibb.pipeline.history_mark import NO_MARK, mark_before
from ibb.storage.inspect.recovered_view import recovered_view
from ibb.storage.os_disk import OsDisk
from ibb.storage.read_only import ReadOnlyHistory

from .change_stream import check_history, read_batches
from .config import matches
from .errors import PipelineError
from .history_hold import HistoryHold
from .lake import Lake
from .ledger import Ledger
from .mariadb_source import server_traits
from .place import Place
from .snapshot import take_snapshot
from .stored_schemas import StoredSchemas
from .table_shape import keep_shapes
from .upkeep import Upkeep

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from .applier import Applied, Applier
    from .config import PipelineConfig
    from .row_changes import MicroBatch, TableName

POLL_SECONDS: Final = 0.5  # while the binlog is waited for
EVERYTHING: Final = "*.*"  # the pattern of all tables
HISTORY_SECONDS_MAX: Final = 300.0  # until the binlog reaches the snapshot's position


class Progress(NamedTuple):
    """
    What to tell whoever runs the pipeline.

    Args:
        snapshot: called after each of a table, with its rows.
        batch: called after each.
        upkeep: called when files were put together or removed, with what to say.
    """

    snapshot: Callable[[TableName, int], None]
    batch: Callable[[MicroBatch, Applied], None]
    upkeep: Callable[[str], None] = lambda _: None


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

    def run(self, stop: threading.Event, *, once: bool, snapshot: Sequence[str] = ()) -> None:
        """
        Work until *stop* is set.

        Args:
            stop: ends it behind the batch that is at work.
            once: end also when everything that is there has been applied.
            snapshot: patterns of tables that are to be read anew first.

        Raises:
            PipelineError: it cannot go on; what was applied stays.
            LeaseFailed: the lease that it is to have cannot be made.
        """
        with self._lake.state.lock():
            hold = HistoryHold(self._config, time.monotonic)
            hold.begin(Ledger.load(self._lake.state))
            ledger = self._ledger(snapshot)
            self._wait_for(ledger, stop)
            applier = self._lake.applier(ledger)
            try:
                self._follow(applier, hold, stop, once=once)
            finally:
                hold.behind(applier.ledger, at_once=True)

    def _follow(
        self, applier: Applier, hold: HistoryHold, stop: threading.Event, *, once: bool
    ) -> None:
        schemas, upkeep = StoredSchemas(self._config, self._lake), self._upkeep()
        while not stop.is_set():
            for batch in read_batches(self._config, applier.ledger, schemas.of):
                applied = applier.apply(batch)
                schemas.forget()
                self._progress.batch(batch, applied)
                hold.behind(applier.ledger)
                if upkeep is not None:
                    upkeep.behind(batch)
                if stop.is_set():
                    return
            hold.behind(applier.ledger)
            if upkeep is not None:
                upkeep.vacuum(list(applier.ledger.tables))
            trim = malloc_trim()
            if trim is not None:  # what batches were made in would lie there until the next
                trim()
            if once or stop.wait(self._config.batch_seconds):
                return

    def _upkeep(self) -> Upkeep | None:
        config = self._config
        if config.compaction is None:
            return None
        report = self._progress.upkeep
        return Upkeep(config.compaction, self._lake, config.keeps_history, time.time, report)

    def _ledger(self, snapshot: Sequence[str]) -> Ledger:
        """Return where the pipeline is, after the snapshots that are due."""
        state, config = self._lake.state, self._config
        ledger, due = Ledger.load(state), tuple(snapshot)
        if ledger is None:
            ledger = Ledger(Place.nowhere())
            due = due if config.server is None else (EVERYTHING,)
        due = tuple(dict.fromkeys((*ledger.due, *due)))  # the first of a run that was cut short
        if config.server is not None and due:
            traits = server_traits(config.server)
            if EVERYTHING not in due:
                traits = traits._replace(lower_case=ledger.traits.lower_case)
            ledger.traits = traits
        if ledger.traits.lower_case:
            config = self._config = config.in_lower_case()
            due = tuple(map(str.lower, due))
        for name in [name for name in ledger.tables if not config.wants(name)]:
            ledger.forget(name)  # included again, it needs a snapshot
        known = ledger.known_histories()
        for name in [name for name in known.tables if not config.keeps_history(name)]:
            known.forget(name)  # it begins once more when it is wanted again
        ledger.due = due
        ledger.store(state)
        if due:
            self._snapshot(ledger)
        if config.history:
            self._lake.kept_histories(ledger).begin(ledger)
        ledger.store(state)
        return ledger

    def _snapshot(self, ledger: Ledger) -> None:
        """Read anew the tables that are due; until the ledger is stored they stay so."""
        config, due = self._config, ledger.due
        if config.server is None:
            raise PipelineError("server: is missing: a snapshot needs the source's MariaDB")
        place, found, gone = take_snapshot(
            config.server,
            lambda name: config.wants(name) and matches(name, due),
            self._lake.open,
            config.keys,
            self._progress.snapshot,
        )
        histories = self._lake.kept_histories(ledger)
        filled = dict.fromkeys(found, place) | gone
        keep_shapes(ledger, filled, self._lake.open)
        for name, at in filled.items():
            histories.end_series(name, ledger)
            ledger.left_at(name, at, ahead=True)
        if EVERYTHING in due:  # what the stream has before it is needed no more
            for name in ledger.tables.keys() - set(found):  # the server has them no more
                self._lake.tables.put_aside(name, str(place.position))
                self._lake.histories.put_aside(name, str(place.position))
                ledger.known_histories().forget(name)
                ledger.forget(name)
            self._lake.put_strays_aside(found, ledger, str(place.position))
            ledger.move(place)
            ledger.prepared, ledger.mark = {}, NO_MARK
            for folders in (self._lake.tables, self._lake.histories):
                folders.put_all_waiting_aside()  # for names by groups that do not come any more
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
