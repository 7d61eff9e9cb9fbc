"""The folders of a pipeline: a table's for each, and beside them what the pipeline keeps itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .applier import Applier
from .dead_letters import DeadLetters
from .delta_target import DeltaTarget
from .first_touches import Trust
from .histories import Histories
from .history_follower import HistoryFollower
from .history_rows import no_group
from .history_target import HistoryTarget
from .open_tables import OpenTables
from .parquet_history import ParquetHistory
from .parquet_target import ParquetTarget
from .state_folder import StateFolder
from .statement_follower import StatementFollower
from .table_folders import TableFolders
from .table_shape import shape_before

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from .change_target import KeptTable
    from .config import PipelineConfig
    from .history_rows import HistoryRows
    from .ledger import Ledger
    from .row_changes import GroupRun, TableName
    from .validity import Moment

OWN_FOLDER: Final = "_ibb"


class Lake:
    """
    Where the tables of *config* are: `TARGET/DATABASE/TABLE`, and `TARGET/_ibb` for the rest.

    Args:
        config: of the pipeline.
    """

    def __init__(self, config: PipelineConfig) -> None:
        self._config = config
        self._opened = OpenTables()
        # Without a snapshot a table may have begun when it had rows: some servers log CREATE TABLE
        # IF NOT EXISTS also then. Of what is in the dead letters nothing is known.
        self._trust = Trust.SOME if config.server is None else Trust.ALL
        if config.undecoded == "keep":
            self._trust = Trust.NONE
        own = f"{config.target.rstrip('/')}/{OWN_FOLDER}"
        self.state = StateFolder(own, config.storage)
        self.tables = TableFolders(
            self.state, config.target, f"{own}/dropped", f"{own}/renamed", self._table_at
        )
        self.histories = TableFolders(
            self.state,
            f"{own}/history",
            f"{own}/dropped_history",
            f"{own}/renamed_history",
            self._history_at,
        )
        self.dead_letters = DeadLetters(
            f"{own}/dead_letters",
            config.name,
            keep=config.undecoded == "keep",
            storage=config.storage,
        )

    def open(self, name: TableName) -> KeptTable:
        """Return the table *name*, whether it exists or not."""
        return self._table_at(name, self.tables.uri(name))

    def open_delta(self, name: TableName) -> DeltaTarget:
        """Return the table *name* of a pipeline whose format is that, whether it exists or not."""
        return self._delta_at(name, self.tables.uri(name))

    def open_history(
        self, name: TableName, moment: Callable[[GroupRun], Moment] = no_group
    ) -> HistoryRows:
        """Return the history of the table *name*, whether it exists or not."""
        return self._history_at(name, self.histories.uri(name), moment)

    def open_delta_history(
        self, name: TableName, moment: Callable[[GroupRun], Moment] = no_group
    ) -> HistoryTarget:
        """Return the history of the table *name* where the format is that of Delta."""
        return self._delta_history_at(name, self.histories.uri(name), moment)

    def applier(self, ledger: Ledger) -> Applier:
        """Return what brings the tables forward from where *ledger* says they are."""
        config = self._known_config(ledger)
        follower = StatementFollower(
            config.keys,
            config.wants,
            self.tables,
            self.dead_letters.add,
            lambda name, gtid: shape_before(self.open(name), gtid),
            ledger.traits,
        )
        histories = self.kept_histories(ledger) if config.history else None
        return Applier(ledger, self.state, self.open, config.wants, follower, histories)

    def kept_histories(self, ledger: Ledger) -> Histories:
        """Return what keeps the histories of the tables."""
        config, folders = self._known_config(ledger), self.histories
        follower = HistoryFollower(
            config.keys,
            config.keeps_history,
            folders,
            ledger.traits,
        )
        return Histories(
            self.open_history, self.open, config.keeps_history, folders.put_aside, follower
        )

    def put_strays_aside(self, found: Collection[TableName], ledger: Ledger, gtid: str) -> None:
        """
        Move tables and histories of tables that are not there to where dropped ones go.

        A batch that was cut short may have made or renamed them, and not told the ledger; where
        it never comes again, as behind RESET MASTER, they would stay for ever.

        Args:
            found: the tables that the source has.
            ledger: of the pipeline.
            gtid: at which it has them.
        """
        config = self._known_config(ledger)

        def may_stray(name: TableName) -> bool:
            return name.database != OWN_FOLDER and name not in found

        self.tables.put_strays_aside(lambda name: may_stray(name) and config.wants(name), gtid)
        self.histories.put_strays_aside(
            lambda name: may_stray(name) and config.keeps_history(name), gtid
        )

    def _table_at(self, name: TableName, uri: str) -> KeptTable:
        config = self._config
        if config.format != "parquet":
            return self._delta_at(name, uri)
        target = ParquetTarget(str(name), uri, config.name, config.storage)
        target.trust = self._trust
        return target

    def _delta_at(self, name: TableName, uri: str) -> DeltaTarget:
        config = self._config
        target = DeltaTarget(str(name), uri, config.name, config.storage, self._opened)
        target.trust = self._trust
        return target

    def _history_at(
        self, name: TableName, uri: str, moment: Callable[[GroupRun], Moment] = no_group
    ) -> HistoryRows:
        config = self._config
        if config.format == "parquet":
            return ParquetHistory(str(name), uri, config.name, config.storage, moment)
        return self._delta_history_at(name, uri, moment)

    def _delta_history_at(
        self, name: TableName, uri: str, moment: Callable[[GroupRun], Moment]
    ) -> HistoryTarget:
        config = self._config
        return HistoryTarget(str(name), uri, config.name, config.storage, moment, self._opened)

    def _known_config(self, ledger: Ledger) -> PipelineConfig:
        return self._config.in_lower_case() if ledger.traits.lower_case else self._config
