"""
The last table map that a history has of a table: what columns its newest rows have.

It is looked for backwards, a part of the files at a time, or a file at a time of a server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.event import EventType
from ibb.protocol.event_splitter import EventSplitter
from ibb.protocol.rows.table_map import TableMap
from ibb.storage.group_runs import GroupBlock

from .cuts import cut_at_beginning
from .file_ranges import FileRange, cut_into_ranges
from .group_choice import GroupChoice, chosen_groups
from .read_plan import groups_of, newest_view
from .server_plan import parts_backwards

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ibb.protocol.gtid import Gtid
    from ibb.storage.directory import BinlogDirectory

    from .cuts import Cut
    from .event_groups import EventGroup
    from .options import SourceOptions

LOOK_BYTES: Final = 4 << 20  # of the files, looked through at a time for a table


class FoundMap(NamedTuple):
    """A table map, and the group that it is in."""

    table: TableMap
    gtid: Gtid


def newest_map(options: SourceOptions, name: tuple[str, str]) -> FoundMap | None:
    """
    Return the last table map of a table before the end of a read; None: there is none.

    Args:
        options: of the read.
        name: database and table.

    Raises:
        OptionError: an option does not fit what is there.
        FormatError, DiskError: what has to be read is damaged.
        ServerRefused: a server is not there, or not to be read.
    """
    if options.server is not None:
        return _last_of((groups_of(task) for task in parts_backwards(options)), name)
    with newest_view(options) as (view, end):
        return _last_in_files(view.pages, end, name)


def _last_of(parts: Iterable[Iterator[EventGroup]], name: tuple[str, str]) -> FoundMap | None:
    """Return the last table map of the first part that has one."""
    for groups in parts:
        found = None
        for group in groups:
            found = _map_in(group, name) or found
        if found is not None:
            return found
    return None


def _last_in_files(pages: BinlogDirectory, end: Cut, name: tuple[str, str]) -> FoundMap | None:
    """Return the last table map before the end of a read, looked for backwards."""
    choice = GroupChoice(cut_at_beginning(pages), end)
    whole = FileRange(choice.start.place, end.end)
    for part in reversed(cut_into_ranges(pages, whole, bytes_max=LOOK_BYTES, count_min=1)):
        found = None
        for one in chosen_groups(pages, part, choice):
            backwards: Iterable[EventGroup]
            if isinstance(one, GroupBlock):
                backwards = map(one.group, reversed(range(one.first, one.stop)))
            else:
                backwards = (one,)
            found = next(filter(None, (_map_in(group, name) for group in backwards)), found)
        if found is not None:
            return found
    return None


def _map_in(group: EventGroup, name: tuple[str, str]) -> FoundMap | None:
    """Return the last table map of a table in a group."""
    splitter, found = EventSplitter(), None
    for piece in group.pieces():
        for part in splitter.feed(piece):
            if part.first and part.last and part.header.type == EventType.TABLE_MAP:
                table = TableMap.parse(part.data)
                if (table.database, table.table) == name:
                    assert group.gtid is not None
                    found = FoundMap(table, group.gtid)
    return found
