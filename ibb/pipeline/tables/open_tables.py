"""
Delta tables that stay open from one batch to the next.

To open one means to read its log since the last checkpoint, and that: a hundred files, and what
names each file that went in a week. To bring it up to date is to look for one file.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from deltalake import DeltaTable

if TYPE_CHECKING:
    from collections.abc import Mapping

OPEN_TABLES_MAX: Final = 128


class _Entry(NamedTuple):
    """
    What tells an entry of a log from one of the same number that took its place.

    Not its time of modification: backups keep that, and a file system gives a number of a file
    that went to the next one.
    """

    inode: int
    size: int
    changed_at: int


class _Held(NamedTuple):
    table: DeltaTable
    version: int  # when it was last handed out
    entry: _Entry  # of that version


class OpenTables:
    """
    Tables of this machine's folders; those of an object store are opened anew each time.

    Not for several threads.
    """

    def __init__(self) -> None:
        self._held: OrderedDict[str, _Held] = OrderedDict()  # who was asked for last is the last

    def table(self, uri: str, storage: Mapping[str, str]) -> DeltaTable | None:
        """Return the table at *uri* as it is now; None: there is none."""
        held = self._held.pop(uri, None)
        table = None if held is None else _brought_up(uri, held)
        if table is None:
            options = dict(storage)
            if not DeltaTable.is_deltatable(uri, options):
                return None
            table = DeltaTable(uri, storage_options=options)
        entry = _entry(uri, table.version())
        if entry is not None:
            self._held[uri] = _Held(table, table.version(), entry)
            if len(self._held) > OPEN_TABLES_MAX:
                self._held.popitem(last=False)
        return table


def _brought_up(uri: str, held: _Held) -> DeltaTable | None:
    """Return a table as it is now; None: another one is in its place."""
    if not _is_there(uri, held):
        return None
    if _entry(uri, held.table.version() + 1) is None:
        return held.table  # as it was: to list a log of many entries takes its time
    held.table.update_incremental()
    return held.table if _is_there(uri, held) else None


def _is_there(uri: str, held: _Held) -> bool:
    """Tell whether the folder is that of the table: not moved, nor put back from a backup."""
    return _entry(uri, held.version) == held.entry and _entry(uri, held.table.version()) is not None


def _entry(uri: str, version: int) -> _Entry | None:
    """Return what is known of a log's entry; None: there is none, or no folder."""
    if "://" in uri:
        return None
    try:
        found = Path(uri, "_delta_log", f"{version:020}.json").stat()
    except FileNotFoundError:
        return None
    return _Entry(found.st_ino, found.st_size, found.st_ctime_ns)
