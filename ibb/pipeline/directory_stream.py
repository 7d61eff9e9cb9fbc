"""A stream that follows a directory: offsets become cuts through its files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.errors import SqlError
from ibb.protocol.gtid import GtidPosition
from ibb.storage.group_runs import places_from
from ibb.storage.gtid_search import TooOld
from ibb.storage.position import NOWHERE, Position
from ibb.storage.state_scan import read_state

from .cuts import (
    Cut,
    cut_behind,
    cut_of_what_is_left,
    position_at_beginning,
)
from .errors import DataLossError, OptionError
from .file_ranges import FileRange, within_times
from .group_choice import GroupChoice
from .lag import Lag, groups_behind_by_number, lag_behind
from .options import EARLIEST, LATEST
from .read_plan import FileTask, tasks_between
from .stream_offset import StreamOffset, check_same_history, offset_at
from .stream_view import StreamView
from .trigger_limits import limited_end

if TYPE_CHECKING:
    from .directories import DirectoryView
    from .options import SourceOptions


class DirectoryStream:
    """
    Follows one directory.

    Args:
        options: of the stream.

    Raises:
        OptionError: option path names more than one directory, or files.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._view = StreamView(options.paths)

    def close(self) -> None:
        """Close the files."""
        self._view.close()

    def first(self) -> StreamOffset:
        """
        Return where a stream without a checkpoint begins.

        Raises:
            OptionError: an option does not fit the history.
        """
        with self._view.look() as view:
            position = self._first_position(view)
            try:
                cut = cut_behind(view.pages, view.state, position)
            except (SqlError, TooOld) as error:
                raise OptionError("startingGtid", f"'{position}': {error}") from error
            return offset_at(view.pages, position, cut.end)

    def end(self) -> StreamOffset:
        """Return where the history ends now."""
        with self._view.look() as view:
            return _end_of(view)

    def next(self, begun: StreamOffset, until: StreamOffset | None) -> StreamOffset:
        """
        Return where the micro-batch from *begun* ends, not behind *until*.

        Raises:
            DataLossError: groups were purged unread, or another history is here.
        """
        with self._view.look() as view:
            return self._next_offset(view, begun, until or _end_of(view))

    def tasks(self, first: StreamOffset, last: StreamOffset) -> list[FileTask]:
        """
        Return the tasks of a micro-batch.

        Raises:
            DataLossError: groups of it were purged, or another history is here.
        """
        with self._view.look() as view:
            return self._tasks(view, first, last)

    def end_and_lag(self, last: StreamOffset) -> tuple[StreamOffset, Lag]:
        """
        Return where the history ends now, and how far behind that a stream is.

        Raises:
            DataLossError: groups behind it were purged, or another history is here.
        """
        with self._view.look() as view:
            end = _end_of(view)
            groups = groups_behind_by_number(last.position, end.position)
            return end, lag_behind(view.pages, self._cut(view, last), groups)

    def _first_position(self, view: DirectoryView) -> GtidPosition:
        options = self._options
        if options.start == LATEST:
            return view.state.position()
        if options.start != EARLIEST:
            return GtidPosition.parse(options.start)
        position = position_at_beginning(view.pages)
        if options.since is not None:
            position = _position_at(view, position, options.since)
        return position

    def _next_offset(
        self, view: DirectoryView, begun: StreamOffset, until: StreamOffset
    ) -> StreamOffset:
        check_same_history(view.pages, begun)
        if until.position == begun.position:
            return begun
        start, end = self._cut(view, begun), self._cut(view, until)
        options = self._options
        if options.trigger_groups_max is None and options.trigger_bytes_max is None:
            return until if _has_more(start, end) else begun
        reached = limited_end(
            view.pages,
            start,
            end,
            begun.position,
            groups_max=options.trigger_groups_max,
            bytes_max=options.trigger_bytes_max,
        )
        if reached.place is None:
            return begun
        return offset_at(view.pages, reached.position, reached.place)

    def _tasks(
        self, view: DirectoryView, first: StreamOffset, last: StreamOffset
    ) -> list[FileTask]:
        for offset in (first, last):
            check_same_history(view.pages, offset)
        options = self._options
        choice = GroupChoice(
            self._cut(view, first),
            self._cut(view, last),
            None,
            options.domains,
            *options.times,
        )
        return tasks_between(view, self._view.named, choice, options)

    def _cut(self, view: DirectoryView, offset: StreamOffset) -> Cut:
        try:
            return self._cut_as_left(view, offset)
        except SqlError as error:
            raise DataLossError(
                f"the stream was at '{offset.gtid}', which this history does not have: {error}."
                " Begin with a new checkpoint"
            ) from error

    def _cut_as_left(self, view: DirectoryView, offset: StreamOffset) -> Cut:
        try:
            return cut_behind(view.pages, view.state, offset.position)
        except TooOld as error:
            if not self._options.fail_on_data_loss:
                return cut_of_what_is_left(view.pages, view.state, offset.position)
            left = position_at_beginning(view.pages)
            raise DataLossError(
                f"groups behind '{offset.gtid}' up to '{left}' were purged before they were read;"
                " set failOnDataLoss to false to go on behind them"
            ) from error


def _has_more(start: Cut, end: Cut) -> bool:
    """
    Tell whether any domain has groups between two cuts, whatever others come last.

    A domain's place may be before its last group, but of who has more it is never the earlier one.
    """
    return any(place > start.behind.get(domain, NOWHERE) for domain, place in end.behind.items())


def _end_of(view: DirectoryView) -> StreamOffset:
    position = view.state.position()
    return offset_at(view.pages, position, view.pages.end())


def _position_at(view: DirectoryView, position: GtidPosition, since: float) -> GtidPosition:
    """Return the position before the first group that was committed at or after a time."""
    start = cut_behind(view.pages, view.state, position)
    whole = FileRange(start.place, max(view.pages.end(), start.place))
    place = within_times(view.pages, whole, since, None).start
    reached = position.copy()
    if place > start.place:
        place = Position(place.file_no, 0)
        reached = _state_before(view, place)
    for group in places_from(view.pages, place):
        if group.timestamp >= since:
            break
        reached.set(group.gtid)
    return reached


def _state_before(view: DirectoryView, place: Position) -> GtidPosition:
    full = read_state(view.pages, place.file_no, 1)
    return BinlogState(() if full is None else full.entries).position()
