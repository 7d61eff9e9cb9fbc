"""The folders of a pipeline: a table's for each, and beside them what the pipeline keeps itself."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

from .applier import Applier
from .dead_letters import DeadLetters
from .delta_target import DeltaTarget, delta_uri
from .histories import Histories
from .history_follower import HistoryFollower
from .history_rows import no_group
from .history_target import HistoryTarget
from .open_tables import OpenTables
from .parquet_history import ParquetHistory
from .parquet_target import ParquetTarget
from .state_folder import StateFolder
from .statement_follower import StatementFollower
from .table_shape import shape_before

if TYPE_CHECKING:
    from collections.abc import Callable

    from .change_target import KeptTable
    from .config import PipelineConfig
    from .history_rows import HistoryRows
    from .ledger import Ledger
    from .row_changes import GroupRun, TableName
    from .validity import Moment

OWN_FOLDER: Final = "_ibb"


class TableFolders:
    """
    Folders of tables: `ROOT/DATABASE/TABLE`.

    Args:
        state: moves folders.
        root: where they are.
        dropped: where those of dropped tables go.
    """

    def __init__(self, state: StateFolder, root: str, dropped: str) -> None:
        self._state = state
        self._root = root
        self._dropped = dropped

    def uri(self, name: TableName) -> str:
        """Return where the table *name* is."""
        return delta_uri(self._root, *name)

    def move(self, old: TableName, new: TableName) -> bool:
        """Move a table; False: there is none."""
        return self._state.move(self.uri(old), self.uri(new))

    def put_aside(self, name: TableName, gtid: str) -> bool:
        """Move a dropped table out of the way: its rows stay, for those who want them back."""
        place = f"{delta_uri(self._dropped, *name)}@{gtid}"
        again = count(2)
        while self._state.is_there(place):  # of a batch that was cut short, and made it again
            place = f"{place.partition('~')[0]}~{next(again)}"
        return self._state.move(self.uri(name), place)


class Lake:
    """
    Where the tables of *config* are: `TARGET/DATABASE/TABLE`, and `TARGET/_ibb` for the rest.

    Args:
        config: of the pipeline.
    """

    def __init__(self, config: PipelineConfig) -> None:
        self._config = config
        self._opened = OpenTables()
        own = f"{config.target.rstrip('/')}/{OWN_FOLDER}"
        self.state = StateFolder(own, config.storage)
        self.tables = TableFolders(self.state, config.target, f"{own}/dropped")
        self.histories = TableFolders(self.state, f"{own}/history", f"{own}/dropped_history")
        self.dead_letters = DeadLetters(
            f"{own}/dead_letters",
            config.name,
            keep=config.undecoded == "keep",
            storage=config.storage,
        )

    def open(self, name: TableName) -> KeptTable:
        """Return the table *name*, whether it exists or not."""
        config = self._config
        if config.format == "parquet":
            return ParquetTarget(str(name), self.tables.uri(name), config.name, config.storage)
        return self.open_delta(name)

    def open_delta(self, name: TableName) -> DeltaTarget:
        """Return the table *name* of a pipeline whose format is that, whether it exists or not."""
        config, uri = self._config, self.tables.uri(name)
        return DeltaTarget(str(name), uri, config.name, config.storage, self._opened)

    def open_history(
        self, name: TableName, moment: Callable[[GroupRun], Moment] = no_group
    ) -> HistoryRows:
        """Return the history of the table *name*, whether it exists or not."""
        config, uri = self._config, self.histories.uri(name)
        if config.format == "parquet":
            return ParquetHistory(str(name), uri, config.name, config.storage, moment)
        return self.open_delta_history(name, moment)

    def open_delta_history(
        self, name: TableName, moment: Callable[[GroupRun], Moment] = no_group
    ) -> HistoryTarget:
        """Return the history of the table *name* where the format is that of Delta."""
        config, uri = self._config, self.histories.uri(name)
        return HistoryTarget(str(name), uri, config.name, config.storage, moment, self._opened)

    def applier(self, ledger: Ledger) -> Applier:
        """Return what brings the tables forward from where *ledger* says they are."""
        config = self._known_config(ledger)
        follower = StatementFollower(
            config.keys,
            config.wants,
            self.tables.move,
            self.tables.put_aside,
            self.dead_letters.add,
            lambda name, gtid: shape_before(self.open(name), gtid),
            lower_case=ledger.lower_case,
        )
        histories = self.kept_histories(ledger) if config.history else None
        return Applier(ledger, self.state, self.open, config.wants, follower, histories)

    def kept_histories(self, ledger: Ledger) -> Histories:
        """Return what keeps the histories of the tables."""
        config, folders = self._known_config(ledger), self.histories
        follower = HistoryFollower(
            config.keys,
            config.keeps_history,
            folders.move,
            folders.put_aside,
            lower_case=ledger.lower_case,
        )
        return Histories(
            self.open_history, self.open, config.keeps_history, folders.put_aside, follower
        )

    def _known_config(self, ledger: Ledger) -> PipelineConfig:
        return self._config.in_lower_case() if ledger.lower_case else self._config
