"""Where tables are by their names, and where dropped ones go."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from .delta_target import delta_uri

if TYPE_CHECKING:
    from .row_changes import TableName
    from .state_folder import StateFolder


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
        free, again = place, count(2)
        while self._state.is_there(free):  # of a batch that was cut short, and made it again
            free = f"{place}~{next(again)}"
        return self._state.move(self.uri(name), free)
