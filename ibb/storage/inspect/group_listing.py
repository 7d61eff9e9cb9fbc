"""
The groups of a directory as `ibb groups` lists them, while another program may purge its files.

Groups whose files are gone when it is their turn are no damage: the listing goes on behind them,
and says so.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.dump_filter import DumpFilter
from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import GtidPosition
from ibb.storage.errors import BegunAnewError, DiskError
from ibb.storage.file_name import binlog_name
from ibb.storage.gtid_search import find_oldest
from ibb.storage.state_scan import read_state

from .group_range import range_start, wanted_groups
from .group_summary import GroupSummary, summarise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ibb.storage.position import Position
    from ibb.storage.read_only import ReadOnlyHistory


def list_groups(
    history: ReadOnlyHistory,
    start: GtidPosition | None,
    until: GtidPosition | None,
    limit: int | None,
    tell: Callable[[str], None],
) -> Iterator[GroupSummary]:
    """
    Yield summaries of event groups, oldest first, up to the end.

    Args:
        history: where they are.
        start: only groups behind this position; None: from the oldest group that is whole.
        until: stop behind these GTIDs; domains that it does not list are left out.
        limit: at most so many groups.
        tell: called with what is left out, since it was purged meanwhile.

    Raises:
        SqlError: 1236, *start* is not in the history.
        TooOld: groups that *start* needs were purged before.
        FormatError: the binlog is damaged.
        BegunAnewError: another process deleted the files meanwhile; all before was of them.
    """
    return islice(_Listing(history, start or GtidPosition(), until, tell).groups(start), limit)


class _Listing:
    def __init__(
        self,
        history: ReadOnlyHistory,
        position: GtidPosition,
        until: GtidPosition | None,
        tell: Callable[[str], None],
    ) -> None:
        self._history = history
        self._pages = history.pages
        self._position = position
        self._until = until
        self._tell = tell
        self._taken: Position | None = None  # of the group that was come to last
        self._is_listed = True  # that group

    def groups(self, start: GtidPosition | None) -> Iterator[GroupSummary]:
        generation = self._history.generation
        place, wanted = range_start(self._history, start, self._until)
        while True:
            first, last = self._pages.first_file(), self._pages.last_file()
            try:
                yield from self._groups_from(generation, place, wanted)
            except (FormatError, DiskError):
                self._pages.refresh()
                was, generation = generation, self._history.generation
                oldest = self._pages.first_file()
                if generation == was and oldest <= first:
                    raise
                if generation != was and oldest <= last:  # else all of that time was purged
                    raise BegunAnewError(binlog_name(oldest)) from None
                place, wanted = self._behind_purged(wanted)
            else:
                return

    def _groups_from(
        self, generation: int, place: Position, wanted: DumpFilter
    ) -> Iterator[GroupSummary]:
        for group in wanted_groups(self._history, generation, place, wanted):
            if group.position == self._taken and self._is_listed:
                continue
            self._taken, self._is_listed = group.position, False
            summary = summarise(group)
            self._is_listed = True
            yield summary

    def _behind_purged(self, wanted: DumpFilter) -> tuple[Position, DumpFilter]:
        """Return where to go on now that files have gone, and with which filter."""
        pages, oldest = self._pages, find_oldest(self._pages)
        if self._taken is not None and self._taken >= oldest:
            return self._taken, wanted  # nothing that comes was in those files
        newest = binlog_name(pages.first_file() - 1)
        self._tell(f"files up to {newest} were purged meanwhile: groups of them are left out")
        full = read_state(pages, oldest.file_no, 1)
        state = BinlogState(() if full is None else full.entries)
        had = GtidPosition(gtid for gtid in self._position if not state.contains(gtid))
        return oldest, DumpFilter(had, state, self._until)
