"""Where tables are by their names, where dropped ones go, and where some wait for their names."""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final

from .row_changes import TableName

if TYPE_CHECKING:
    from collections.abc import Callable

    from ibb.protocol.gtid import Gtid

    from .change_target import ChangeTarget
    from .state_folder import StateFolder

_ESCAPE: Final = re.compile("@([0-9a-f]{4})")  # of a character in the name of a folder


class TableFolders:
    """
    Folders of tables: `ROOT/DATABASE/TABLE`.

    Args:
        state: moves folders.
        root: where they are.
        dropped: where those of dropped tables go.
        waiting: where those wait whose new name another table has still.
        open_at: opens the table of that name at an URI.
    """

    def __init__(
        self,
        state: StateFolder,
        root: str,
        dropped: str,
        waiting: str,
        open_at: Callable[[TableName, str], ChangeTarget[Any]],
    ) -> None:
        self._state = state
        self._root = root
        self._dropped = dropped
        self._waiting = waiting
        self._open_at = open_at

    def uri(self, name: TableName) -> str:
        """Return where the table *name* is."""
        return table_uri(self._root, name)

    def move(self, old: TableName, new: TableName) -> bool:
        """Move a table; False: there is none."""
        return self._state.move(self.uri(old), self.uri(new))

    def put_aside(self, name: TableName, gtid: str) -> bool:
        """Move a dropped table out of the way: its rows stay, for those who want them back."""
        return self._put_aside(self.uri(name), name, gtid)

    def put_strays_aside(self, may_be: Callable[[TableName], bool], gtid: str) -> None:
        """
        Move tables that this pipeline has written, and nobody knows of, to where dropped ones go.

        Args:
            may_be: whether a table of that name is none that is known.
            gtid: at which they are found.
        """
        for database in self._state.in_folder(self._root):
            for uri in self._state.in_folder(database):
                name = table_at(uri)
                if may_be(name) and self._open_at(name, uri).place is not None:
                    self._put_aside(uri, name, gtid)

    def let_wait(self, old: TableName, new: TableName, gtid: Gtid) -> None:
        """Move the table *old* to where it waits for the name *new*, which *gtid* gives it."""
        self._state.move(self.uri(old), self._waiting_uri(new, gtid))

    def waits(self, new: TableName, gtid: Gtid) -> bool:
        """Whether a table waits for the name *new*, which *gtid* gives it."""
        return self._state.is_there(self._waiting_uri(new, gtid))

    def open_waiting(self, new: TableName, gtid: Gtid) -> ChangeTarget[Any]:
        """Return the table that waits for the name *new*."""
        return self._open_at(new, self._waiting_uri(new, gtid))

    def end_wait(self, new: TableName, gtid: Gtid) -> None:
        """Move the table that waits for the name *new* to where that is."""
        self._state.move(self._waiting_uri(new, gtid), self.uri(new))

    def put_waiting_aside(self, new: TableName, gtid: Gtid) -> None:
        """Move what waits for the name *new*, if anything does, to where dropped tables go."""
        self._put_aside(self._waiting_uri(new, gtid), new, str(gtid))

    def put_all_waiting_aside(self) -> None:
        """Move all that wait for whatever name to where dropped tables go."""
        for database in self._state.in_folder(self._waiting):
            for uri in self._state.in_folder(database):
                self._move_aside(uri, uri.replace(self._waiting, self._dropped, 1))

    def _put_aside(self, uri: str, name: TableName, gtid: str) -> bool:
        return self._move_aside(uri, f"{table_uri(self._dropped, name)}@{gtid}")

    def _move_aside(self, uri: str, place: str) -> bool:
        free, again = place, count(2)
        while self._state.is_there(free):  # of a batch that was cut short, and made it again
            free = f"{place}~{next(again)}"
        return self._state.move(uri, free)

    def _waiting_uri(self, new: TableName, gtid: Gtid) -> str:
        return f"{table_uri(self._waiting, new)}@{gtid}"


def table_uri(root: str, name: TableName) -> str:
    """Return where below *root* a table is: names that no folder can have are escaped."""
    folder = "/".join(map(_folder_name, name))
    return f"{root.rstrip('/')}/{folder}" if "://" in root else str(Path(root) / folder)


def table_at(uri: str) -> TableName:
    """Return the name of the table that is at *uri*."""
    return TableName(*map(_name_of, PurePath(uri).parts[-2:]))


def _folder_name(name: str) -> str:
    """Return *name* as MariaDB names files: all but letters, digits, `_`, `-` is `@` and hex."""
    return "".join(
        char if char.isascii() and (char.isalnum() or char in "_-") else f"@{ord(char):04x}"
        for char in name
    )


def _name_of(folder: str) -> str:
    """Return the name whose folder it is; names of MariaDB have no character above U+FFFF."""
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), folder)
