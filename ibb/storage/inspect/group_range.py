"""The groups of a history between two GTID positions, as `ibb groups` lists them."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.dump_filter import DumpFilter, Verdict, check_position
from ibb.protocol.gtid import GtidPosition
from ibb.storage.errors import BegunAnewError
from ibb.storage.file_name import binlog_name
from ibb.storage.group_reader import GroupReader
from ibb.storage.gtid_search import StartPlace, find_oldest, find_start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ibb.storage.group_reader import StoredGroup
    from ibb.storage.history import History
    from ibb.storage.position import Position


def groups_between(
    history: History,
    start: GtidPosition | None = None,
    until: GtidPosition | None = None,
    limit: int | None = None,
) -> Iterator[StoredGroup]:
    """
    Yield event groups, oldest first, up to the end; each must be used before the next is taken.

    Args:
        history: where they are.
        start: only groups behind this position; None: from the oldest group that is whole.
        until: stop behind these GTIDs; domains that it does not list are left out.
        limit: at most so many groups.

    Raises:
        SqlError: 1236, *start* is not in the history.
        TooOld: groups that *start* needs have been purged.
        FormatError: the binlog is damaged.
        BegunAnewError: another process deleted the files meanwhile; all before was of them.
    """
    return islice(_all_between(history, start, until), limit)


def _all_between(
    history: History, start: GtidPosition | None, until: GtidPosition | None
) -> Iterator[StoredGroup]:
    generation = history.generation
    place, wanted = range_start(history, start, until)
    yield from wanted_groups(history, generation, place, wanted)


def range_start(
    history: History, start: GtidPosition | None, until: GtidPosition | None
) -> tuple[Position, DumpFilter]:
    """
    Return where `groups_between` reads from, and what tells which groups are wanted.

    Raises:
        SqlError, TooOld, FormatError: as there.
    """
    position = start or GtidPosition()
    if start is None:
        place = StartPlace(find_oldest(history.pages), BinlogState())
    else:
        check_position(history.state(), position, until=until)
        place = find_start(history.pages, position)
    return place.position, DumpFilter(position, place.state, until)


def wanted_groups(
    history: History, generation: int, place: Position, wanted: DumpFilter
) -> Iterator[StoredGroup]:
    """
    Yield the wanted groups from a place on, up to the end of the data or of the range.

    Raises:
        FormatError, BegunAnewError: as `groups_between`; *generation* is that of the place.
    """
    reader = GroupReader(history.pages, place)
    while not wanted.finished:
        group = reader.next()
        if not history.is_still(generation):
            raise BegunAnewError(binlog_name(reader.position.file_no))
        if group is None:
            return
        if group.gtid is not None and wanted.wants(group.gtid) is Verdict.SEND:
            yield group
            wanted.after(group.gtid)
