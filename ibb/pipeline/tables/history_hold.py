"""
What a pipeline has not applied yet, held against purges by a lease on the server that writes it.

A lease is a position. Rows of an XA transaction are read once more where it is prepared when it
is committed, so that while one is prepared the lease stays in front of the file that has it.
"""

from __future__ import annotations

import logging
from contextlib import closing
from typing import TYPE_CHECKING, Final

from ibb.pipeline.errors import OptionError
from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.errors import IbbError
from ibb.storage.inspect.recovered_view import recovered_view
from ibb.storage.os_disk import OsDisk
from ibb.storage.read_only import ReadOnlyHistory
from ibb.storage.state_scan import read_state

from .config import lease_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from ibb.pipeline.purge_lease import PurgeLease

    from .config import PipelineConfig
    from .ledger import Ledger

MOVE_SECONDS: Final = 10.0  # between two moves of a lease: each is a connection


class HistoryHold:
    """
    The lease of a pipeline, if it has one.

    Args:
        config: of the pipeline.
        clock: seconds that pass.
    """

    def __init__(self, config: PipelineConfig, clock: Callable[[], float]) -> None:
        self._config = config
        self._lease: PurgeLease | None = config.lease
        self._clock = clock
        self._moved_at = 0.0

    def begin(self, ledger: Ledger | None) -> None:
        """
        Hold what is behind *ledger*, or, before a first snapshot, what comes from now on.

        Raises:
            LeaseFailed: the server is not there, or refuses it.
            ConfigError: there is no password.
            FormatError: the binlog is damaged.
        """
        if self._lease is None:
            return
        position = "" if ledger is None else self._needed(ledger)
        if not position and self._config.server is not None:
            position = self._end()
        self._move(self._lease, position)

    def behind(self, ledger: Ledger, *, at_once: bool = False) -> None:
        """
        Let go what *ledger* has, now and then.

        A server that is away does not stop the pipeline: what was held before still is.
        """
        if self._lease is None:
            return
        if at_once or self._clock() - self._moved_at >= MOVE_SECONDS:
            try:
                self._move(self._lease, self._needed(ledger))  # also where it is: not to lapse
            except IbbError as error:
                self._moved_at = self._clock()
                logging.getLogger(__name__).warning("%s", error)

    def _move(self, lease: PurgeLease, position: str) -> None:
        try:
            lease.move_to(position)
        except OptionError as error:
            raise lease_error(error) from error
        self._moved_at = self._clock()

    def _needed(self, ledger: Ledger) -> str:
        """Return a position behind which everything is that *ledger* lacks."""
        if not ledger.prepared:
            return str(ledger.place.position)
        file_no = min(prepared.place.file_no for prepared in ledger.prepared.values())
        with closing(self._history()) as history:
            full = read_state(history.pages, file_no, 1)
        return str(BinlogState(() if full is None else full.entries).position())

    def _end(self) -> str:
        with closing(self._history()) as history:
            return str(history.state().position())

    def _history(self) -> ReadOnlyHistory:
        source = self._config.source
        return ReadOnlyHistory(recovered_view(OsDisk(), source), source)
