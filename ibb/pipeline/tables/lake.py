"""The folders of a pipeline: a table's for each, and beside them what the pipeline keeps itself."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

from .applier import Applier
from .dead_letters import DeadLetters
from .delta_target import DeltaTarget, delta_uri
from .state_folder import StateFolder
from .statement_follower import StatementFollower

if TYPE_CHECKING:
    from .config import PipelineConfig
    from .ledger import Ledger
    from .row_changes import TableName

OWN_FOLDER: Final = "_ibb"


class Lake:
    """
    Where the tables of *config* are: `TARGET/DATABASE/TABLE`, and `TARGET/_ibb` for the rest.

    Args:
        config: of the pipeline.
    """

    def __init__(self, config: PipelineConfig) -> None:
        self._config = config
        own = f"{config.target.rstrip('/')}/{OWN_FOLDER}"
        self.state = StateFolder(own, config.storage)
        self._dropped = f"{own}/dropped"
        self.dead_letters = DeadLetters(
            f"{own}/dead_letters",
            config.name,
            keep=config.undecoded == "keep",
            storage=config.storage,
        )

    def open(self, name: TableName) -> DeltaTarget:
        """Return the table *name*, whether it exists or not."""
        return DeltaTarget(str(name), self.uri(name), self._config.name, self._config.storage)

    def uri(self, name: TableName) -> str:
        """Return where the table *name* is."""
        return delta_uri(self._config.target, *name)

    def move(self, old: TableName, new: TableName) -> bool:
        """Move a table; False: there is none."""
        return self.state.move(self.uri(old), self.uri(new))

    def put_aside(self, name: TableName, gtid: str) -> bool:
        """Move a dropped table out of the way: its rows stay, for those who want them back."""
        place = f"{delta_uri(self._dropped, *name)}@{gtid}"
        again = count(2)
        while self.state.is_there(place):  # of a batch that was cut short, and made it again
            place = f"{place.partition('~')[0]}~{next(again)}"
        return self.state.move(self.uri(name), place)

    def applier(self, ledger: Ledger) -> Applier:
        """Return what brings the tables forward from where *ledger* says they are."""
        config = self._config.in_lower_case() if ledger.lower_case else self._config
        follower = StatementFollower(
            config.keys,
            config.wants,
            self.move,
            self.put_aside,
            self.dead_letters.add,
            lower_case=ledger.lower_case,
        )
        return Applier(ledger, self.state, self.open, config.wants, follower)
