"""
A stream that follows a server.

Offsets are GTID positions, marked by a file of the server: its number, and what the first group
behind its beginning is. So a server that was begun anew is noticed, also when it has the same GTIDs
again, as long as the file is there.
"""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ibb.protocol.checksum import crc32
from ibb.protocol.dump_filter import check_position
from ibb.protocol.errors import SqlError
from ibb.protocol.gtid import GtidPosition

from .errors import DataLossError, OptionError
from .lag import Lag, groups_behind_by_number
from .options import EARLIEST, LATEST
from .server_history import ServerHistory, is_refused_position, is_unclear_position
from .server_plan import files_between, is_reached, tasks_behind
from .stream_offset import StreamOffset
from .trigger_limits import within_limits

if TYPE_CHECKING:
    from .options import SourceOptions
    from .server_history import ServerFile
    from .server_task import ServerTask

_WHOLE: Final = 1 << 62  # bytes of a partition that is never cut
_LOG_POS: Final = slice(13, 17)  # of an event: where it is, which is not what it is


class ServerStream:
    """
    Follows one server.

    Args:
        options: of the stream.
    """

    def __init__(self, options: SourceOptions) -> None:
        assert options.server is not None
        self._options = options
        self._history = ServerHistory(options.server)

    def close(self) -> None:
        """Drop the connection."""
        self._history.close()

    def first(self) -> StreamOffset:
        """
        Return where a stream without a checkpoint begins.

        Raises:
            OptionError: an option does not fit the history.
            ServerRefused: the server is not there, or not to be read.
        """
        state, newest = self._history.state()
        if self._options.start == LATEST:
            return self._offset(newest)
        if self._options.start == EARLIEST:
            return self._offset(self._history.oldest())
        position = GtidPosition.parse(self._options.start)
        try:
            check_position(state, position)
            self._history.first_behind(position)
        except SqlError as error:
            raise OptionError("startingGtid", f"'{position}': {error}") from error
        return self._offset(position)

    def end(self) -> StreamOffset:
        """Return where the history ends now."""
        _, newest = self._history.state()
        return self._offset(newest)

    def next(self, begun: StreamOffset, until: StreamOffset | None) -> StreamOffset:
        """
        Return where the micro-batch from *begun* ends, not behind *until*.

        With a limit the groups of the batch are received here, to be counted.

        Raises:
            DataLossError: groups were purged unread, or another history is here.
            ServerRefused: the server is not there, or not to be read.
        """
        start = self._checked(begun)
        _, newest = self._history.state()
        end = newest if until is None else until.position
        options = self._options
        if all(start.get(gtid.domain) == gtid for gtid in end):
            return begun
        if options.trigger_groups_max is None and options.trigger_bytes_max is None:
            return self._offset(end)
        counted = replace(
            options, partitions_min=1, partition_bytes_max=_WHOLE, since=None, before=None
        )
        tasks = tasks_behind(self._history, newest, start, end, counted)
        if not tasks:  # all that is new is of domains that are not wanted
            return self._offset(end)
        with tasks[0].open() as opened, closing(opened.groups()) as groups:
            reached = within_limits(
                groups,
                start,
                groups_max=options.trigger_groups_max,
                bytes_max=options.trigger_bytes_max,
            )
        return self._offset(reached.position)

    def tasks(self, first: StreamOffset, last: StreamOffset) -> list[ServerTask]:
        """
        Return the tasks of a micro-batch.

        Raises:
            DataLossError: groups of it were purged, or another history is here.
            ServerRefused: the server is not there, or not to be read.
        """
        start = self._checked(first)
        self._check_same_history(last)
        _, newest = self._history.state()
        end = last.position
        if start != first.position:  # what was purged may be all of the batch, in some domains
            end = GtidPosition(gtid for gtid in end if not is_reached(gtid, start))
        return tasks_behind(self._history, newest, start, end, self._options)

    def end_and_lag(self, last: StreamOffset) -> tuple[StreamOffset, Lag]:
        """
        Return where the history ends now, and how far behind; bytes of files not begun yet.

        Raises:
            ServerRefused: the server is not there, or not to be read.
            SqlError: 1236, groups behind it were purged.
        """
        _, newest = self._history.state()
        end = self._offset(newest)
        groups = groups_behind_by_number(last.position, newest)
        if not groups:
            return end, Lag(0, 0, 0)
        files = files_between(self._history, last.position, newest)
        first = self._history.first_behind(last.position)
        seconds = 0 if first is None else max(int(time.time()) - first.timestamp, 0)
        return end, Lag(groups, sum(file.size for file, _ in files[1:]), seconds)

    def _checked(self, begun: StreamOffset) -> GtidPosition:
        """Return the position of an offset that this server can go on from."""
        self._check_same_history(begun)
        state, _ = self._history.state()
        position = begun.position
        try:
            check_position(state, position)
        except SqlError as error:
            raise DataLossError(
                f"the stream was at '{begun.gtid}', which server {self._history.address} does not"
                f" have: {error}. Begin with a new checkpoint"
            ) from error
        try:
            self._history.first_behind(position)
        except SqlError as error:
            if not is_refused_position(error):
                raise
            if is_unclear_position(error):
                raise DataLossError(
                    f"where '{begun.gtid}' is, server {self._history.address} cannot tell: {error}."
                    " Numbers of a server must rise (gtid_strict_mode=1 at the source sees to"
                    " that). Begin with a new checkpoint"
                ) from error
            left = self._history.oldest()
            if self._options.fail_on_data_loss:
                raise DataLossError(
                    f"groups behind '{begun.gtid}' up to '{left}' were purged before they were"
                    f" read ({error}); set failOnDataLoss to false to go on behind them"
                ) from error
            for gtid in left:
                had = position.get(gtid.domain)
                if had is None or had.seq < gtid.seq:
                    position.set(gtid)
        return position

    def _offset(self, position: GtidPosition) -> StreamOffset:
        """Return the offset of a position, marked by the newest file that has a group."""
        for file in reversed(self._history.files()):
            mark = self._mark(file)
            if mark:
                return StreamOffset(str(position), file.number, mark)
        return StreamOffset(str(position))

    def _check_same_history(self, offset: StreamOffset) -> None:
        """Raise DataLossError if the file that an offset is marked by is another one now."""
        if not offset.mark:
            return
        files = {file.number: file for file in self._history.files()}
        if offset.file < min(files, default=0):
            return  # it was purged
        file = files.get(offset.file)
        if file is None or self._mark(file) != offset.mark:
            raise DataLossError(
                f"the binlog of server {self._history.address} was begun anew (RESET MASTER), or it"
                f" is another server, since the stream was at '{offset.gtid}': its file"
                f" {offset.file} is not the same. Begin with a new checkpoint"
            )

    def _mark(self, file: ServerFile) -> str:
        """Return what tells a file from that of another history; empty: no group is behind it."""
        place = self._history.position_before(file.name)
        if place is None:
            return ""
        try:
            first = self._history.first_behind(place)
        except SqlError as error:
            if not is_refused_position(error):
                raise
            return ""  # it was purged just now
        if first is None:
            return ""
        head = bytearray(first.head)
        head[_LOG_POS] = bytes(4)
        return f"{crc32(head):08x}"
